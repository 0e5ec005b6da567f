# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One text on both levels: what collectives say of tensors, and what the programs compute that they became."""

from __future__ import annotations

from math import gcd

import ml_dtypes
import numpy as np
import pytest

from tilewright import reference
from tilewright.core.dtypes import of_mlir
from tilewright.mlir import ir
from tilewright.passes import load_builtin_passes, run_pipeline
from tilewright.sim.coremesh_ir import execute

load_builtin_passes()
assert execute  # programs run in the reference interpreter

LOWERED = "builtin.module(tile-plan-reductions,tile-expand-collectives,tile-fit-mesh-programs)"
Grid = tuple[int, int]


def tensor(shape: tuple[int, ...], kind: str, grid: Grid, splits: str, at: str = "") -> str:
    layout = f"#coremesh.layout<grid({grid[0]}, {grid[1]}), [{splits}]{at}>"
    return f"tensor<{'x'.join(map(str, (*shape, kind)))}, {layout}>"


def function(op: str, operands: list[str], result: str, constants: str = "") -> str:
    """A function of one op, whose operands are %0, %1, ..."""
    arguments = ", ".join(f"%{number}: {kind}" for number, kind in enumerate(operands))
    kinds = f" : {', '.join(operands)}" + (f" to {result}" if "kv_append" not in op else "")
    return f"func.func @f({arguments}) -> {result} {{\n{constants}%r = {op}{kinds}\nreturn %r : {result}\n}}"


def check(text: str, *inputs: np.ndarray) -> np.ndarray:
    """Run the collectives, then the programs: results are equal to the bit. Returns them."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (whole,) = reference.run(module, "f", inputs)
        run_pipeline(module, LOWERED)
        lowered = str(module)
        (cores,) = reference.run(ir.Module.parse(lowered), "f", inputs)
    assert "coremesh.program" in lowered
    assert cores.dtype == whole.dtype
    np.testing.assert_array_equal(cores, whole)
    return whole


def numbers(shape: tuple[int, ...], kind: str, seed: int = 0) -> np.ndarray:
    """Small integers: sums of them are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(of_mlir(kind))


