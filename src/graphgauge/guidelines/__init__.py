"""Guidelines: thresholds, verdicts, recommendation, diagnosis and checklist; data and rules on
results.
"""

from graphgauge.guidelines.book import (
    KINDS,
    band,
    guide,
    paper_table,
    rank_of,
    shipped_benchmark,
    transfer,
)
from graphgauge.guidelines.deployment import Point, checklist
from graphgauge.guidelines.diagnosis import diagnose
from graphgauge.guidelines.document import requirements_document
from graphgauge.guidelines.findings import Finding
from graphgauge.guidelines.judging import Check, check, verdicts
from graphgauge.guidelines.recommendation import Recommendation, consult, recommend
from graphgauge.guidelines.requirements import Requirements

__all__ = [
    "KINDS",
    "Check",
    "Finding",
    "Point",
    "Recommendation",
    "Requirements",
    "band",
    "check",
    "checklist",
    "consult",
    "diagnose",
    "guide",
    "paper_table",
    "rank_of",
    "recommend",
    "requirements_document",
    "shipped_benchmark",
    "transfer",
    "verdicts",
]
