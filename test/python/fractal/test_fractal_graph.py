# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Task dependence graphs: of the example programs, and of random ones, whose dependences a run of them shows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from examples.fractal import attention, b2b_gemm, bigbird, dilated_lstm, grid_rnn, stacked_lstm

import tilewright.fractal as ft
from tilewright.core.errors import UnsupportedError
from tilewright.fractal.graph import Block, Graph, graph_of

PROGRAMS = {
    "stacked_lstm": (stacked_lstm.program(8), {"xss": (64, 3), "ws": (32, 4), "us": (32, 4), "bs": (32, 4)}),
    "dilated_lstm": (dilated_lstm.program(8), {"xss": (3, 50), "ws": (6,), "us": (6,), "bs": (6,)}),
    "grid_rnn": (
        grid_rnn.program(8),
        {"sources": (2, 10), "targets": (2, 10)} | {name: (32,) for name in ("wx", "ux", "bx", "wy", "uy", "by")},
    ),
    "b2b_gemm": (b2b_gemm.program(8, 8, 8, 8), {"a": (4, 5), "b": (6, 5), "c": (7, 6)}),
    "attention": (attention.program(8, 4), {"qsss": (2, 2, 4), "ksss": (2, 2, 4), "vsss": (2, 2, 4)}),
    "bigbird": (bigbird.program(8, 16), {"qss": (2, 8), "kss": (2, 8), "vss": (2, 8)}),
}


def graph(name: str) -> Graph:
    program, lengths = PROGRAMS[name]
    return graph_of(program.trace(lengths).module_text)


def summary(block: Block) -> tuple:
    """Regions, distances, rows and steps."""
    order = block.order
    return len(block.regions), set(block.distances), order and order.rows, order and order.steps


def places(block: Block, source: str) -> list[tuple[str, ...]]:
    return [read.place for read in block.reads if read.source == source]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Layer, time, batch: a layer and a time later, 32 + 64 - 1 steps.
        ("stacked_lstm", [(4, {(1, 0, 0), (0, 1, 0)}, ("d0 + d1", "d0", "d2"), "95")]),
        # Sentence, layer, row, column: 32 + 10 + 10 - 2 steps.
        (
            "grid_rnn",
            [(8, {(0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)}, ("d1 + d2 + d3", "d1", "d2", "d0"), "50")],
        ),
        (
            "b2b_gemm",
            [
                (0, set(), None, None),
                (2, {(0, 0, 0, 1)}, ("d3", "d0", "d1", "d2"), "5"),
                (0, set(), None, None),
                (2, {(0, 0, 1)}, ("d2", "d0", "d1"), "6"),
            ],
        ),
        ("attention", [(2, {(0, 0, 0, 1)}, ("d3", "d0", "d1", "d2"), "4")]),
        ("bigbird", [(0, set(), None, None)] * 3),
        # A block per layer, each with twice the groups, of half the length.
        (
            "dilated_lstm",
            [(2, {(0, 1)}, ("d1", "d0"), "50")]
            + [(2, {(0, 0, 1)}, ("d2", "d0", "d1"), steps) for steps in ("25", "13", "7", "4", "2")],
        ),
    ],
)
def test_example(name: str, expected: list[tuple]) -> None:
    found = graph(name)
    assert [summary(block) for block in found.blocks] == expected
    assert not any(block.nonuniform for block in found.blocks)


def test_accesses_of_two_products() -> None:
    blocks = graph("b2b_gemm").blocks
    assert places(blocks[0], "a") == [("d0", "d3")]
    assert places(blocks[0], "b") == [("d2", "d3")]
    assert places(blocks[2], "c") == [("d1", "d2")]
    assert places(blocks[1], "block 1") == [("d0", "d1", "d2", "d3 - 1")]
    assert places(blocks[3], "block 3") == [("d0", "d1", "d2 - 1")]


def test_windows_go_round() -> None:
    """Rows two to five, each with the blocks beside it: (i + 2 - 1 + u) mod 8."""
    middle = graph("bigbird").blocks[2]
    assert ("d0", "(d1 + d2 + 1) mod 8") in places(middle, "kss")
    assert places(middle, "qss") == [("d0", "d1 + 2")]


