"""Answers are those of the library, do not depend on company, are in the log first, and say when a
fallback made them.
"""

import asyncio
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from httpx import ASGITransport, AsyncClient
from support.services import TOKEN, ask, call, made_service, serving, tiny_model

import graphgauge as gg
from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.core.progress import advance_progress
from graphgauge.evaluation.fingerprints import digest_of_scores
from graphgauge.explainers.base import Scores, zero_edge_scores, zero_feature_scores
from graphgauge.serve import create_app
from graphgauge.serve.requests import Question
from graphgauge.serve.settings import Settings
from graphgauge.store.audit import json_lines, verify_log


def entries(folder, what="answer"):
    """The records of a log."""
    return [
        line["record"]
        for line in map(json.loads, json_lines(folder / "audit.sqlite"))
        if line["record"]["what"] == what
    ]


def question(target, **changes):
    return Question(
        **{
            "target": target,
            "explainer": None,
            "language": "en",
            "audience": "internal",
            "top_k": 3,
            "asked_by": "",
            **changes,
        }
    )


@dataclass(frozen=True)
class Slow(gg.BaseExplainer):
    """Takes ``steps`` steps of 10 ms; ``calls`` counts how often it began."""

    name: ClassVar[str] = "slow"
    signed: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True
    calls: ClassVar[list[int]] = []
    steps: int = 1

    def scores(self, model, graphs, seeds):
        self.calls.append(self.steps)
        for _ in range(self.steps):
            time.sleep(0.01)
            advance_progress(0)
        return Scores(zero_feature_scores(graphs) + 1, zero_edge_scores(graphs) + 1)


@dataclass(frozen=True)
class Moody(gg.BaseExplainer):
    """Fails for target 7, at any size of batch."""

    name: ClassVar[str] = "moody"
    signed: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def scores(self, model, graphs, seeds):
        if 7 in [graph.target for graph in graphs]:
            raise RuntimeError("not this one")
        return Scores(zero_feature_scores(graphs) + 1, zero_edge_scores(graphs) + 1)


@dataclass(frozen=True)
class Nan(gg.BaseExplainer):
    """Has no number for a score."""

    name: ClassVar[str] = "nan"
    signed: ClassVar[bool] = True
    deterministic: ClassVar[bool] = True

    def scores(self, model, graphs, seeds):
        return Scores(
            zero_feature_scores(graphs) * float("nan"), zero_edge_scores(graphs) * float("nan")
        )


def test_an_answer_says_what_the_library_says(port, service):
    answer = ask(port, target=5, explainer="saliency", audience="expert", top_k=2)
    (x,) = gg.Saliency().explain(service.model, [5])
    assert answer["text"] == gg.Evaluator(service.model).get_textual_explanation(x, top_k=2)
    column = x.target_view().target[0]
    told = {item["index"]: item["score"] for item in answer["features"] if item["of"] == "target"}
    assert told == {k: float(f"{column[k]:.3g}") for k in told}
    assert [flag["flag"] for flag in answer["flags"]] == ["not_validated"]


@pytest.mark.parametrize("explainer", ["input_x_gradient", "gnn_explainer"])
def test_an_answer_does_not_depend_on_company(tmp_path, explainer):
    service = made_service(
        tmp_path, [gg.InputXGradient(), gg.GNNExplainer(epochs=3)], gather_ms=200
    )
    targets = [3, 4, 3, 9, 11, 3]
    service.start()
    service.wait_until_warm()
    alone = service.ask(question(3, explainer=explainer)).result()
    together = [
        future.result()
        for future in [service.ask(question(t, explainer=explainer)) for t in targets]
    ]
    service.stop()
    scores = {record["answer"]: record["scores"] for record in entries(tmp_path)}
    (x,) = service.batch_explainer.choices[explainer].explainer.explain(service.model, [3], seed=0)
    wanted = digest_of_scores(x, 32)
    assert [
        scores[alone["id"]],
        *(scores[found["id"]] for found in together if found["target"] == 3),
    ] == [wanted] * 4
    assert len(set(scores.values())) == 4
    sizes = {
        s.labels["le"]: s.value
        for m in service.prometheus.batch.collect()
        for s in m.samples
        if s.name.endswith("bucket")
    }
    assert (sizes["1.0"], sizes["8.0"]) == (1, 2)  # one alone, six together


