# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of products whose rows or columns are several loops, and what such products give."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

import numpy as np
import pytest

import tilewright as tw
import tilewright.fractal as ft
from tilewright.ir.structure import LinalgOp, Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.plan.cpu.products import contraction_roles, prefetched, tile_contraction
from tilewright.plan.cpu.row_loops import row_loops
from tilewright.plan.model.tiles import Machine

MACHINE = Machine(lanes=16, registers=32, l2_bytes=2 << 20, cores=1)
AVX2 = Machine(lanes=8, registers=16, l2_bytes=2 << 20, cores=1)


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        yield


def product(rows: str, weights: str, **sizes: int) -> tuple[LinalgOp, Weights, ir.Module]:
    """A product of data over the loops `rows` and constants over `weights`, of which k is summed; one letter a loop.

    The module must outlive the operation.
    """
    loops = list(dict.fromkeys(rows + weights))
    loops = [*(d for d in loops if d != "k"), "k"]
    result = "".join(loops[:-1])

    def kind(dims: str) -> str:
        return "tensor<" + "".join("?x" if sizes[d] < 0 else f"{sizes[d]}x" for d in dims) + "f32>"

    at = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>" for dims in (rows, weights, result))
    iterators = ", ".join([*['"parallel"'] * len(result), '"reduction"'])
    module = ir.Module.parse(f"""
        ml_program.global private @f(#ml_program.extern<{kind(weights)}>) : {kind(weights)}
        func.func @main(%x: {kind(rows)}, %z: {kind(result)}) -> {kind(result)} {{
          %f = ml_program.global_load_const @f : {kind(weights)}
          %y = linalg.generic {{indexing_maps = [{at}], iterator_types = [{iterators}]}}
              ins(%x, %f : {kind(rows)}, {kind(weights)}) outs(%z : {kind(result)}) {{
          ^bb0(%a: f32, %b: f32, %o: f32):
            %m = arith.mulf %a, %b : f32
            %t = arith.addf %o, %m : f32
            linalg.yield %t : f32
          }} -> {kind(result)}
          return %y : {kind(result)}
        }}""")
    known = Weights()
    return [op for block in blocks(module.operation) for op in linalg_ops(block, known)][-1], known, module


def applies(op: LinalgOp, weights: Weights) -> bool:
    roles = contraction_roles(op)
    assert roles.lane_operand is not None
    return row_loops(op, roles, op.inputs[roles.lane_operand], weights, MACHINE) is not None


@pytest.mark.parametrize("machine", [MACHINE, AVX2])
def test_register_tiles_are_those_of_one_large_product(machine: Machine) -> None:
    plain, weights, _plain = product("rk", "kn", r=8192, n=1024, k=256)
    listed, others, _listed = product("trk", "gkn", t=64, r=128, g=4, n=256, k=256)
    assert applies(listed, others)
    assert not applies(plain, weights)
    tall = tile_contraction(plain, machine, weights).register
    tiling = tile_contraction(listed, machine, others)
    assert prod(tiling.register) == prod(tall)
    assert tiling.unroll is not None


def test_weights_in_the_l2_cache_stay_under_rows() -> None:
    op, weights, _module = product("trk", "gkn", t=64, r=32, g=4, n=256, k=256)  # loops t, r, g, n, k
    tiling = tile_contraction(op, MACHINE, weights)
    assert tiling.task[2:4] == [4, 256]
    assert tiling.order == [0, 1, 2, 3, 4]
    assert prefetched(op, tiling, MACHINE) == [0]


def test_weights_that_overflow_the_l2_cache_keep_their_panels_outside() -> None:
    op, weights, _module = product("trk", "kn", t=4, r=64, n=3072, k=768)
    assert not applies(op, weights)
    assert tile_contraction(op, MACHINE, weights).order[0] == 2


def test_rows_lie_in_the_l2_cache_under_larger_weights() -> None:
    small = Machine(lanes=8, registers=16, l2_bytes=1 << 19, cores=1)
    op, weights, _module = product("trk", "gkn", t=64, r=32, g=4, n=256, k=256)  # loops t, r, g, n, k
    tiling = tile_contraction(op, small, weights)
    assert tiling.task[:4] == [4, 32, 4, 256]  # 128 rows of 1 KB
    assert tiling.order == [2, 3, 0, 1, 4]
    assert prefetched(op, tiling, small) == [1]


def test_rows_that_fit_keep_panels_outside() -> None:
    small = Machine(lanes=8, registers=16, l2_bytes=1 << 19, cores=1)
    op, weights, _module = product("trk", "gkn", t=8, r=32, g=4, n=256, k=256)
    assert tile_contraction(op, small, weights).task[:2] == [8, 32]


def test_rows_of_a_long_reduction_do_not_lie_there() -> None:
    small = Machine(lanes=8, registers=16, l2_bytes=1 << 19, cores=1)
    op, weights, _module = product("trk", "kn", t=16, r=32, n=256, k=1024)
    assert tile_contraction(op, small, weights).order[0] == 2


def test_few_rows_leave_columns_to_many_cores() -> None:
    many = Machine(lanes=16, registers=32, l2_bytes=2 << 20, cores=48)
    op, weights, _module = product("rk", "gkn", r=256, g=4, n=256, k=256)
    tiling = tile_contraction(op, many, weights)
    assert (
        prod(ceil(e / t) for e, t in zip(op.extents, tiling.task, strict=True)) >= many.cores
    )  # there are 43 tiles of rows


def test_loops_of_one_iteration_are_none() -> None:
    op, weights, _module = product("ruk", "kn", r=256, u=1, n=1024, k=256)
    assert applies(op, weights)
    tiling = tile_contraction(op, MACHINE, weights)
    assert tiling.order == [1, 0, 2, 3]
    assert tiling.task[2] == 1024


@pytest.mark.parametrize(
    ("rows", "weights", "sizes"),
    [
        ("trk", "kn", {"t": 64, "r": 14, "n": 64, "k": 64}),  # lines of an image
        ("ruk", "kn", {"u": 1, "r": 32, "n": 64, "k": 64}),  # few rows
        ("brk", "bkn", {"b": 8, "r": 32, "n": 64, "k": 64}),  # a batch of weights
        ("trk", "kn", {"t": -1, "r": 32, "n": 64, "k": 64}),  # as many as a run brings
    ],
)
def test_others_keep_their_tiles(rows: str, weights: str, sizes: dict[str, int]) -> None:
    op, known, _module = product(rows, weights, **sizes)
    assert not applies(op, known)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize(
    ("times", "batch", "depth", "width"), [(9, 29, 37, 61), (8, 32, 64, 128), (5, 53, 7, 1), (37, 29, 256, 131)]
)
def test_products_of_lists_are_those_of_numpy(target: str, times: int, batch: int, depth: int, width: int) -> None:
    rng = np.random.default_rng(times)
    ws = rng.standard_normal((3, depth, width), np.float32)
    xss = rng.standard_normal((times, batch, 1, depth), np.float32)

    data, result = ft.Array[2, (1, depth)], ft.Array[3, (1, width)]

    @ft.function
    def gates(xss: data) -> result:
        return ft.map(lambda xs: ft.map(lambda x: ft.map(lambda w: x @ w, ws), xs), xss)

    compiled = tw.compile(gates, target=target, threads=2, shapes={"xss": (times, batch)})
    expected = np.einsum("tbik,gkn->tbgin", xss.astype(np.float64), ws)
    np.testing.assert_allclose(np.asarray(compiled(xss)[0]), expected, rtol=1e-4, atol=1e-4)
