"""A decision with chosen content."""

from dataclasses import replace
from datetime import datetime, timezone

from graphgauge.core.verdicts import Verdict
from graphgauge.evaluation import Settings
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle.decision import Decision, expiry_time, format_time

NOW = datetime(2026, 11, 15, 12, tzinfo=timezone.utc)


def decision(**changed):
    wanted = Requirements("node_classification", num_features=3, limits={"edge_ec": 5.0})
    verdict = Verdict("pass", "edge_pertinence", "fine.", 0.85, 0.6, "lrp", n=100)
    found = Decision(
        explainer="lrp",
        parameters={},
        label="lrp",
        seed=0,
        settings=Settings().record(),
        production=Settings().record(),
        requirements=wanted.record(),
        network="network-digest",
        data="data-digest",
        description={
            "wrapper": "NodeClassificationModel",
            "network": "Net",
            "hops": 1,
            "nodes": 3,
            "edges": 2,
            "features": 3,
        },
        reason="it alone of 2 misses no threshold",
        verdicts=(verdict.record(),),
        targets=100,
        rows="rows-digest",
        consultation={
            "names": ["lrp"],
            "kind": "node_classification",
            "source": "the paper's own table",
            "reason": "it is best",
        },
        trade_off={},
        comparison=(),
        warnings=("Only 12 targets were measured; 100 or more are asked for.",),
        versions={"graphgauge": "0"},
        made=format_time(NOW),
        expires=expiry_time(NOW, 180),
        signed_by="Ada",
        signed=format_time(NOW),
    )
    return replace(found, **changed)
