"""Old names of public things still work, and say the new ones where they are used."""

import warnings

import pytest
import torch
from torch_geometric.data import Data

import graphgauge as gg
from graphgauge.core import warn_renamed


def test_the_warning_of_an_old_name_points_at_the_line_that_uses_it():
    with pytest.warns(DeprecationWarning, match="Stopped is now graphgauge") as caught:
        _ = gg.metrics.Stopped
    assert caught[0].filename == __file__

    def old_function():
        warn_renamed("old_function", "new_function")

    with pytest.warns(DeprecationWarning, match="^old_function is now new_function;") as caught:
        old_function()
    assert caught[0].filename == __file__


def test_new_names_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gg.metrics.StoppingPoints.__name__ == "StoppingPoints"


def test_old_methods_of_public_classes_still_work():
    data = Data(x=torch.zeros(2, 3), edge_index=torch.tensor([[0], [1]]))
    with pytest.warns(DeprecationWarning, match=r"Names\.of is now from_data"):
        assert gg.Names.of(data) == gg.Names.from_data(data)
