"""Checks of a diagnosis on the network: how far its messages reach, and how good it is."""

from collections.abc import Iterator

from graphgauge.guidelines.findings import (
    DiagnosedRun,
    Finding,
    load_rules,
    make_finding,
)


def find_far_edges(run: DiagnosedRun) -> Iterator[Finding]:
    """Find edges beyond the counted hops that change predictions, as with global attention."""
    network = run.results.made.get("network", {})
    far = network.get("edges_beyond_hops")
    least_change = load_rules()["diagnosis"]["least_change"]
    if not isinstance(far, dict) or far["largest_change"] <= least_change:
        return
    text = (
        f"Edges more than {network['hops']} hops away move a prediction by up to "
        f"{far['largest_change']:.2g} (the largest of {far['dropped']} drops), but a target's "
        f"edge scores cover {far['scored_per_target']:g} of {far['edges']} edges on average"
    )
    yield make_finding("far_edges", text, {name: float(value) for name, value in far.items()})


def find_poor_model(run: DiagnosedRun) -> Iterator[Finding]:
    """Report a network that nothing shows to be better than a trivial one."""
    if run.accuracy is not None and run.accuracy.is_poor:
        text = run.accuracy.warning
        numbers = {"score": run.accuracy.value}
        yield make_finding("poor_model", text[0].upper() + text[1:], numbers)


def find_unknown_accuracy(run: DiagnosedRun) -> Iterator[Finding]:
    """Report that the run does not say how good the model is."""
    if run.accuracy is None:
        text = "The accuracy (or r²) of the model on its task is not known"
        yield make_finding("unknown_accuracy", text, {})
