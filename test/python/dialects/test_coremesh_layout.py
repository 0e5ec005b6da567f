# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts as values: the type's attribute and back, and which core has which element."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.dialects.coremesh import Layout, Split, block_type
from tilewright.mlir import ir

#: Layouts of a matrix of 7 x 11.
LAYOUTS = [
    Layout(1, 1, (None, None)),
    Layout(3, 4, (Split("y"), Split("x"))),
    Layout(3, 4, (Split("x"), None)),
    Layout(3, 4, (None, Split("y", "ring"))),
    Layout(5, 5, (Split("y", "ring"), Split("x", "ring", skew=True))),
    Layout(5, 5, (Split("y", "ring", skew=True, rotate=3), Split("x"))),
    Layout(2, 3, (Split("y"), Split("x", skew=True))),
    Layout(4, 6, (Split("y"), Split("x", "ring", skew=True, rotate=2))),
    Layout(4, 6, (Split("y"), Split("x", skew=True, blocks=(4,)))),
    Layout(3, 2, (Split("y", blocks=(4,)), Split("x", rotate=1, blocks=(9,)))),
    Layout(3, 2, (Split("y", blocks=(0, 6, 1)), Split("x"))),
    Layout(3, 4, (Split("y", deal="cyclic"), Split("x", deal="cyclic"))),
    Layout(3, 4, (None, Split("x")), at_y=2),
    Layout(3, 4, (None, None), at_y=0, at_x=3),
]


def tensor(rows: int = 7, columns: int = 11) -> np.ndarray:
    return np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_cut_and_put_together(layout):
    a = tensor()
    shards = {core: layout.shard(a, core) for core in layout.holders()}
    assert {shard.shape for shard in shards.values()} == {layout.block_shape(a.shape)}
    np.testing.assert_array_equal(layout.assemble(shards, a.shape), a)
    copies = layout.height * layout.width if layout.at_y is None else 1
    kept = sum(np.count_nonzero(shard) for shard in shards.values())
    split = [split for split in layout.splits if split is not None]
    axes = {one.axis for one in split}
    expected = (1 if "y" in axes or layout.at_y is not None else layout.height) * (
        1 if "x" in axes or layout.at_x is not None else layout.width
    )
    assert kept == a.size * expected <= a.size * copies * max(1, expected)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_attribute_and_back(layout):
    with ir.Context(), ir.Location.unknown():
        type_ = ir.RankedTensorType.get((7, 11), ir.F32Type.get(), layout.attribute())
        assert Layout.of(type_) == layout
        assert str(layout.attribute()) == str(layout)
        assert tuple(block_type(type_).shape) == layout.block_shape((7, 11))


def test_where_cannon_begins():
    """Core (I, J) along the rings has block (I, I + J) of A: the first round needs no move."""
    layout = Layout(5, 5, (Split("y", "ring"), Split("x", "ring", skew=True)))
    ring = [0, 2, 4, 3, 1]  # the walk of five cores
    for i, y in enumerate(ring):
        for j, x in enumerate(ring):
            np.testing.assert_array_equal(layout.indices(0, 10, (y, x)), [2 * i, 2 * i + 1])
            block = (i + j) % 5
            np.testing.assert_array_equal(layout.indices(1, 10, (y, x)), [2 * block, 2 * block + 1])


def test_a_grid_that_is_not_square():
    """2 x 3 cores count six blocks: a core of a row has two of them, of a column three."""
    layout = Layout(2, 3, (None, Split("x", skew=True)))
    blocks = [[layout.indices(1, 6, (y, x)).tolist() for x in range(3)] for y in range(2)]
    assert blocks == [[[0, 1], [2, 3], [4, 5]], [[3, 4], [5, 0], [1, 2]]]


def test_shifts_rotate():
    a = tensor(6, 12)
    before = Layout(3, 4, (Split("y"), Split("x", "ring")))
    after = Layout(3, 4, (Split("y"), Split("x", "ring", rotate=1)))
    ring = [0, 2, 3, 1]
    for place, x in enumerate(ring):
        following = ring[(place + 1) % 4]
        np.testing.assert_array_equal(after.shard(a, (1, x)), before.shard(a, (1, following)))


@pytest.mark.parametrize("count", range(15))
def test_balanced(count):
    """Counts differ by one at most, the oldest tokens are in the first row, order stays (WaferLLM, section 4.3)."""
    layout = Layout(4, 1, (Split("y", deal="balanced"),))
    rows = [layout.indices(0, 14, (y, 0), count) for y in range(4)]
    real = [row[row < 14].tolist() for row in rows]
    assert sum(real, []) == list(range(count))
    assert max(map(len, real)) - min(map(len, real)) <= 1
    assert {len(row) for row in rows} == {4}


def test_balanced_needs_a_count():
    with pytest.raises(UserError, match="balanced dimension depends on their number"):
        Layout(4, 1, (Split("y", deal="balanced"),)).indices(0, 14, (0, 0))


def test_copies_must_be_equal():
    layout = Layout(2, 2, (None, Split("x")))
    shards = {core: layout.shard(tensor(2, 4), core) for core in layout.holders()}
    shards[1, 1] = shards[1, 1] + 1
    with pytest.raises(UserError, match=r"core \(y=1, x=1\) has another copy"):
        layout.assemble(shards, (2, 4))


def test_other_types_have_no_layout():
    with ir.Context():
        assert Layout.of(ir.F32Type.get()) is None
        assert Layout.of(ir.Type.parse("tensor<4xf32>")) is None
        assert Layout.of(ir.Type.parse("tensor<4x4xf32, #sparse_tile.tesa<mask>>")) is None
        with pytest.raises(ValueError, match="not a tensor with a #coremesh.layout"):
            block_type(ir.Type.parse("tensor<4xf32>"))