SLOW = pytest.mark.slow
GRIDS = [(1, 1), (2, 3), pytest.param((3, 3), marks=SLOW), pytest.param((4, 2), marks=SLOW), (1, 5)]
KINDS = [("f32", "f32"), ("f16", "f32"), ("bf16", "bf16"), ("i8", "i32"), ("i64", "i64"), ("f16", "f16")]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("op", ["meshgemm", "cannon", "summa", "allgather", "gemm_t"])
def test_products(op: str, grid: Grid):
    """A number of each kind; sizes of 1, primes, and blocks of lcm(height, width) parts."""
    ring = " ring" if op in ("meshgemm", "gemm_t") else ""
    lcm = grid[0] * grid[1] // gcd(*grid)
    held = lcm // grid[0], lcm // grid[1]
    for number, (m, k, n) in enumerate([(1, 1, 1), (7, 13, 5), (4, 11, 31)]):
        kind, result = KINDS[(number + sum(grid)) % len(KINDS)]
        part = -(-n // lcm) if op == "gemm_t" else -(-k // lcm)
        tall, wide = part * held[0], part * held[1]
        if op == "gemm_t":
            shapes, blocks = ((m, k), (n, k)), ("", f"block {tall}", f"block {wide}")
            a, b, c = f"y{ring}, x{ring}", f"y{ring} {blocks[1]}, x{ring}", f"y{ring}, x{ring} {blocks[2]}"
        else:
            shapes = ((m, k), (k, n))
            a, b, c = f"y{ring}, x{ring} block {wide}", f"y{ring} block {tall}, x{ring}", f"y{ring}, x{ring}"
        kinds = [tensor(shape, kind, grid, layout) for shape, layout in zip(shapes, (a, b), strict=True)]
        text = "coremesh.gemm_t %0, %1" if op == "gemm_t" else f"coremesh.gemm %0, %1 by {op}"
        inputs = [numbers(shape, kind, seed) for seed, shape in enumerate(shapes)]
        found = check(function(text, kinds, tensor((m, n), result, grid, c)), *inputs)
        right = inputs[1].astype(np.int64)
        exact = inputs[0].astype(np.int64) @ (right.T if op == "gemm_t" else right)
        np.testing.assert_array_equal(found, exact.astype(found.dtype))


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("axes", ["yx", "xy"])
def test_vectors(axes: str, grid: Grid):
    for number, (k, n) in enumerate([(1, 1), (13, 17), (31, 3)]):
        kind, result = KINDS[number * 2 % len(KINDS)]
        kinds = [tensor((k,), kind, grid, axes[0]), tensor((k, n), kind, grid, ", ".join(axes))]
        text = function("coremesh.gemv %0, %1 by star", kinds, tensor((n,), result, grid, axes[1]))
        check(text, numbers((k,), kind), numbers((k, n), kind, 1))
        kinds[0], result = tensor((5, k), kind, grid, f"*, {axes[0]}"), tensor((5, n), result, grid, f"*, {axes[1]}")
        check(function("coremesh.gemv %0, %1 by star", kinds, result), numbers((5, k), kind), numbers((k, n), kind, 1))


@pytest.mark.parametrize(
    "algorithm",
    ["chain", "star", "k_tree k 3", *(pytest.param(one, marks=SLOW) for one in ("tree", "two_phase", "k_tree k 2"))],
)
@pytest.mark.parametrize("kind", ["f32", pytest.param("i32", marks=SLOW)])
def test_reductions(kind: str, algorithm: str):
    """Negative numbers, so that padding shows in a maximum; the algorithm stays as it is written."""
    for grid, size in (((3, 5), 13), ((2, 7), 3), ((1, 1), 4)):
        x = numbers((5, size, 3), kind) - np.ones((), of_mlir(kind)) * 9
        source = tensor(x.shape, kind, grid, "y ring, x ring, *")
        for op, at in (("allreduce", ""), ("reduce", f", at x = {grid[1] - 1}")):
            result = tensor((5, 3), kind, grid, "y ring, *", at)
            for combine in ("add", "max"):
                check(function(f"coremesh.{op} {combine} %0 dim 1 by {algorithm} {{fixed}}", [source], result), x)


@pytest.mark.parametrize("order", ["", pytest.param(" ring", marks=SLOW)])
@pytest.mark.parametrize("grid", [pytest.param((1, 1), marks=SLOW), (3, 5), pytest.param((4, 2), marks=SLOW)])
def test_moves(grid: Grid, order: str):
    for kind, shape in (("f16", (7, 13)), ("i8", (1, 1))):
        x, last = numbers(shape, kind), grid[1] - 1
        there = tensor(shape, kind, grid, f"y{order}, *")
        check(function("coremesh.multicast %0 along x", [tensor(shape, kind, grid, f"y{order}, *", f", at x = {last}")],
                       there), x)  # fmt: skip
        for by in (0, 1, grid[0] - 1):
            here, there = (tensor(shape, kind, grid, f"y{order}{turn}, x{order}")
                           for turn in ("", f" rotate {by % grid[0]}" if by % grid[0] else ""))  # fmt: skip
            check(function(f"coremesh.shift %0 along y by {by}", [here], there), x)
        for to in ((2, 2), (5, 3)):
            kinds = [tensor(shape, kind, one, "y, x") for one in (grid, to)]
            check(function("coremesh.reshape_grid %0", kinds[:1], kinds[1]), x)


RELAYOUTS = {
    "to a ring": ("y, x", "y ring, x ring"),
    "from a ring": ("y ring, x ring", "y, x"),
    "skewed": ("y ring, x ring", "y ring, x ring skew"),
    "skewed, as cores stand": ("y, x", "y skew, x"),
    "aligned, from a ring": ("y ring skew, x ring", "y, x skew"),
    "rotated": ("y rotate 1, x", "y, x rotate 1"),
    "exchanged": ("y, x", "x, y"),
    "exchanged, and more": ("y ring, x ring rotate 1", "x skew, y"),
    "gathered": ("y, x", "y, *"),
    "gathered and split": ("y, *", "*, y"),
    "split": ("*, *", "x, y"),
    "along another axis": ("y ring, *", "x, *"),
    "other blocks": ("y block 5, x block 7", "y, x"),
}


@pytest.mark.parametrize("case", RELAYOUTS)
@pytest.mark.parametrize("grid", [pytest.param((1, 1), marks=SLOW), (2, 2), (2, 3), pytest.param((5, 2), marks=SLOW)])
def test_relayouts(grid: Grid, case: str):
    for kind, shape in (("f16", (5, 7)), ("i8", (1, 3))):
        kinds = [tensor(shape, kind, grid, splits) for splits in RELAYOUTS[case]]
        check(function("coremesh.relayout %0", kinds[:1], kinds[1]), numbers(shape, kind))


@pytest.mark.parametrize("order", ["", " ring"])
@pytest.mark.parametrize("place", [2, pytest.param(0, marks=SLOW), pytest.param(4, marks=SLOW)])
def test_from_one_place_along_an_axis(place: int, order: str):
    x, grid = numbers((7, 13), "f16"), (3, 5)
    here = tensor(x.shape, "f16", grid, f"y{order}, *", f", at x = {place}")
    for splits, at in (("y", ", at x = 1"), ("y", ", at x = 2"), ("y ring", "")):
        check(function("coremesh.relayout %0", [here], tensor(x.shape, "f16", grid, f"{splits}, *", at)), x)
    check(function("coremesh.relayout %0", [here], tensor(x.shape, "f16", grid, "x, y")), x)
    check(function("coremesh.relayout %0", [tensor(x.shape, "f16", grid, "*, *")], here), x)


CACHES = [("", "concat"), (" uneven [1, 1, 5]", "concat"), (" balanced", "shift"), (" ring balanced", "shift"),
          (" cyclic", "round_robin")]  # fmt: skip


@pytest.mark.parametrize(("deal", "policy"), CACHES)
@pytest.mark.parametrize("rest", [(3, 2), pytest.param((5,), marks=SLOW), pytest.param((), marks=SLOW)])
def test_caches(rest: tuple[int, ...], deal: str, policy: str):
    """Token by token, until it is full."""
    grid, rows = (3, 2), numbers((7, *rest), "f16")
    ring = " ring" if "ring" in deal else ""
    behind = [f"x{ring}", "*"][: len(rest)]
    whole = [f"y{deal}", *behind]
    kinds = [tensor(rest, "f16", grid, ", ".join(behind)), tensor(rows.shape, "f16", grid, ", ".join(whole))]
    cache = np.zeros_like(rows)
    for length, row in enumerate(rows):
        constant = f"%n = arith.constant {length} : index\n"
        cache = check(function(f"coremesh.kv_append %0 to %1[%n] by {policy}", kinds, kinds[1], constant), row, cache)
    np.testing.assert_array_equal(cache, rows)


def test_kinds_are_those_of_the_machine():
    assert {of_mlir(kind) for pair in KINDS for kind in pair} >= {np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)}