def test_groups_of_groups() -> None:
    """A layer reads the one before through both groupings, as one map."""
    assert places(graph("dilated_lstm").blocks[3], "block 2.0") == [("d0", "d1 mod 4", "d2 * 2 + d1 floordiv 4")]


def test_merges() -> None:
    """Two products become one nest; rows of all blocks go together, those of windows stay apart."""
    assert graph("b2b_gemm").deep == ((0, 1, 4), (1, 2, 3), (2, 3, 3))
    rows = graph("bigbird")
    assert rows.wide == ((0, 1),)
    assert rows.refused == ("0 and 2: their domains differ", "1 and 2: their domains differ")


def test_explain() -> None:
    program, lengths = PROGRAMS["stacked_lstm"]
    text = program.explain(lengths)
    assert "block 0: fold left d0 < 32, scan left d1 < 64, map d2 < 3" in text
    assert "reads xss[d1, d2] where d0 == 0" in text
    assert "reads its own block 0.0[d0 - 1, d1, d2] where d0 - 1 >= 0" in text
    assert "order (d0 + d1, d0, d2): 95 steps" in text
    assert "0 <= j0 < 95, max(0, j0 - 63) <= j1 < min(32, j0 + 1), 0 <= j2 < 3" in text
    assert "result 0[d0, d1] = block 0.0[31, d0, d1]" in text


def test_explain_without_lengths() -> None:
    text = grid_rnn.program(8).explain()
    assert "s0 is the length of sources at level 0" in text
    assert "block 0: map d0 < s0, fold left d1 < s4, scan left d2 < s1, scan left d3 < s3" in text
    assert "order (d1 + d2 + d3, d1, d2, d0): s1 + s3 + s4 - 2 steps" in text
    assert "result 0[d0, d1, d2] = sources[d0, d1] where s4 == 0" in text


def test_nothing_to_explain() -> None:
    @ft.function
    def double(x: ft.Tensor[4]) -> ft.Tensor[4]:
        return x + x

    with pytest.raises(UnsupportedError, match="no operation on lists"):
        double.explain()


class Nest:
    """A random perfect nest of loops, with states that are lists, seen through access ops, or closures."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.depth = int(rng.integers(1, 4))
        self.lengths = [int(n) for n in rng.integers(1, 5, self.depth)]
        kinds = ("map", "scanl", "scanr", "foldl", "foldr")
        self.kinds = [kinds[k] for k in rng.choice(5, self.depth, p=(0.2, 0.3, 0.15, 0.2, 0.15))]
        self.views = [int(view) for view in rng.integers(0, 4, self.depth)]
        #: Levels of what each loop gives.
        self.levels = [0]
        for kind in reversed(self.kinds):
            self.levels.insert(0, self.levels[0] + (not kind.startswith("fold")))

    def run(self, cell: Any, zero: Any, xs: Any) -> Any:
        self.cell, self.zero = cell, zero
        return self.loop(0, (xs,), ())

    def loop(self, level: int, lists: tuple, around: tuple) -> Any:
        """Lists to be walked over, and leaves of states that cannot be."""
        if level == self.depth:
            return self.cell(*lists, *around)
        kind = self.kinds[level]
        if kind == "map":
            return ft.map(lambda *xs: self.loop(level + 1, xs, around), *lists)

        def step(state: Any, *xs: Any) -> Any:
            if self.levels[level + 1] == self.depth - level - 1:
                return self.loop(level + 1, (self.seen(level, state), *xs), around)
            for _ in range(self.levels[level + 1]):
                state = state[0] if self.views[level] % 2 else state[-1]
            return self.loop(level + 1, xs, (state, *around))

        init = self.zero
        inside = zip(self.kinds[level + 1 :], self.lengths[level + 1 :], strict=True)
        for length in reversed([n for kind, n in inside if not kind.startswith("fold")]):
            init = ft.repeat(init, length)
        return getattr(ft, kind)(step, init, *lists)

    def seen(self, level: int, state: Any) -> Any:
        """The state's outermost list as it is, backward, or its neighbours."""
        view = self.views[level]
        if level + 1 == self.depth or view == 0:
            return state
        if view == 1:
            return ft.reverse(state)
        fill = self.zero
        for length in reversed(self.lengths[level + 2 :]):
            fill = ft.repeat(fill, length)
        return ft.shift(state, 1, fill) if view == 2 else ft.shift(state, -1, fill)

    def points(self) -> list[tuple[int, ...]]:
        """Iterations in the order in which they run."""
        pairs = zip(self.kinds, self.lengths, strict=True)
        return list(itertools.product(*(range(n)[::-1] if kind.endswith("r") else range(n) for kind, n in pairs)))

    def shown(self) -> set[tuple[int, ...]]:
        """Distances that a run shows: each result is a number that says which iteration it is of."""
        seen: list[list[int]] = []

        def cell(*values: Any) -> Any:
            seen.append([int(value[0]) for value in values])
            return np.full((1,), len(seen), np.float32)

        zeros = np.zeros((*self.lengths, 1), np.float32)
        self.run(cell, np.zeros(1, np.float32), ft.Lists.from_array(zeros, self.depth))
        points = self.points()
        assert len(seen) == len(points)
        read = ((point, points[n - 1]) for point, values in zip(points, seen, strict=True) for n in values if n)
        return {tuple(a - b for a, b in zip(*pair, strict=True)) for pair in read}

    def block(self) -> Block:
        def nest(xs):
            return self.run(lambda *values: ft.tanh(sum(values[1:], values[0])), ft.zeros(1), xs)

        nest.__annotations__ = {"xs": ft.Array[self.depth, (1,)]}
        text = ft.function(nest).trace({"xs": tuple(self.lengths)}).module_text
        (block,) = graph_of(text).blocks
        return block


