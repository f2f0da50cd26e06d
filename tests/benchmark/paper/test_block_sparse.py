"""Products with one sparse matrix of K blocks, against loops; and torch's warnings about sparse
matrices.
"""

import warnings

import pytest
import torch

from graphgauge.benchmark.paper.block_sparse import (
    _KNOWN_WARNINGS,
    BlockDiagonal,
    _without_known_warnings,
    edge_dots,
    sort_pattern,
    weighted_sums,
)
from graphgauge.core.seeds import make_generator

COUNT, ROWS, COLS, SIZE = 2, 4, 3, 5
PLACES = [(2, 1), (0, 0), (2, 0), (3, 2), (0, 2)]


@pytest.fixture
def blocks():
    row, col = torch.tensor(PLACES).t()
    return BlockDiagonal(sort_pattern(row, col, ROWS, COLS), COUNT)


def random(*shape, slope=True):
    return torch.randn(
        *shape, generator=make_generator(sum(shape)), dtype=torch.float64, requires_grad=slope
    )


def test_sums_and_dots_equal_their_definition(blocks):
    value, g, h = (
        random(COUNT, *shape, slope=False) for shape in ((len(PLACES),), (ROWS, SIZE), (COLS, SIZE))
    )
    total = torch.zeros(COUNT, ROWS, SIZE, dtype=torch.float64)
    for k in range(COUNT):
        for e, (row, col) in enumerate(sorted(PLACES)):
            total[k, row] += value[k, e] * h[k, col]
            assert edge_dots(blocks, g, h)[k, e].item() == pytest.approx(
                float(g[k, row] @ h[k, col]), abs=1e-12
            )
    torch.testing.assert_close(weighted_sums(blocks, value, h), total)


def test_slopes_are_those_of_differences(blocks):
    value, g, h = random(COUNT, len(PLACES)), random(COUNT, ROWS, SIZE), random(COUNT, COLS, SIZE)
    assert torch.autograd.gradcheck(lambda *given: weighted_sums(blocks, *given), (value, h))
    assert torch.autograd.gradcheck(lambda *given: edge_dots(blocks, *given), (g, h))


@pytest.fixture
def torch_always_warns():
    """Torch says such things once; here, every time."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def test_products_are_quiet_and_change_no_setting(blocks, torch_always_warns):
    before = list(warnings.filters), torch.sparse.check_sparse_tensor_invariants.is_enabled()
    value, h = random(COUNT, len(PLACES)), random(COUNT, COLS, SIZE)
    (
        weighted_sums(blocks, value, h).sum()
        + edge_dots(blocks, random(COUNT, ROWS, SIZE), h).sum()
    ).backward()  # warnings are errors
    assert (
        list(warnings.filters),
        torch.sparse.check_sparse_tensor_invariants.is_enabled(),
    ) == before


def test_only_the_known_warnings_are_ignored():
    with _without_known_warnings():
        for message in _KNOWN_WARNINGS:
            warnings.warn(f"{message}. And so on.", UserWarning, stacklevel=1)
        with pytest.raises(UserWarning, match="another"):
            warnings.warn("another", UserWarning, stacklevel=1)
    with pytest.raises(UserWarning, match="Sparse CSR"):
        warnings.warn(_KNOWN_WARNINGS[0], UserWarning, stacklevel=1)