def test_every_answer_is_in_the_log_before_it_is_out(tmp_path):
    service = made_service(tmp_path)
    with serving(service) as port, ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda k: checked_receipt(port, tmp_path, k), range(40)))
    assert sorted(receipts) == list(range(2, 42))  # 1 is the start
    found = verify_log(tmp_path / "audit.sqlite")
    assert (found.count, found.fault) == (42, "")
    assert [
        line["record"]["what"] for line in map(json.loads, json_lines(tmp_path / "audit.sqlite"))
    ][-1] == "stop"


def checked_receipt(port, folder, k):
    answer = ask(port, target=k % 30, asked_by=f"caller {k}")
    (own,) = [
        line
        for line in map(json.loads, json_lines(folder / "audit.sqlite"))
        if line["record"].get("answer") == answer["id"]
    ]
    assert (own["number"], own["digest"]) == (answer["audit"]["number"], answer["audit"]["digest"])
    assert (own["record"]["asked_by"], own["record"]["text"]) == (f"caller {k}", answer["text"])
    return own["number"]


def test_an_entry_holds_what_makes_the_answer_again(port, service):
    answer = ask(port, target=2, asked_by="Ada", language="de")
    (record,) = [one for one in entries(service.audit_path.parent) if one["answer"] == answer["id"]]
    x = gg.find_explainer(record["explainer"], **record["params"]).explain(
        service.model, [record["target"]], record["seed"]
    )[0]
    assert digest_of_scores(x, 32) == record["scores"]
    assert (record["asked_by"], record["language"], record["target"]) == ("Ada", "de", 2)
    assert set(record["versions"]) == {"graphgauge", "python", "torch", "torch_geometric", "numpy"}
    assert [len(record[name]) for name in ("model", "data", "settings", "scores")] == [
        24,
        24,
        64,
        64,
    ]


def test_the_digests_tell_another_model_other_data_and_other_settings(tmp_path):
    def digests(name, model=None, **changes):
        (tmp_path / name).mkdir()
        service = made_service(tmp_path / name, model=model, **changes)
        service.start()
        service.wait_until_warm()
        answer = service.ask(question(1)).result()
        service.stop()
        return [answer[part] for part in ("model", "data", "settings")]

    net, other = tiny_model(), tiny_model()
    with torch.no_grad():
        next(other.net.parameters())[0] += 1
    moved = tiny_model().data.clone()
    moved.x[0, 0] += 1
    first = digests("a", net)
    assert digests("b", tiny_model()) == first
    assert [x == y for x, y in zip(digests("c", other), first, strict=True)] == [False, True, True]
    assert [
        x == y for x, y in zip(digests("d", type(net)(net.net, moved)), first, strict=True)
    ] == [True, False, True]
    assert [x == y for x, y in zip(digests("e", net, budget_ms=5), first, strict=True)] == [
        True,
        True,
        False,
    ]


def test_the_token_is_nowhere_in_the_log_or_in_what_is_shown(port, service):
    ask(port, target=1)
    assert TOKEN.encode() not in service.audit_path.read_bytes()
    assert TOKEN not in repr(service.settings) + json.dumps(service.record())
    assert (
        TOKEN.encode()
        not in call(port, "GET", "/metrics")[2] + call(port, "GET", "/openapi.json")[2]
    )


def test_an_app_starts_and_stops_its_service_itself(tmp_path):
    app = create_app(
        tiny_model(),
        gg.InputXGradient(),
        tmp_path / "audit.sqlite",
        settings=Settings(token=TOKEN, budget_ms=60_000),
    )

    async def used():
        async with (
            app.router.lifespan_context(app),
            AsyncClient(transport=ASGITransport(app), base_url="http://localhost") as caller,
        ):
            first = (await caller.get("/ready")).status_code
            while (await caller.get("/ready")).status_code == 503:
                await asyncio.sleep(0.01)
            found = await caller.post(
                "/explain", json={"target": 3}, headers={"Authorization": f"Bearer {TOKEN}"}
            )
            return first, found.status_code, found.json()["target"]

    with ThreadPoolExecutor(
        1
    ) as thread:  # a browser of other tests may have a loop running in this one
        assert thread.submit(asyncio.run, used()).result() in [(503, 200, 3), (200, 200, 3)]
    assert [len(entries(tmp_path, what)) for what in ("start", "answer", "stop")] == [1, 1, 1]


