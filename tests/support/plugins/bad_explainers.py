"""Explainers that do what foreign code may do. Installed as a plug-in for the tests, by a folder on
the path.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from graphgauge.explainers import BaseExplainer
from graphgauge.explainers.base import Scores, zero_edge_scores, zero_feature_scores


@dataclass(frozen=True)
class Bad(BaseExplainer):
    """Constant scores, and one misdeed before."""

    signed = True
    deterministic = True

    def misdeed(self, model, graphs):
        """Nothing yet."""

    def scores(self, model, graphs, seeds):
        """Ones."""
        spoiled = self.misdeed(model, graphs)
        return (
            Scores(zero_feature_scores(graphs) + 1, zero_edge_scores(graphs) + 1)
            if spoiled is None
            else spoiled
        )


@dataclass(frozen=True)
class Raising(Bad):
    """Raises."""

    name = "raising"

    def misdeed(self, model, graphs):
        """An error with a message."""
        raise RuntimeError("I do not feel like it")


@dataclass(frozen=True)
class Leaving(Bad):
    """Calls sys.exit."""

    name = "leaving"

    def misdeed(self, model, graphs):
        """Leave politely."""
        sys.exit(3)


@dataclass(frozen=True)
class Exiting(Bad):
    """Ends the process."""

    name = "exiting"

    def misdeed(self, model, graphs):
        """Leave at once."""
        os._exit(3)


@dataclass(frozen=True)
class Hanging(Bad):
    """Never returns."""

    name = "hanging"

    def misdeed(self, model, graphs):
        """Wait."""
        time.sleep(10_000)


@dataclass(frozen=True)
class Nan(Bad):
    """Scores that are no numbers."""

    name = "nan"

    def misdeed(self, model, graphs):
        """NaN on both sides."""
        return Scores(zero_feature_scores(graphs) + torch.nan, zero_edge_scores(graphs) + torch.nan)


@dataclass(frozen=True)
class Misshapen(Bad):
    """Scores of a wrong shape."""

    name = "misshapen"

    def misdeed(self, model, graphs):
        """One score too many."""
        return Scores(None, torch.ones(len(graphs.edge) + 1))


@dataclass(frozen=True)
class EditsX(Bad):
    """Edits the features in place."""

    name = "edits_x"

    def misdeed(self, model, graphs):
        """Add one to every feature."""
        graphs.source.x.add_(1)


@dataclass(frozen=True)
class LeavesTraces(Bad):
    """Leaves the network in training mode, without gradients and with a hook that turns its answers
    around.
    """

    name = "leaves_traces"

    def misdeed(self, model, graphs):
        """Nothing is tidied up."""
        model.net.train().requires_grad_(False)
        model.net.register_forward_hook(lambda net, inputs, out: -out)


@dataclass(frozen=True)
class ChangesWeights(Bad):
    """Changes the weights."""

    name = "changes_weights"

    def misdeed(self, model, graphs):
        """Double them."""
        with torch.no_grad():
            for weight in model.net.parameters():
                weight.mul_(2)


@dataclass(frozen=True)
class Chatty(Bad):
    """Prints a lot, but is good otherwise."""

    name = "chatty"

    def misdeed(self, model, graphs):
        """Talk."""
        for _ in range(1000):
            print("x" * 1000)


@dataclass(frozen=True)
class Mended(Bad):
    """Raises until it is mended: while MENDED_IS_BROKEN is set."""

    name = "mended"

    def misdeed(self, model, graphs):
        """An error, at times."""
        if os.environ.get("MENDED_IS_BROKEN"):
            raise RuntimeError("not yet mended")


@dataclass(frozen=True)
class Waiting(Bad):
    """Takes its time where there is a gate, and waits while the gate is closed; its process is then
    known to be there.
    """

    name = "waiting"

    def misdeed(self, model, graphs):
        """Arrive, wait."""
        gate = Path(os.environ["GATE"]) if "GATE" in os.environ else None
        time.sleep(0.3 if gate else 0)
        while gate and not (gate / "open").exists():
            (gate / f"{os.getpid()}").touch()
            time.sleep(0.05)
