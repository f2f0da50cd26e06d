"""Every metric by its name."""

from graphgauge.metrics.base import AnyMetric
from graphgauge.metrics.compactness import EffectiveCompactness
from graphgauge.metrics.curve_areas import (
    DeletionAuc,
    InsertionAuc,
    Sparsity,
)
from graphgauge.metrics.fidelity import (
    Characterization,
    FidelityMinus,
    FidelityMinusAuc,
    FidelityPlus,
    FidelityPlusAuc,
    Unfaithfulness,
)
from graphgauge.metrics.ground_truth import (
    Auroc,
    AveragePrecision,
    Jaccard,
)
from graphgauge.metrics.ground_truth_at_k import (
    F1AtK,
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
    FeatureStability,
)
from graphgauge.metrics.stability_by_chance import (
    EdgeStabilityCorrected,
    FeatureStabilityCorrected,
)

#: every metric by its name; those on curves serve features and edges alike. The Evaluator measures
#: those that its settings ask for, in this order
METRICS: dict[str, type[AnyMetric]] = {
    metric.name: metric
    for metric in (
        EffectiveCompactness,
        Pertinence,
        PertinenceTied,
        PertinenceRank,
        PertinenceP,
        PertinenceAbs,
        FeatureStability,
        FeatureStabilityCorrected,
        EdgeStability,
        EdgeStabilityCorrected,
        FidelityPlus,
        FidelityMinus,
        Sparsity,
        DeletionAuc,
        InsertionAuc,
        FidelityPlusAuc,
        FidelityMinusAuc,
        Characterization,
        Unfaithfulness,
        Auroc,
        AveragePrecision,
        Jaccard,
        PrecisionAtK,
        RecallAtK,
        F1AtK,
    )
}
