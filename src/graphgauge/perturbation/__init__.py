"""Perturbation: edits of computation graphs, in the order of an explanation or at random."""

from graphgauge.perturbation.curves import Edits, Lines, Points, points, points_at
from graphgauge.perturbation.edges import EdgeEdits
from graphgauge.perturbation.features import FeatureEdits, feature_candidates
from graphgauge.perturbation.orders import orders_by_score, random_orders, renamed_orders
from graphgauge.perturbation.references import Donors, References, donors, find_references

__all__ = [
    "Donors",
    "EdgeEdits",
    "Edits",
    "FeatureEdits",
    "Lines",
    "Points",
    "References",
    "donors",
    "feature_candidates",
    "find_references",
    "orders_by_score",
    "points",
    "points_at",
    "random_orders",
    "renamed_orders",
]
