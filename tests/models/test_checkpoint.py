"""Weights from files: each tensor in its place, none missing, none left over."""

import pytest
import torch
from safetensors.torch import save_file, save_model
from torch import nn

from graphgauge.core.errors import BadFile, BadModel
from graphgauge.models import load_weights


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("count", torch.zeros(2))


@pytest.mark.parametrize("make", [Tied, lambda: nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))])
def test_a_network_comes_back_as_it_was(tmp_path, make):
    net, other = make(), make()
    save_model(net, tmp_path / "w.safetensors")
    load_weights(other, tmp_path / "w.safetensors")
    assert all(
        torch.equal(value, other.state_dict()[name]) for name, value in net.state_dict().items()
    )


def test_lazy_layers_get_their_shape_from_the_file(tmp_path):
    save_file(nn.Linear(2, 3).state_dict(), tmp_path / "w.safetensors")
    net = nn.LazyLinear(3)
    load_weights(net, tmp_path / "w.safetensors")
    assert net.weight.shape == (3, 2)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"weight": torch.zeros(3, 2)}, r"not those of Linear: bias is missing in the file\.$"),
        (
            {"weight": torch.zeros(3, 2), "bias": torch.zeros(3), "more": torch.zeros(1)},
            r"Linear: more is not in the network\.$",
        ),
        (
            {"weight": torch.zeros(2, 3), "bias": torch.zeros(3)},
            r"Linear: weight is \(2, 3\) in the file and \(3, 2\) in the network\.$",
        ),
        (
            {f"part{k}": torch.zeros(1) for k in range(4)},
            (
                r"Linear: weight is missing in the file; bias is missing in the file; part0 is "
                r"not .*; part1 is not .*; and 2 more\.$"
            ),
        ),
    ],
)
def test_weights_of_another_network_are_refused(tmp_path, tensors, message):
    save_file(tensors, tmp_path / "w.safetensors")
    with pytest.raises(BadModel, match=message):
        load_weights(nn.Linear(2, 3), tmp_path / "w.safetensors")


@pytest.mark.parametrize("name", ["w.pt", "w.pth", "w.bin", "w.ckpt", "w.pkl"])
def test_pickles_are_refused_with_how_to_convert_them(tmp_path, name):
    torch.save(nn.Linear(2, 3).state_dict(), tmp_path / name)
    with pytest.raises(
        BadFile,
        match=r"may be a pickle.*Convert it first: from safetensors\.torch import save_file",
    ):
        load_weights(nn.Linear(2, 3), tmp_path / name)


def test_damaged_files_are_refused(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(b"damaged")
    with pytest.raises(BadFile, match="cannot be read as weights"):
        load_weights(nn.Linear(2, 3), tmp_path / "w.safetensors")
