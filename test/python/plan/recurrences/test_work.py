# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a point of a recurrence's domain takes: gates in maps, batches, weights that all share."""

from __future__ import annotations

import pytest

import tilewright.fractal as ft
from tilewright import devices
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.plan.cost import recurrence
from tilewright.plan.cost.recurrence import Work, along_diagonals, best_band
from tilewright.plan.recurrences.work import work_of

H, BATCH, GATES, LAYERS, STEPS = 8, 3, 4, 2, 5
PRODUCT, WEIGHT = H * H, 4 * H * H
LEAF = (1, H)


@ft.function
def gates(xss: ft.Array[2, LEAF], ws: ft.Array[2, (H, H)], us: ft.Array[2, (H, H)]) -> ft.Array[2, LEAF]:
    """Each gate has weights of its own, which the batch shares."""

    def layer(xss, ws, us):
        def cell(h, x):
            parts = ft.map(lambda w, u: x @ w + h @ u, ws, us)
            return ft.tanh(ft.reduce(lambda a, b: a + b, ft.zeros(*LEAF), parts))

        return ft.scanl(lambda hs, xs: ft.map(cell, hs, xs), ft.repeat(ft.zeros(*LEAF), BATCH), xss)

    return ft.foldl(layer, xss, ws, us)


@ft.function
def shared(xss: ft.Array[2, LEAF], ws: ft.Array[1, (H, H)], u: ft.Tensor[H, H]) -> ft.Array[2, LEAF]:
    """A weight of each layer and one of all."""

    def layer(xss, w):
        step = lambda hs, xs: ft.map(lambda h, x: ft.tanh(x @ w + h @ u), hs, xs)  # noqa: E731
        return ft.scanl(step, ft.repeat(ft.zeros(*LEAF), BATCH), xss)

    return ft.foldl(layer, xss, ws)


GIVEN = {"xss": (STEPS, BATCH)}
CASES = [
    (gates, {"ws": (LAYERS, GATES), "us": (LAYERS, GATES)}, GATES, 2 * GATES),
    (shared, {"ws": (LAYERS,)}, 1, 1),
]


def scan_of(module: ir.Module) -> ir.Operation:
    """The inner part of the only pair."""
    scans: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if decisions.PAIR.on(op):
            body = op.regions[0].blocks[0].operations
            scans.append(body[len(body) - 2].operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    (scan,) = scans
    return scan


@pytest.mark.parametrize(("program", "lengths", "count", "own"), CASES, ids=["gates", "shared"])
def test_work(program: ft.Function, lengths: dict[str, tuple[int, ...]], count: int, own: int) -> None:
    """Half of the products need the state; weights count once, whatever the batch; a layer's own are no other's."""
    text = program.trace({**GIVEN, **lengths}).module_text
    with ir.Context():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, "builtin.module(tile-hoist-invariants,tile-find-pairs)")
        scan = scan_of(module)
        each = BATCH * count * PRODUCT
        assert work_of(scan) == Work(each, each, count * WEIGHT, 2 * count * WEIGHT, own * WEIGHT)


@ft.function
def grid(xss: ft.Array[2, LEAF], w: ft.Tensor[H, H], u: ft.Tensor[H, H]) -> ft.Array[2, LEAF]:
    """Rows that share weights, in a scan over rows."""

    def row(above, xs):
        return ft.scanl(lambda left, up, x: ft.tanh(x @ w + up @ w + left @ u), ft.zeros(*LEAF), above, xs)

    return ft.scanl(row, ft.repeat(ft.zeros(*LEAF), STEPS), xss)


def test_work_of_a_grid() -> None:
    """One product needs the state, one the row above, one neither; a band reads what rows share once."""
    text = grid.trace({"xss": (LAYERS, STEPS)}).module_text
    with ir.Context():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, "builtin.module(tile-hoist-invariants,tile-find-pairs)")
        work = work_of(scan_of(module))
    assert work == Work(PRODUCT, PRODUCT, WEIGHT, 2 * WEIGHT, 0, PRODUCT)
    assert work.weights_of(5) == 2 * WEIGHT


@ft.function
def own_inputs(xss: ft.Array[2, LEAF], ws: ft.Array[1, (H, H)], u: ft.Tensor[H, H]) -> ft.Array[2, LEAF]:
    """Rows that share the weight of their steps; what is computed before them has one of each row."""

    def row(above, xs, w):
        return ft.scanl(lambda left, up, x: ft.tanh(x @ w + (left + up) @ u), ft.zeros(*LEAF), above, xs)

    return ft.scanl(row, ft.repeat(ft.zeros(*LEAF), STEPS), xss, ws)


def test_weights_of_free_products_are_not_read_by_steps() -> None:
    """A band reads the one weight of its steps once, whatever rows have of their own in front of them."""
    text = own_inputs.trace({"xss": (LAYERS, STEPS), "ws": (LAYERS,)}).module_text
    with ir.Context():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, "builtin.module(tile-hoist-invariants,tile-find-pairs)")
        work = work_of(scan_of(module))
    assert work == Work(PRODUCT, 0, WEIGHT, WEIGHT, 0, PRODUCT, WEIGHT)
    assert work.weights_of(5) == WEIGHT


@pytest.mark.parametrize("target", ["cpu:znver3", "nvidia-h100"])
@pytest.mark.parametrize("columns", [1, 9, 300])
@pytest.mark.parametrize("weight", [1 << 10, 1 << 22])
def test_best_band(target: str, columns: int, weight: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No band is faster than the best one, and few are tried."""
    device, rows = devices.get(target), 400
    work = Work(weight // 4, 0, weight, weight)
    times = [along_diagonals(work, rows, columns, device, band) for band in range(1, rows + 1)]
    tried = []

    def counted(*args: object) -> float:
        tried.append(args)
        return along_diagonals(*args)

    monkeypatch.setattr(recurrence, "along_diagonals", counted)
    band = best_band(work, rows, columns, device)
    assert times[band - 1] <= min(times) * (1 + 1e-9)
    assert len(tried) <= 2 * rows**0.5