# --- time -----------------------------------------------------------------------------------------


def answered(service, *questions):
    """Answers to questions that are asked one after the other."""
    service.start()
    service.wait_until_warm()
    found = [service.ask(one).result() for one in questions]
    service.stop()
    return found


def flags(answer):
    return [flag["flag"] for flag in answer["flags"]]


def test_an_explainer_that_is_fast_enough_answers(tmp_path):
    (answer,) = answered(made_service(tmp_path, Slow(2), budget_ms=5000), question(1))
    assert (answer["explainer"], answer["asked_explainer"], flags(answer)) == (
        "slow",
        "slow",
        ["not_validated"],
    )


def test_an_explainer_that_is_known_to_be_slow_is_not_tried(tmp_path):
    service = made_service(tmp_path, Slow(30), budget_ms=100)  # 300 ms
    Slow.calls.clear()
    (answer,) = answered(service, question(1))
    assert (answer["explainer"], answer["asked_explainer"]) == ("input_x_gradient", "slow")
    assert flags(answer)[0] == entries(tmp_path)[0]["flags"][0] == "fallback_time"
    assert len(Slow.calls) == 2  # to warm up


def test_an_explainer_that_takes_too_long_is_ended_and_the_fallback_answers(tmp_path):
    # 3 s, and the service does not know it yet
    service = made_service(tmp_path, Slow(300), budget_ms=100)
    service.batch_explainer.warm_up = lambda: None
    (answer,) = answered(service, question(1))
    assert (answer["explainer"], flags(answer)[0]) == ("input_x_gradient", "fallback_time")
    assert 0.1 <= answer["seconds"] < 3.0
    assert service.batch_explainer.latencies.expected("slow") >= 0.1


def test_a_slow_explainer_is_tried_again_after_a_while(tmp_path):
    service = made_service(tmp_path, Slow(1), budget_ms=1000)
    service.start()
    service.wait_until_warm()
    service.batch_explainer.latencies.seconds["slow"] = 1.05  # it was slow once
    found = [service.ask(question(1)).result()["explainer"] for _ in range(20)]
    service.stop()
    assert (found[0], found[-1]) == ("input_x_gradient", "slow")


def test_real_learned_explainers_can_be_ended(tmp_path):
    service = made_service(tmp_path, gg.GNNExplainer(epochs=100_000), budget_ms=100)
    service.batch_explainer.warm_up = lambda: None
    before = {name: value.clone() for name, value in service.model.net.state_dict().items()}
    (answer,) = answered(service, question(1))
    assert (answer["explainer"], flags(answer)[0]) == ("input_x_gradient", "fallback_time")
    assert all(
        torch.equal(value, before[name]) for name, value in service.model.net.state_dict().items()
    )


# --- what goes wrong ------------------------------------------------------------------------------


def test_one_bad_target_takes_no_other_with_it(tmp_path):
    service = made_service(tmp_path, Moody(), fallback=Moody(), gather_ms=200)
    service.start()
    service.wait_until_warm()
    futures = [service.ask(question(t)) for t in (5, 7, 9)]
    assert [future.exception() is None for future in futures] == [True, False, True]
    assert futures[1].exception().status == 500
    assert "not this one" not in futures[1].exception().message
    service.stop()
    assert [record["target"] for record in entries(tmp_path)] == [5, 9]


def test_a_failing_explainer_hands_over_to_the_fallback(tmp_path):
    (answer,) = answered(made_service(tmp_path, Moody()), question(7))
    assert (answer["explainer"], flags(answer)[0]) == ("input_x_gradient", "fallback_error")


def test_scores_that_are_no_numbers_are_flagged_and_never_sent(tmp_path):
    (answer,) = answered(made_service(tmp_path, Nan()), question(3))
    assert flags(answer) == ["not_validated", "no_features", "no_edges"]
    assert (answer["features"], answer["edges"]) == ([], [])


