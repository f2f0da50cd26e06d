"""Perturbation: edits of computation graphs, in the order of an explanation or at random, as batched curves."""

from graphgauge.perturbation.edges import edge_curves
from graphgauge.perturbation.orders import random_steps, steps_by_score
from graphgauge.perturbation.references import Donors, References, donors, find_references

__all__ = ["Donors", "References", "donors", "edge_curves", "find_references", "random_steps", "steps_by_score"]
