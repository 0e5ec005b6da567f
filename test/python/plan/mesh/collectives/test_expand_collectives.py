# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expanded collectives compute what NumPy does, whatever algorithm, layout and shape; the others say why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.core.errors import TilewrightError
from tilewright.mlir import ir
from tilewright.passes import load_builtin_passes, run_pipeline
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh_ir.read import programs, read_program

load_builtin_passes()


def layout(grid: tuple[int, int], splits: str, at: str = "") -> str:
    return f"#coremesh.layout<grid({grid[0]}, {grid[1]}), [{splits}]{at}>"


def tensor(shape: tuple[int, ...], kind: str, encoding: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, kind)))}, {encoding}>"


def expanded(op: str, operands: list[str], result: str, *inputs: np.ndarray) -> np.ndarray:
    """What an op with operands %0, %1 became computes: a program, or several in turn."""
    arguments = ", ".join(f"%{number}: {kind}" for number, kind in enumerate(operands))
    text = f"""
      func.func @f({arguments}) -> {result} {{
        %r = {op} : {", ".join(operands)} to {result}
        return %r : {result}
      }}"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, "builtin.module(tile-expand-collectives)")
        for found in programs(module):
            program = read_program(found)
            names = list(dict.fromkeys(place.name for place in program.inputs))
            inputs = tuple(run(program, dict(zip(names, inputs, strict=True))).values())
    (value,) = inputs
    return value


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(np.int32)


@pytest.mark.parametrize("grid", [(1, 1), (3, 3), (2, 3)])
@pytest.mark.parametrize("skew", [("", ""), ("", " skew"), (" skew", " skew")])
@pytest.mark.parametrize("algorithm", ["meshgemm", "cannon", "summa", "allgather"])
def test_gemm(algorithm: str, skew: tuple[str, str], grid: tuple[int, int]):
    if algorithm in ("summa", "allgather") and any(skew):
        return  # refused by the verifier of the op: nothing shifts
    ring = " ring" if algorithm == "meshgemm" else ""
    m, k, n = 7, 12, 5
    a, b = integers(m, k), integers(k, n)
    kinds = [
        tensor((m, k), "i32", layout(grid, f"y{ring}, x{ring}{skew[0]}")),
        tensor((k, n), "i32", layout(grid, f"y{ring}{skew[1]}, x{ring}")),
    ]
    result = tensor((m, n), "i32", layout(grid, f"y{ring}, x{ring}"))
    np.testing.assert_array_equal(expanded(f"coremesh.gemm %0, %1 by {algorithm}", kinds, result, a, b), a @ b)


@pytest.mark.parametrize("grid", [(1, 1), (4, 4), (3, 5), (4, 2)])
def test_gemm_t(grid: tuple[int, int]):
    m, k, n = 7, 13, 60
    a, b = integers(m, k), integers(n, k)
    tile = layout(grid, "y ring, x ring")
    kinds, result = [tensor((m, k), "i32", tile), tensor((n, k), "i32", tile)], tensor((m, n), "i32", tile)
    np.testing.assert_array_equal(expanded("coremesh.gemm_t %0, %1", kinds, result, a, b), a @ b.T)


@pytest.mark.parametrize("rows", [(), (1,), (2,), (20,)])
@pytest.mark.parametrize("axes", [("y", "x"), ("x", "y"), ("y ring", "x ring")])
@pytest.mark.parametrize("how", ["chain", "tree", "k_tree k 2 groups [2]", "k_tree k 3"])
def test_gemv(how: str, axes: tuple[str, str], rows: tuple[int, ...]):
    grid, (k, n), whole = (5, 6), (13, 17), "*, " if rows else ""
    if how.endswith("groups [2]") and axes[0].startswith("x"):
        how = "k_tree k 2 groups [3]"
    a, x = integers(k, n), integers(*rows, k)
    kinds = [
        tensor((*rows, k), "i32", layout(grid, whole + axes[0])),
        tensor((k, n), "i32", layout(grid, ", ".join(axes))),
    ]
    result = tensor((*rows, n), "i32", layout(grid, whole + axes[1]))
    np.testing.assert_array_equal(expanded(f"coremesh.gemv %0, %1 by {how}", kinds, result, x, a), x @ a)


@pytest.mark.parametrize("size", [3, 6, 13])
@pytest.mark.parametrize("combine", ["add", "max"])
@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("algorithm", ["chain", "tree", "k_tree"])
def test_reductions(algorithm: str, everywhere: bool, combine: str, size: int):
    """Also where some cores have padding alone: it is no zero among negative numbers."""
    grid = (4, 6)
    x = integers(7, size, 3) - 20
    kind = tensor(x.shape, "i32", layout(grid, "y ring, x ring, *"))
    result = tensor((7, 3), "i32", layout(grid, "y ring, *", "" if everywhere else ", at x = 3"))
    op = "allreduce" if everywhere else "reduce"
    found = expanded(f"coremesh.{op} {combine} %0 dim 1 by {algorithm}", [kind], result, x)
    np.testing.assert_array_equal(found, x.sum(1) if combine == "add" else x.max(1))


@pytest.mark.parametrize("size", [3, 13])
@pytest.mark.parametrize("combine", ["min", "umax", "umin", "mul"])
def test_other_reductions(combine: str, size: int):
    """Some cores have padding alone; as unsigned numbers, negative ones are the largest."""
    x, grid = integers(7, size, 3) + 1, (4, 6)
    kind = tensor(x.shape, "i32", layout(grid, "y ring, x ring, *"))
    result = tensor((7, 3), "i32", layout(grid, "y ring, *"))
    found = expanded(f"coremesh.allreduce {combine} %0 dim 1 by chain", [kind], result, x)
    views = {"min": x, "mul": x, "umax": x.view(np.uint32), "umin": x.view(np.uint32)}
    reduced = {"min": np.min, "mul": np.prod, "umax": np.max, "umin": np.min}[combine](views[combine], axis=1)
    np.testing.assert_array_equal(found, reduced.astype(np.int64).astype(np.int32))


@pytest.mark.parametrize("at", ["", ", at y = 2"])
def test_reduction_to_a_number_and_of_one_row(at: str):
    """Of a tensor that lies on one row of cores; and to a tensor without dimensions."""
    x, rows = integers(6), integers(7, 6)
    kind, result = tensor((7, 6), "i32", layout((4, 6), "*, x", at)), tensor((7,), "i32", layout((4, 6), "*", at))
    found = expanded("coremesh.allreduce add %0 dim 1 by chain", [kind], result, rows)
    np.testing.assert_array_equal(found, rows.sum(1))
    if not at:
        kind, result = tensor((6,), "i32", layout((4, 6), "x")), f"tensor<i32, {layout((4, 6), '')}>"
        assert expanded("coremesh.allreduce max %0 dim 0 by tree", [kind], result, x) == x.max()


@pytest.mark.parametrize("order", ["", " ring"])
def test_values_that_only_move(order: str):
    x, grid = integers(7, 9), (3, 5)
    here = tensor(x.shape, "i32", layout(grid, f"y{order}, *", ", at x = 4"))
    there = tensor(x.shape, "i32", layout(grid, f"y{order}, *"))
    np.testing.assert_array_equal(expanded("coremesh.multicast %0 along x", [here], there, x), x)
    for by in (1, 2, 5):
        here = tensor(x.shape, "i32", layout(grid, f"y{order}, x{order} rotate 1"))
        there = tensor(x.shape, "i32", layout(grid, f"y{order}, x{order}{f' rotate {(1 + by) % 5}'}"))
        np.testing.assert_array_equal(expanded(f"coremesh.shift %0 along x by {by}", [here], there, x), x)
    here, there = (tensor(x.shape, "i32", layout(grid, "y, x")) for grid in ((3, 5), (4, 2)))
    np.testing.assert_array_equal(expanded("coremesh.reshape_grid %0", [here], there, x), x)


DEALS = ["y uneven [3, 1, 4]", "y cyclic", "y balanced", "y block 4", "y rotate 1", "*"]


@pytest.mark.parametrize("after", [*DEALS, "x"])
@pytest.mark.parametrize("before", DEALS)
def test_dimensions_dealt_anew(before: str, after: str):
    """From and to blocks of several sizes, element by element, and whole; along another axis in several programs."""
    if {before, after} <= {"y block 4", "y rotate 1", "*", "x"}:
        return  # test_relayout.py has them
    x, grid = integers(8, 5), (3, 2)
    here = tensor(x.shape, "i32", layout(grid, f"{before}, {'*' if after == 'x' else 'x'}"))
    there = tensor(x.shape, "i32", layout(grid, f"{after}, {'y' if after == 'x' else 'x'}"))
    np.testing.assert_array_equal(expanded("coremesh.relayout %0", [here], there, x), x)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y cyclic, x balanced", "y balanced, x"),
        ("y cyclic, x balanced", "x uneven [5, 3], y cyclic"),
        ("*, y balanced", "y uneven [2, 1, 5], x uneven [0, 5]"),
        ("y balanced, x", "y balanced, *"),
        ("y ring uneven [0, 4, 4], x ring block 3", "y ring cyclic, x ring block 4"),
    ],
)
def test_several_dimensions_are_dealt(before: str, after: str):
    """Those that stay as they are dealt, and those that move beside one that is."""
    x, grid = integers(8, 5), (3, 2)
    here, there = (tensor(x.shape, "i32", layout(grid, one)) for one in (before, after))
    np.testing.assert_array_equal(expanded("coremesh.relayout %0", [here], there, x), x)


@pytest.mark.parametrize(
    ("policy", "split"), [("concat", "y"), ("concat", "y uneven [3, 1, 4]"), ("round_robin", "y cyclic")]
)
def test_a_cache_of_a_length_that_a_run_brings(policy: str, split: str):
    """One program for all lengths; the host checks that there is room."""
    grid, rows, width = (3, 2), 8, 5
    cache, row = tensor((rows, width), "i32", layout(grid, f"{split}, x")), tensor((width,), "i32", layout(grid, "x"))
    text = f"""
      func.func @f(%r: {row}, %c: {cache}, %n: index) -> {cache} {{
        %0 = coremesh.kv_append %r to %c[%n] by {policy} : {row}, {cache}
        return %0 : {cache}
      }}"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module, "builtin.module(tile-expand-collectives)")
        assert "cf.assert" in str(module) and "coremesh.distribute" in str(module)
        program = read_program(*programs(module))
        for length in range(rows):
            held, new = integers(rows, width), integers(width) + 50
            names = list(dict.fromkeys(place.name for place in program.inputs))
            given = dict(zip(names, (new, held, np.array([length], np.int32)), strict=True))
            (found,) = run(program, given).values()
            held[length] = new
            np.testing.assert_array_equal(found, held)