def test_without_the_log_nothing_is_answered_and_the_service_is_not_ready(tmp_path):
    service = made_service(tmp_path)
    with serving(service) as port:
        assert call(port, path="/ready")[0] == 200
        with full_disk(service):
            status, headers, body = call(
                port, "POST", "/explain", '{"target": 1}', Content_Type="application/json"
            )
            assert (status, json.loads(body)["error"], headers["retry-after"]) == (
                503,
                "audit_unavailable",
                "30",
            )
            assert call(port, path="/ready")[0] == 503
            assert call(port, path="/health")[0] == 200
        assert ask(port, target=1)["audit"]["number"] == 2
        assert call(port, path="/ready")[0] == 200
    assert verify_log(tmp_path / "audit.sqlite").fault == ""


@contextmanager
def full_disk(service):
    """The service's log cannot be written in here."""
    append = service.log_records

    def refused(audit, records):
        database = audit.hash_chain.store.connection
        (pages,) = database.execute("pragma page_count").fetchone()
        database.execute(f"pragma max_page_count = {pages}")
        try:
            return append(audit, [{**record, "padding": "x" * 100_000} for record in records])
        finally:
            database.execute("pragma max_page_count = 1000000")

    service.log_records = refused
    yield
    service.log_records = append


def test_a_log_that_is_in_use_stops_the_start(tmp_path):
    first, second = made_service(tmp_path), made_service(tmp_path)
    first.start()
    with pytest.raises(BadFile, match="is in use by process"):
        second.start()
    first.stop()


def test_too_many_waiting_questions_are_told_to_come_back(tmp_path):
    service = made_service(tmp_path, Slow(50), max_waiting=2, max_batch=1, gather_ms=0)
    with serving(service) as port, ThreadPoolExecutor(6) as pool:
        body = '{"target": 1}'
        found = list(
            pool.map(
                lambda _: call(port, "POST", "/explain", body, Content_Type="application/json"),
                range(6),
            )
        )
    statuses = sorted(status for status, _, _ in found)
    assert statuses[0] == 200
    assert statuses[-1] == 503
    assert {json.loads(content)["error"] for status, _, content in found if status == 503} == {
        "busy"
    }


def test_what_waits_is_answered_before_the_service_stops(tmp_path):
    service = made_service(tmp_path, Slow(20), max_batch=1)
    service.start()
    service.wait_until_warm()
    futures = [service.ask(question(k)) for k in range(4)]
    stopping = threading.Thread(target=service.stop)
    stopping.start()
    assert [future.result()["target"] for future in futures] == [0, 1, 2, 3]
    stopping.join()
    with pytest.raises(Exception, match="is stopping"):
        service.ask(question(1))
    assert len(entries(tmp_path)) == 4
    assert len(entries(tmp_path, "stop")) == 1


def test_a_caller_who_goes_away_takes_nothing_from_the_others(tmp_path):
    service = made_service(tmp_path, gather_ms=200)
    service.start()
    service.wait_until_warm()
    first, second = service.ask(question(1)), service.ask(question(2))
    first.cancel()
    assert second.result()["target"] == 2
    service.stop()
    assert [record["target"] for record in entries(tmp_path)] == [1, 2]


def test_an_explainer_that_wants_to_end_the_process_ends_nothing(tmp_path):
    leaving = gg.CallableExplainer(lambda *_: sys.exit(3), name="leaving")
    service = made_service(tmp_path, leaving)
    service.batch_explainer.warm_up = lambda: None
    (answer,) = answered(service, question(3))
    assert (answer["explainer"], flags(answer)[0]) == ("input_x_gradient", "fallback_error")


# --- what is told ---------------------------------------------------------------------------------


def test_affected_persons_learn_no_other_node(port):
    inside, outside = (
        ask(port, target=3, audience="internal"),
        ask(port, target=3, audience="affected person"),
    )
    assert inside["edges"]
    assert (outside["redacted"], outside["edges"], outside["opposing_edges"]) == (True, [], [])
    assert outside["num_neighbours"] == inside["num_neighbours"] > 0


@pytest.mark.parametrize(
    ("language", "begin"),
    [("en", "Subject"), ("de", "Betreff"), ("it", "Oggetto"), ("fr", "Objet")],
)
def test_texts_come_in_the_asked_language(port, language, begin):
    assert ask(port, target=3, language=language)["text"].startswith(begin)


