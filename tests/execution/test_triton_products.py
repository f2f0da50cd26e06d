"""Products with sparse matrices by GPU kernels, against sums that are written out."""

import pytest
import torch

from graphgauge.core.seeds import make_generator
from graphgauge.execution.fused_messages import MatrixEntries
from graphgauge.execution.triton_products import _PART, RowParts

WIDTHS = [1, 3, 16, 64, 128, 200]


def random_entries(seed, rows, device, hub=0):
    """A matrix with some empty rows, and a first row with ``hub`` more entries."""
    random = make_generator(seed)
    size = torch.randint(0, 4, (rows,), generator=random)
    size[0] += hub
    start = torch.cat([torch.zeros(1, dtype=torch.int64), size.cumsum(0)])
    column = torch.randint(rows, (int(size.sum()),), generator=random)
    none = torch.empty(0, dtype=torch.int64)
    given = (none, none, start.int(), column.int())
    return MatrixEntries(*(part.to(device) for part in given))


def literal_product(row, column, value, x):
    """Entry by entry."""
    out = torch.zeros_like(x)
    for e, (to, source) in enumerate(zip(row.tolist(), column.tolist(), strict=True)):
        out[to] += value[e] * x[source]
    return out


@pytest.mark.numeric
@pytest.mark.parametrize("hub", [0, _PART, _PART + 1, 20 * _PART + 5])
@pytest.mark.parametrize("width", WIDTHS)
def test_products_and_dots_are_those_written_out(width, hub, device):
    entries = random_entries(width + hub, 60, device, hub)
    random = make_generator(1)
    value, x, other = (
        torch.randn(*size, generator=random, dtype=torch.float64)
        for size in ((len(entries.column),), (60, width), (60, width))
    )
    at = entries.row.cpu(), entries.column.cpu()
    on_device = [part.to(device) for part in (value, x, other)]
    close = {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(
        entries.product(*on_device[:2]).cpu(), literal_product(*at, value, x), **close
    )
    torch.testing.assert_close(
        entries.turned_product(*on_device[:2]).cpu(),
        literal_product(*at[::-1], value, x),
        **close,
    )
    torch.testing.assert_close(
        entries.dots(*on_device[1:]).cpu(), (x[at[0]] * other[at[1]]).sum(1), **close
    )


@pytest.mark.numeric
def test_products_have_the_same_bits_in_every_run(device):
    entries = random_entries(0, 5000, device, hub=4000)
    random = make_generator(2)
    value, x = (torch.randn(*size, generator=random).to(device) for size in (
        (len(entries.column),), (5000, 32)))  # fmt: skip
    first = entries.product(value, x)
    assert all(torch.equal(first, entries.product(value, x)) for _ in range(5))


@pytest.mark.parametrize("hub", [0, 1, _PART, 7 * _PART + 1])
def test_parts_hold_every_entry_once_and_each_row_has_one_place(hub):
    entries = random_entries(hub, 40, "cpu", hub)
    parts = RowParts.from_rows(entries.start)
    covered = [e for a, b in zip(parts.start.tolist(), parts.end.tolist(), strict=True)
               for e in range(a, b)]  # fmt: skip
    assert covered == list(range(len(entries.column)))
    assert all(0 <= b - a <= _PART for a, b in zip(parts.start, parts.end, strict=True))
    single = {-1 - place for place in parts.place.tolist() if place < 0}
    assert single | set(parts.long_row.tolist()) == set(range(40))
    assert sorted(p for p in parts.place.tolist() if p >= 0) == list(range(parts.num_sums))
    count = entries.start.diff()[parts.long_row]
    assert parts.long_start.diff().tolist() == [-(-int(c) // _PART) for c in count]