RING = layout((2, 3), "y ring, x ring")
APPENDED = """
  func.func @f(%r: tensor<5xf32, {1}>, %c: tensor<8x5xf32, {0}>, %n: index) -> tensor<8x5xf32, {0}> {{
    %0 = coremesh.kv_append %r to %c[%n] by shift : tensor<5xf32, {1}>, tensor<8x5xf32, {0}>
    return %0 : tensor<8x5xf32, {0}>
  }}"""
ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "blocks": (
        lambda: expanded("coremesh.gemm %0, %1 by meshgemm", [tensor((4, 7), "f32", RING), tensor((7, 5), "f32", RING)],
                         tensor((4, 5), "f32", RING)),
        r"left operand, \[4, 7\], has blocks of 3 elements along x; on 2 x 3 cores its algorithm needs blocks of 4",
    ),
    "ring": (
        lambda: expanded("coremesh.allreduce add %0 dim 0 by ring", [tensor((2, 7), "f32", layout((2, 3), "y, x"))],
                         tensor((7,), "f32", layout((2, 3), "x"))),
        "Choose a chain, a tree or a k_tree",
    ),
    "empty": (
        lambda: expanded("coremesh.allreduce add %0 dim 0 by chain", [tensor((0, 7), "f32", layout((2, 3), "y, x"))],
                         tensor((7,), "f32", layout((2, 3), "x"))),
        "has no elements",
    ),
    "grid": (
        lambda: expanded("coremesh.reshape_grid %0", [tensor((4, 7), "f32", RING)],
                         tensor((4, 7), "f32", layout((3, 3), "y, x"))),
        "matrices in plain blocks",
    ),
    "relayout": (
        lambda: expanded("coremesh.relayout %0",
                         [tensor((4, 6), "f32", layout((2, 3), "y uneven [1, 3], *", ", at x = 1"))],
                         tensor((4, 6), "f32", layout((2, 3), "y, *", ", at x = 1"))),
        "Blocks are dealt among cores that all have some. Multicast the tensor first",
    ),
    "length": (
        lambda: run_pipeline(
            ir.Module.parse(APPENDED.format(layout((2, 3), "y balanced, x"), layout((2, 3), "x"))),
            "builtin.module(tile-expand-collectives)"),
        "append by `round_robin`",
    ),
    "two orders": (
        lambda: expanded("coremesh.relayout %0", [tensor((4, 6), "f32", layout((2, 3), "y ring, x"))],
                         tensor((4, 6), "f32", layout((2, 3), "y, x"))),
        "Use `ring` on both axes or on none",
    ),
    "two skews": (
        lambda: expanded("coremesh.relayout %0", [tensor((4, 6), "f32", layout((2, 3), "y skew, x skew"))],
                         tensor((4, 6), "f32", layout((2, 3), "y, x"))),
        "most of the tensor lies nowhere",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_what_has_no_program(case: str):
    make, message = ERRORS[case]
    with ir.Context(), ir.Location.unknown(), pytest.raises(TilewrightError, match=message):
        make()