def test_validation_is_told_in_flags_and_text(tmp_path):
    quality = {
        "input_x_gradient": {"edge_pertinence": (0.4, 0.6, False)},
        "saliency": {"edge_pertinence": (0.9, 0.6, True)},
    }
    service = made_service(tmp_path, [gg.InputXGradient(), gg.Saliency()], quality=quality)
    bad, good = answered(service, question(3), question(3, explainer="saliency"))
    assert (flags(bad), flags(good)) == (["below_threshold"], [])
    assert "the method did not meet 1 of 1 quality requirement when it was validated" in bad["text"]
    assert (
        "The method met its quality requirements when it was validated; this single "
        "explanation was not measured."
    ) in good["text"]


@pytest.mark.parametrize("audience", ["expert", "internal", "affected person"])
def test_an_explanation_that_was_not_measured_is_never_said_to_meet_or_miss_anything(
    tmp_path, audience
):
    quality = {
        "input_x_gradient": {"edge_pertinence": (0.4, 0.6, False)},
        "saliency": {"edge_pertinence": (0.9, 0.6, True)},
    }
    service = made_service(tmp_path, [gg.InputXGradient(), gg.Saliency()], quality=quality)
    answers = answered(
        service,
        question(3, audience=audience),
        question(3, audience=audience, explainer="saliency"),
    )
    logged = [record["text"] for record in entries(tmp_path)]
    assert sorted(logged) == sorted(answer["text"] for answer in answers)
    for text in logged:
        assert ("was not measured" in text) or ("single explanation was not checked" in text)
        assert not any(
            claim in text
            for claim in (
                "this explanation does not",
                "This explanation meets",
                "this explanation misses",
            )
        )


@pytest.mark.parametrize("spelling", ["affected person", "affected_person", "affected-person"])
def test_an_audience_may_be_spelled_as_on_the_command_line(tmp_path, spelling):
    asked = made_service(tmp_path).reader.read(
        json.dumps({"target": 3, "audience": spelling}).encode()
    )
    assert asked.audience == "affected person"


def test_names_are_used(tmp_path):
    names = {
        "features": ["income", "age", "debt", "rent"],
        "classes": ["declined", "granted"],
        "node": ("account", "accounts"),
    }
    (answer,) = answered(made_service(tmp_path, names=names), question(3))
    assert answer["prediction"]["name"] in ("declined", "granted")
    assert answer["features"][0]["name"] in names["features"]
    assert "account 3" in answer["text"]


def test_links_are_answered_too(tmp_path):
    product = tiny_model(
        gg.LinkRegressionModel,
        forward=lambda net, g: net(g.x, g.edge_index)[g.edge_label_index].prod(0).sum(1),
    )
    service = made_service(tmp_path, model=product)
    with serving(service) as port:
        assert ask(port, target=[3, 5])["target"] == [3, 5]
        for bad in ("3", "[3]", "[3, 3]", "[3, 5, 7]", "[3, 30]"):
            assert (
                call(
                    port,
                    "POST",
                    "/explain",
                    f'{{"target": {bad}}}',
                    Content_Type="application/json",
                )[0]
                == 422
            )


def test_figures_count_what_happened(tmp_path):
    with serving(made_service(tmp_path, Slow(30), budget_ms=100)) as port:
        ask(port, target=1)
        call(port, "GET", "/nowhere")
        text = call(port, "GET", "/metrics")[2].decode()
    for line in (
        'graphgauge_requests_total{route="/explain",status="200"} 1.0',
        'graphgauge_requests_total{route="other",status="404"} 1.0',
        'graphgauge_fallbacks_total{reason="time"} 1.0',
        "graphgauge_audit_entries 2.0",
        "graphgauge_answer_seconds_count 1.0",
    ):
        assert line in text
    assert "process_resident_memory_bytes" in text


def test_wrong_settings_are_refused(tmp_path):
    for changes in (
        {"token": "short"},
        {"token": "with a space in it"},
        {"budget_ms": 0},
        {"rate": float("nan")},
        {"port": 70000},
    ):
        with pytest.raises(BadSetting):
            Settings(**changes)
    with pytest.raises(BadSetting, match="needs explainers"):
        made_service(tmp_path, ["saliency"])
