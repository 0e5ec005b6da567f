# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences along diagonals give what they give row by row, wherever that is legal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
import tilewright.fractal as ft
from tilewright import reference
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.plan.cost import recurrence
from tilewright.plan.recurrences import plan_wavefronts

LEAF = (1, 4)
DOMAINS = [(1, 1), (1, 5), (4, 1), (2, 2), (3, 7), (7, 3)]
ROW, ROWS = ft.Array[1, LEAF], ft.Array[2, LEAF]


@ft.function
def layers(xs: ROW, ws: ft.Array[1, (4, 4)], vs: ft.Array[1, LEAF]) -> ROW:
    """A fold over layers of a scan over time: initial states differ between layers."""

    def layer(xs, w, v):
        return ft.scanl(lambda h, x: ft.tanh(h @ w + x), v * 2.0, xs)

    return ft.foldl(layer, xs, ws, vs)


@ft.function
def every_layer(xs: ROW, ws: ft.Array[1, (4, 4)], vs: ft.Array[1, LEAF]) -> ROWS:
    """All layers are results."""
    return ft.scanl(lambda xs, w, v: ft.scanl(lambda h, x: ft.tanh(h @ w + x * v), v, xs), xs, ws, vs)


@ft.function
def two_states(xs: ROW, ws: ft.Array[1, (4, 4)], vs: ft.Array[1, LEAF]) -> tuple[ROW, ROW]:
    """Both states of an outer recurrence go through the scan, in the other order; a third one is its own."""

    def layer(lists, w, v):
        def cell(state, x, y):
            h, c, s = state
            return ft.tanh(h @ w + y), c * v + x, s + x * y

        hs, cs, _ = ft.scanl(cell, (v, v + 1.0, ft.zeros(*LEAF)), *lists)
        return cs, hs

    return ft.foldl(layer, (xs, ft.map(lambda x: x * 0.5, xs)), ws, vs)


@ft.function
def grid(xss: ROWS, ys: ROW, v: ft.Tensor[LEAF]) -> ROWS:
    """Rows of a grid: a list of each row, and one that all rows share."""

    def row(above, xs):
        return ft.scanl(lambda left, up, x, y: ft.tanh(left + up * 0.5 + x * y), v, above, xs, ys)

    return ft.scanl(row, ys, xss)


@ft.function
def lists_of_states(xss: ROWS, ws: ft.Array[1, (4, 4)], v: ft.Tensor[LEAF]) -> ROWS:
    """The state of the scan is a list, which a third recurrence goes through."""

    def layer(xss, w):
        def row(above, xs):
            return ft.scanl(lambda left, up, x: ft.tanh((left + up) @ w + x), v, above, xs)

        return ft.scanl(row, ft.repeat(v, 3), xss)

    return ft.foldl(layer, xss, ws)


def arguments(program: ft.Function, rows: int, columns: int) -> list[np.ndarray]:
    """Random arguments for a domain of so many rows and columns."""
    rng = np.random.default_rng(rows * 10 + columns)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    if program is grid:
        return [normal(rows, columns, *LEAF), normal(columns, *LEAF), normal(*LEAF)]
    if program is projected_grid:
        return [normal(rows, columns, *LEAF), normal(columns, *LEAF), normal(4, 4), normal(4, 4), normal(*LEAF)]
    if program is lists_of_states:
        return [normal(columns, 3, *LEAF), normal(rows, 4, 4), normal(*LEAF)]
    return [normal(columns, *LEAF), normal(rows, 4, 4), normal(rows, *LEAF)]


def lengths_of(program: ft.Function, values: list[np.ndarray]) -> dict[str, tuple[int, ...]]:
    """The lengths of the lists among the arguments."""
    pairs = zip(program.parameters.items(), values, strict=True)
    return {name: value.shape[: kind.depth] for (name, kind), value in pairs if isinstance(kind, ft.Array)}


def recurrences(op: ir.Operation) -> Iterator[ir.Operation]:
    """Outer parts of the pairs that were found, outermost first."""
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                if decisions.PAIR.on(view.operation):
                    yield view.operation
                yield from recurrences(view.operation)


def flat(values: object) -> list[np.ndarray]:
    """Results as arrays."""
    return [
        v.array() if isinstance(v, ft.Lists) else np.asarray(v)
        for v in (values if isinstance(values, tuple) else (values,))
    ]


def in_reference(program: ft.Function, module: ir.Module, values: list[np.ndarray]) -> list[np.ndarray]:
    """What the reference interpreter makes of a module."""
    pairs = zip(values, program.parameters.values(), strict=True)
    lists = [ft.Lists.from_array(v, k.depth) if isinstance(k, ft.Array) else v for v, k in pairs]
    return flat(tuple(reference.run(module, "main", lists)))


@ft.function
def projected_grid(xss: ROWS, ys: ROW, w: ft.Tensor[4, 4], u: ft.Tensor[4, 4], v: ft.Tensor[LEAF]) -> ROWS:
    """Rows that share weights, one of which multiplies what needs no state."""

    def row(above, xs):
        return ft.scanl(lambda left, up, x: ft.tanh(x @ w + (left + up) @ u), v, above, xs)

    return ft.scanl(row, ys, xss)