@pytest.mark.parametrize("grid", GRIDS)
def test_halos(grid: Grid):
    """Parts shorter and longer than blocks, next to them and far away; a dimension beside them is split, or whole."""
    places = [(-1, 2, 4), (3, 1, 2), (-5, 4, 3), (0, 3, 11)]
    for number, (first, step, size) in enumerate(places):
        kind, ring = ("f32", "bf16", "i8", "f16")[number], ("", " ring")[number % 2]
        x = numbers((7, 5), kind)
        before, after = (tensor((n, 5), kind, grid, f"y{ring}, {'*' if number else 'x'}") for n in (7, grid[0] * size))
        fill = f"{number} : i8" if kind == "i8" else f"{number}.0 : {kind}"
        check(function(f"coremesh.halo %0 dim 0 from {first} step {step} of {size} fill {fill}", [before], after), x)


BLOCKS = """
func.func @f(%a: {a}, %w: {w}, %s: {s}) -> {c} {{
  %r = coremesh.block_gemm (%x = %a, %c = %w, %g = %s) sums %t : ({a}, {w}, {s}) -> {c} {{
    %e = tensor.empty() : tensor<{kt}x{nt}xf32>
    %d = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> ({order})>, affine_map<(d0, d1) -> (d1)>,
        affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}}
        ins(%c, %g : tensor<{block}xi8>, tensor<{nt}xf32>) outs(%e : tensor<{kt}x{nt}xf32>) {{
    ^bb0(%code: i8, %scale: f32, %out: f32):
      %v = arith.sitofp %code : i8 to f32
      %p = arith.mulf %v, %scale : f32
      linalg.yield %p : f32
    }} -> tensor<{kt}x{nt}xf32>
    %m = linalg.matmul ins(%x, %d : tensor<{mt}x{kt}xf32>, tensor<{kt}x{nt}xf32>)
        outs(%t : tensor<{mt}x{nt}xf32>) -> tensor<{mt}x{nt}xf32>
    coremesh.yield %m : tensor<{mt}x{nt}xf32>
  }}
  return %r : {c}
}}
"""


@pytest.mark.parametrize("skew", ["", " skew"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("side", [1, 2, pytest.param(3, marks=SLOW), 5])
def test_products_of_blocks(side: int, turned: bool, skew: str):
    """Codes of either order go round, scales stay; aligned by the host or by the program."""
    for m, k, n in [(1, 1, 1), (7, 13, 5)]:
        mt, kt, nt = (-(-size // side) for size in (m, k, n))
        w = (n, k) if turned else (k, n)
        kinds = {
            "a": tensor((m, k), "f32", (side, side), "y ring, x ring"),
            "w": tensor(w, "i8", (side, side), f"x ring, y ring{skew}" if turned else f"y ring{skew}, x ring"),
            "s": tensor((n,), "f32", (side, side), "x ring"),
            "c": tensor((m, n), "f32", (side, side), "y ring, x ring"),
        }
        block, order = (f"{nt}x{kt}", "d1, d0") if turned else (f"{kt}x{nt}", "d0, d1")
        text = BLOCKS.format(**kinds, mt=mt, kt=kt, nt=nt, block=block, order=order)
        inputs = [numbers((m, k), "f32"), numbers(w, "i8", 1), numbers((n,), "f32", 2)]
        weight = inputs[1].T if turned else inputs[1]
        np.testing.assert_array_equal(check(text, *inputs), inputs[0] @ (weight * inputs[2]))
