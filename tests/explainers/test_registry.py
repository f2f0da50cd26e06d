"""Explainers by name: ours, PyG's and plug-ins, which never replace ours and are imported only when
asked for.
"""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadSetting, MissingExtra, UnknownName
from graphgauge.explainers import EXPLAINERS, registry


@dataclass(frozen=True)
class Plugged(gg.RandomExplainer):
    """An explainer from elsewhere."""

    name = "plugged"
    strength: float = 1.0


@pytest.fixture
def offered(monkeypatch):
    """Entry points of installed packages, as (name, address)."""
    plugs = []
    monkeypatch.setitem(sys.modules, "plugs_for_tests", sys.modules[__name__])

    def offer(**addresses):
        plugs.extend(
            EntryPoint(name, address, registry.ENTRY_POINT_GROUP)
            for name, address in addresses.items()
        )
        monkeypatch.setattr(
            registry,
            "entry_points",
            lambda group: plugs if group == "graphgauge.explainers" else [],
        )

    return offer


def test_every_built_in_is_found_by_its_name():
    assert {*EXPLAINERS, "pyg:GNNExplainer"} <= set(gg.explainer_names())
    for name, explainer in EXPLAINERS.items():
        assert gg.find_explainer(name) == explainer()
    assert gg.find_explainer("integrated_gradients", steps=7).steps == 7
    assert gg.find_explainer("pyg:GNNExplainer", options={"epochs": 3}) == gg.PyGExplainer(
        "GNNExplainer", {"epochs": 3}
    )


@pytest.mark.parametrize(
    "explainer",
    [gg.IntegratedGradients(steps=3), gg.PyGExplainer("DummyExplainer", edge_mask=None)],
)
def test_an_explanation_names_what_made_it(explainer, tmp_path):
    (x,) = explainer.explain(gg.NodeClassificationModel(build(Stack, GCNConv), random_graph()), [3])
    x.save(tmp_path / "x")
    again = gg.Xplanation.load(tmp_path / "x")
    assert gg.find_explainer(again.explainer, **again.params) == explainer


def test_a_plug_in_is_listed_without_importing_it(offered):
    offered(plugged="plugs_for_tests:Plugged", broken="no_such_package.at_all:Thing")
    assert {"plugged", "broken"} <= set(gg.explainer_names())
    assert gg.find_explainer("plugged", strength=2.0) == Plugged(strength=2.0)
    assert gg.find_explainer("saliency") == gg.Saliency()


def test_a_plug_in_that_cannot_be_imported_is_named_when_asked_for(offered):
    offered(broken="no_such_package.at_all:Thing", nothing="plugs_for_tests:pytest")
    with pytest.raises(
        MissingExtra,
        match=r"'broken' comes from no_such_package.at_all:Thing "
        r".*No module named 'no_such_package'",
    ):
        gg.find_explainer("broken")
    with pytest.raises(BadSetting, match=r"'nothing' of .* must be a subclass of BaseExplainer"):
        gg.find_explainer("nothing")


def test_a_plug_in_does_not_replace_a_built_in(offered):
    offered(saliency="plugs_for_tests:Plugged")
    with pytest.warns(
        UserWarning, match="the explainer 'saliency' of plugs_for_tests:Plugged is left out"
    ):
        assert gg.find_explainer("saliency") == gg.Saliency()
    assert gg.find_explainer("random") == gg.RandomExplainer()
    offered(**{"pyg:GNNExplainer": "plugs_for_tests:Plugged"})
    with pytest.warns(UserWarning, match="is left out: PyG has one of that name"):
        assert gg.find_explainer("pyg:GNNExplainer") == gg.PyGExplainer("GNNExplainer")


def test_two_plug_ins_of_one_name_are_refused_when_asked_for(offered):
    offered(twice="plugs_for_tests:Plugged")
    offered(twice="plugs_for_tests:Other")
    with pytest.raises(
        BadSetting,
        match="is offered by plugs_for_tests:Other, plugs_for_tests:Plugged: uninstall all but one",
    ):
        gg.find_explainer("twice")


def test_mistakes_are_told():
    with pytest.raises(
        UnknownName, match=r"No explainer is called 'salience'. Did you mean 'saliency'"
    ):
        gg.find_explainer("salience")
    with pytest.raises(
        BadSetting,
        match=r"cannot be built with \['step'\]: .*'step'. "
        "Its parameters: explain_output, edge_factor, steps",
    ):
        gg.find_explainer("integrated_gradients", step=3)
    with pytest.raises(
        BadSetting, match=r"'random' cannot be built with \['seed'\]: .* Its parameters: none"
    ):
        gg.find_explainer("random", seed=3)
    with pytest.raises(
        BadSetting,
        match=r"'pyg:GNNExplainer' was asked for, but params .* make 'pyg:DummyExplainer'",
    ):
        gg.find_explainer("pyg:GNNExplainer", algorithm="DummyExplainer")
    with pytest.raises(BadSetting, match="steps must be a whole number"):
        gg.find_explainer("integrated_gradients", steps=0)


def installed(folder, name):
    """A package that offers a plug-in, as an installer leaves it."""
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text(
        f"[{registry.ENTRY_POINT_GROUP}]\n{name} = plugs_for_tests:Plugged\n"
    )


def test_installed_packages_are_read_once_and_again_when_one_comes_or_goes(tmp_path, monkeypatch):
    reads, look = [], registry.entry_points
    monkeypatch.setattr(
        registry, "entry_points", lambda group: reads.append(group) or look(group=group)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    installed(tmp_path, "first_plug")
    for _ in range(5):
        assert "first_plug" in gg.explainer_names()
        assert gg.find_explainer("saliency") == gg.Saliency()
    assert len(reads) == 1
    os.utime(tmp_path, ns=(0, 0))
    installed(tmp_path, "second_plug")
    assert {"first_plug", "second_plug"} <= set(gg.explainer_names())
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    assert not {"first_plug", "second_plug"} & set(gg.explainer_names())
    assert len(reads) == 3