PROGRAMS = [layers, every_layer, two_states, grid, projected_grid, lists_of_states]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_orders_agree(program: ft.Function, domain: tuple[int, int]) -> None:
    """Each pair alone, in the reference interpreter, at small domains of all shapes."""
    values = arguments(program, *domain)
    expected = flat(program(*values))
    traced = program.trace(lengths_of(program, values))
    with ir.Context():
        found = ir.Module.parse(traced.module_text)
        run_pipeline(found.operation, "builtin.module(tile-hoist-invariants,tile-find-pairs)")
        count = len(list(recurrences(found.operation)))
        assert count == (2 if program is lists_of_states else 1)
        for number in range(count):
            module = ir.Module.parse(str(found))
            decisions.WAVEFRONT.set(list(recurrences(module.operation))[number], ir.UnitAttr.get())
            run_pipeline(module.operation, "builtin.module(tile-skew-recurrences)")
            for got, wanted in zip(in_reference(program, module, values), expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("band", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_bands_agree(program: ft.Function, band: int) -> None:
    """Seven rows in bands of so many, and what is left behind them; in the reference interpreter."""
    values = arguments(program, 7, 3)
    expected = flat(program(*values))
    with ir.Context() as context:
        module = ir.Module.parse(program.trace(lengths_of(program, values)).module_text)
        run_pipeline(module.operation, "builtin.module(tile-hoist-invariants,tile-find-pairs)")
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), band)
        decisions.WAVEFRONT.set(next(recurrences(module.operation)), number)
        run_pipeline(module.operation, "builtin.module(tile-skew-recurrences)")
        for got, wanted in zip(in_reference(program, module, values), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 7, 9])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_some_steps_are_an_iteration(program: ft.Function, steps: int) -> None:
    """Of seven rows: groups of that many, and what is left behind them; in the reference interpreter."""
    values = arguments(program, 7, 3)
    expected = flat(program(*values))
    with ir.Context() as context:
        module = ir.Module.parse(program.trace(lengths_of(program, values)).module_text)
        run_pipeline(module.operation, "builtin.module(tile-hoist-invariants,tile-find-pairs)")
        pair = next(recurrences(module.operation))
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), steps)
        decisions.UNROLL.set(pair, number)
        run_pipeline(module.operation, "builtin.module(tile-unroll-recurrences)")
        loops = sum(str(module).count(f"fractal.{name}") for name in ("fold", "scan"))
        scans = 2 if program is lists_of_states else 1
        assert loops == (scans * 7 if steps > 3 else scans * (steps + 7 % steps) + 1)
        for got, wanted in zip(in_reference(program, module, values), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("program", [layers, every_layer, two_states], ids=lambda program: program.name)
def test_layers_in_a_loop(program: ft.Function, steps: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven layers with weights that are constants, in a loop over groups: each takes its own."""
    monkeypatch.setattr(plan_wavefronts, "_LEAST_GAIN", 1e9)
    monkeypatch.setattr(plan_wavefronts, "_UNROLLED", steps)
    xs, *parameters = arguments(program, 7, 5)

    def held(xs: ROW):
        return program(xs, *parameters)

    emulate = {"emulate": True} if target != "cpu" else {}
    model = tw.compile(ft.function(held), target, shapes={"xs": xs.shape[:1]}, **emulate)
    for got, wanted in zip(model(xs), flat(program(xs, *parameters)), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_compiled(program: ft.Function, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs that may, as code."""
    monkeypatch.setattr(plan_wavefronts, "_LEAST_GAIN", 0.0)
    values = arguments(program, 3, 5)
    emulate = {"emulate": True} if target != "cpu" else {}
    text = tw.compile(program, target, shapes=lengths_of(program, values), stop_after="normalize")
    model = tw.compile(program, target, shapes=lengths_of(program, values), pipeline=None, **emulate)
    assert "scf.for" in text
    for got, wanted in zip(model(*values), flat(program(*values)), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
    told = [entry["message"] for entry in model.report_data()["remarks"] if "diagonals" in entry["message"]]
    assert any("run as 7 diagonals" in message for message in told), told


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("program", [grid, projected_grid, every_layer], ids=lambda program: program.name)
def test_bands_as_code(program: ft.Function, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows in bands of three, and a last one of one."""
    monkeypatch.setattr(plan_wavefronts, "_LEAST_GAIN", 0.0)
    monkeypatch.setattr(recurrence, "best_band", lambda *_: 3)
    values = arguments(program, 7, 4)
    emulate = {"emulate": True} if target != "cpu" else {}
    model = tw.compile(program, target, shapes=lengths_of(program, values), **emulate)
    for got, wanted in zip(model(*values), flat(program(*values)), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
    told = [entry["message"] for entry in model.report_data()["remarks"] if "diagonals" in entry["message"]]
    assert any("bands of 3 rows, the last one of 1, of 6 diagonals each" in message for message in told), told


@ft.function
def sums(xsss: ft.Array[3, LEAF], ys: ROW, v: ft.Tensor[LEAF]) -> ROWS:
    """A grid whose points read lists."""

    def point(left, up, xs):
        return ft.tanh(left + up * 0.5 + ft.foldl(lambda s, x: s + x, ft.zeros(*LEAF), xs))

    return ft.scanl(lambda above, xss: ft.scanl(point, v, above, xss), ys, xsss)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_lists_of_their_own_lengths_stay_row_by_row(target: str) -> None:
    """They are not read along diagonals, however much faster those are."""
    inner = np.asarray([2, 1, 3, 1, 2, 2])
    points = ft.Lists(np.linspace(-1, 1, inner.sum() * 4, dtype=np.float32).reshape(-1, *LEAF))
    values = [points.nest(inner).nest(np.asarray([3, 3])), np.ones((3, *LEAF), np.float32), np.ones(LEAF, np.float32)]
    emulate = {"emulate": True} if target != "cpu" else {}
    model = tw.compile(sums, target, shapes={"xsss": (2, 3, ("ragged", 3)), "ys": (3,)}, **emulate)
    for got, wanted in zip(model(*values), flat(sums(*values)), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-4, atol=1e-5)
    told = [entry["message"] for entry in model.report_data()["remarks"] if "of a recurrence" in entry["message"]]
    assert any("stay row by row (lists whose lengths" in message for message in told), told
