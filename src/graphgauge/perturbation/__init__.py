"""Perturbation: edits of computation graphs, in the order of an explanation or at random, as batched curves."""

from graphgauge.perturbation.edges import edge_curves
from graphgauge.perturbation.orders import random_steps, steps_by_score

__all__ = ["edge_curves", "random_steps", "steps_by_score"]
