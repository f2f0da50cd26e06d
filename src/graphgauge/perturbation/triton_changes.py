"""A GPU kernel for the changes that substituted features make to a linear map (Triton, optional).

The plain way (`SubstitutedFeatures.linear`) writes the changes of a few steps of all pairs of line
and node, sums them up, and takes from the sums the rows that copies need: about ten passes over
memory. The kernel keeps the sum of a pair in registers while it walks along the steps, and adds it
to a row as soon as that row's step is reached. Unedited rows that repeat are read once for a pair,
and never written. Both ways accumulate in double precision.

Without Triton, or on a CPU, the plain way is taken.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# arguments of a kernel are pointers and numbers of Triton, which has no types for them

from torch import Tensor

try:
    import triton
    import triton.language as tl

    _HAS_TRITON = True
except ImportError:
    _HAS_TRITON = False

_LONGEST_BLOCK = 64  #: columns that one program computes


def add_changes(
    rows: Tensor,
    row_of: Tensor,
    order: Tensor,
    pairs: tuple[Tensor, Tensor, Tensor, Tensor],
    source: Tensor,
    weight: Tensor,
    table: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Add to each row the changes of all steps up to its own, in place.

    Args:
        rows: Rows of the linear map; with a table, these are written and not read.  (rows, H)
        row_of: The row that ends after 0, 1, 2 ... steps of each pair; -1 for none.
            (P, 1 + S) int32
        order: The candidates of each line, those without an effect left out, then -1.  (L, S)
        pairs: Line, block, node and donor of each pair, each (P,).
        source: Features of the data.  (N, F)
        weight: The weight of the linear map, transposed, in double precision.  (F, H)
        table: Unedited rows, and which of them each pair has.  (table rows, H), (P,) int32
    """
    width = rows.size(1)
    block = min(_LONGEST_BLOCK, triton.next_power_of_2(width))
    grid = (len(pairs[0]), triton.cdiv(width, block))
    _add_changes_kernel[grid](
        rows, row_of, order, *pairs, source, weight, *(table or (rows, row_of)), source.size(1),
        order.size(1), width, table is not None, block,
    )  # fmt: skip


if _HAS_TRITON:

    @triton.jit
    def _add_changes_kernel(
        rows,
        row_of,
        order,
        pair_line,
        pair_block,
        pair_node,
        pair_donor,
        source,
        weight,
        table,
        table_row,
        num_features,
        num_steps,
        width,
        HAS_TABLE: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """One pair and some columns: walk along the steps with the sum in registers."""
        pair = tl.program_id(0).to(tl.int64)
        column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        is_column = column < width
        line = tl.load(pair_line + pair)
        own_block = tl.load(pair_block + pair)
        node = tl.load(pair_node + pair)
        donor = tl.load(pair_donor + pair)
        total = tl.zeros([BLOCK], dtype=tl.float64)
        if HAS_TABLE:
            first = tl.load(table_row + pair).to(tl.int64) * width + column
            total += tl.load(table + first, mask=is_column, other=0.0).to(tl.float64)
            row = tl.load(row_of + pair * (num_steps + 1)).to(tl.int64)
            tl.store(rows + row * width + column, total, mask=is_column & (row >= 0))
        for step in range(num_steps):
            candidate = tl.load(order + line * num_steps + step)
            applies = (candidate >= 0) & (candidate // num_features == own_block)
            feature = tl.where(applies, candidate % num_features, 0)
            new = tl.load(source + donor * num_features + feature).to(tl.float64)
            old = tl.load(source + node * num_features + feature).to(tl.float64)
            of_feature = tl.load(weight + feature * width + column, mask=is_column, other=0.0)
            total += tl.where(applies, (new - old) * of_feature, 0.0)
            row = tl.load(row_of + pair * (num_steps + 1) + step + 1).to(tl.int64)
            is_there = is_column & (row >= 0)
            place = rows + row * width + column
            if HAS_TABLE:
                tl.store(place, total, mask=is_there)
            else:
                before = tl.load(place, mask=is_there, other=0.0).to(tl.float64)
                tl.store(place, before + total, mask=is_there)
