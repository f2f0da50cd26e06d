"""Every metric by its name."""

from typing import Any

from graphgauge.metrics.base import (
    Metric,
)
from graphgauge.metrics.compactness import (
    EffectiveCompactness,
)
from graphgauge.metrics.fidelity import (
    Characterization,
    DeletionAuc,
    FidelityMinus,
    FidelityMinusAuc,
    FidelityPlus,
    FidelityPlusAuc,
    InsertionAuc,
    Sparsity,
    Unfaithfulness,
)
from graphgauge.metrics.ground_truth import (
    Auroc,
    AveragePrecision,
    F1AtK,
    Jaccard,
    PrecisionAtK,
    RecallAtK,
)
from graphgauge.metrics.pertinence import (
    Pertinence,
    PertinenceAbs,
    PertinenceP,
    PertinenceRank,
    PertinenceTied,
)
from graphgauge.metrics.stability import (
    EdgeStability,
    EdgeStabilityCorrected,
    FeatureStability,
    FeatureStabilityCorrected,
)

#: every metric by its name; those on curves serve features and edges alike
METRICS: dict[str, type[Metric[Any]]] = {
    metric.name: metric
    for metric in (
        EffectiveCompactness,
        Pertinence,
        PertinenceTied,
        PertinenceRank,
        PertinenceP,
        PertinenceAbs,
        FeatureStability,
        EdgeStability,
        FeatureStabilityCorrected,
        EdgeStabilityCorrected,
        DeletionAuc,
        FidelityPlus,
        FidelityMinus,
        Characterization,
        Unfaithfulness,
        InsertionAuc,
        FidelityPlusAuc,
        FidelityMinusAuc,
        Sparsity,
        Auroc,
        AveragePrecision,
        Jaccard,
        PrecisionAtK,
        RecallAtK,
        F1AtK,
    )
}