def value(expr: str, dims: tuple[int, ...]) -> int:
    names = {f"{letter}{i}": n for letter in "dj" for i, n in enumerate(dims)}
    return eval(expr.replace("floordiv", "//").replace("mod", "%"), {}, names)


def holds(constraints: tuple[str, ...], dims: tuple[int, ...]) -> bool:
    return all(value(constraint, dims) for constraint in constraints)


def ordered(bounds: Any, outer: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Points within bounds, each dimension in terms of those before."""
    if len(outer) == len(bounds):
        return [outer]
    lower, upper = bounds[len(outer)]
    first = max(value(exact(low), outer) for low in lower)
    return [
        point
        for n in range(first, min(value(exact(up), outer) for up in upper))
        for point in ordered(bounds, (*outer, n))
    ]


def exact(expr: str) -> str:
    """Python has no division that rounds up."""
    left, found, divisor = expr.partition(" ceildiv ")
    return f"-(-({left}) // {divisor})" if found else expr


@pytest.mark.parametrize("seed", range(40))
def test_random_nest(seed: int) -> None:
    nest = Nest(seed)
    block, shown = nest.block(), nest.shown()
    points = set(nest.points())
    assert {point for point in points if holds(block.domain, point)} == points
    read = {
        tuple(a - value(b, point) for a, b in zip(point, read.place, strict=True))
        for read in block.reads
        if read.own
        for point in points
        if holds(read.where, point)
    }
    assert read == shown
    assert set(block.distances) <= shown
    assert block.nonuniform or set(block.distances) == shown
    covered = [{point for point in points if holds(region.where, point)} for region in block.regions]
    assert sum(map(len, covered)) == len(points) or not covered
    if not shown:
        assert block.order is None
        return
    order = block.order
    assert order is not None
    assert all(value(order.rows[0], distance) >= 1 for distance in shown)
    now = {tuple(value(row, point) for row in order.rows) for point in points}
    assert len(now) == len(points)
    assert set(ordered(order.bounds)) == now
    firsts = [point[0] for point in now]
    assert order.steps == str(max(firsts) - min(firsts) + 1)
    for region, bounds in zip(covered, order.regions, strict=True):
        assert set(ordered(bounds)) == {tuple(value(row, point) for row in order.rows) for point in region}
