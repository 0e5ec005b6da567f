# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of contractions over images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tilewright.ir.structure import LinalgOp, Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.plan.cpu.products import prefetched, tile_contraction
from tilewright.plan.cpu.windows import mark_image
from tilewright.plan.model.tiles import Machine, Tiling

MACHINE = Machine(lanes=16, registers=32, l2_bytes=1 << 20)

#: Layout of the image and of the result over (h, w, n, r, s, c), and of the filters.
DENSE = ("(h + r, w + s, c)", "(r, s, c, n)", "(h, w, n)")
DEPTHWISE = ("(h + r, w + s, n)", "(r, s, n)", "(h, w, n)")
PLANES = ("(n, h + r, w + s)", "(r, s, n)", "(n, h, w)")


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        yield


def planned(maps: tuple[str, str, str], machine: Machine = MACHINE, **sizes: int) -> tuple[Tiling, list[int]]:
    """The tiling of a convolution with constant filters and these sizes of its loops, and what it prefetches."""
    depth = [d for d in "rsc" if d in sizes]
    loops = ["h", "w", "n", *depth]
    span = {"h + r": sizes["h"] + sizes["r"] - 1, "w + s": sizes["w"] + sizes["s"] - 1, **sizes}

    def kind(access: str) -> str:
        return "tensor<" + "".join(f"{span[e]}x" for e in access.strip("()").split(", ")) + "f32>"

    image, filters, result = (kind(access) for access in maps)
    at = ", ".join(f"affine_map<({', '.join(loops)}) -> {access}>" for access in maps)
    iterators = ", ".join(['"parallel"'] * 3 + ['"reduction"'] * len(depth))
    module = ir.Module.parse(f"""
        ml_program.global private @f(#ml_program.extern<{filters}>) : {filters}
        func.func @main(%x: {image}) -> {result} {{
          %zero = arith.constant 0.0 : f32
          %f = ml_program.global_load_const @f : {filters}
          %e = tensor.empty() : {result}
          %z = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}
          %y = linalg.generic {{indexing_maps = [{at}], iterator_types = [{iterators}]}}
              ins(%x, %f : {image}, {filters}) outs(%z : {result}) {{
          ^bb0(%a: f32, %b: f32, %o: f32):
            %m = arith.mulf %a, %b : f32
            %t = arith.addf %o, %m : f32
            linalg.yield %t : f32
          }} -> {result}
          return %y : {result}
        }}""")
    weights = Weights()
    ops = [op for block in blocks(module.operation) for op in linalg_ops(block, weights)]
    tiling = tile_contraction(ops[-1], machine, weights)
    return tiling, prefetched(ops[-1], tiling, machine)


def test_short_lines_share_a_register_tile() -> None:
    tiling, _ = planned(DENSE, h=7, w=7, n=64, r=3, s=3, c=64)
    assert tiling.register == [2, 7, 32, 1, 1, 1]
    tiling, _ = planned(DENSE, h=14, w=14, n=64, r=3, s=3, c=64)
    assert tiling.register == [1, 14, 32, 1, 1, 1]


def test_weights_that_stay_are_shared_by_tasks_of_lines() -> None:
    tiling, ahead = planned(DENSE, h=56, w=56, n=64, r=3, s=3, c=64)
    assert tiling.task[1:3] == [56, 64]
    assert tiling.task[0] < 56
    assert not ahead


def test_weights_from_far_are_cut_and_prefetched() -> None:
    tiling, ahead = planned(DENSE, h=14, w=14, n=512, r=3, s=3, c=256)
    assert tiling.task[:3] == [14, 14, 32]
    assert tiling.order[0] == 2
    assert ahead == [1]


def test_few_panels_from_far_leave_work_for_all() -> None:
    tiling, _ = planned(DENSE, h=28, w=28, n=128, r=3, s=3, c=128)
    assert tiling.task[1:3] == [28, 32]
    assert tiling.task[0] <= 7


def test_depthwise_runs_in_the_order_of_memory() -> None:
    tiling, _ = planned(DEPTHWISE, h=56, w=56, n=96, r=3, s=3)
    assert tiling.order == [0, 1, 2, 3, 4]
    assert tiling.task[1:3] == [56, 96]
    assert tiling.task[0] == 4


def test_planes_have_lanes_along_lines() -> None:
    tiling, _ = planned(PLANES, h=112, w=112, n=128, r=3, s=3)
    assert tiling.register == [5, 32, 1, 1, 1]  # 10 sums, 9 elements of the filter, 8 vectors of lines that are shared
    assert tiling.task == [112, 112, 8, 3, 3]
    assert tiling.order == [2, 0, 1, 4, 3]  # down the window last
    assert tiling.unroll == [1, 1, 1, 3, 1]


@pytest.mark.parametrize(("columns", "rows"), [(3, 4), (1, 14)])
def test_few_columns_have_lanes_along_the_sum(columns: int, rows: int) -> None:
    """Three channels would leave thirteen of sixteen lanes idle; partial sums of them fill the registers."""
    tiling, _ = planned(DENSE, h=28, w=28, n=columns, r=3, s=3, c=64)
    assert tiling.register == [1, rows, columns, 1, 1, 16]
    assert tiling.order[-1] == 5
    assert tiling.task[2:] == [columns, 3, 3, 64]


def test_many_columns_or_short_sums_keep_lanes_along_columns() -> None:
    for n, c in ((8, 64), (3, 4)):
        tiling, _ = planned(DENSE, h=28, w=28, n=n, r=3, s=3, c=c)
        assert tiling.register[2] == n and tiling.register[5] == 1


def padded(places: int, dilation: int, inserted: str) -> tuple[ir.Module, LinalgOp]:
    """A sum over a window of three steps along `places` that lie between borders as wide as the dilation."""
    wide = places + 2 * dilation
    module = ir.Module.parse(f"""
        func.func @main(%x: tensor<{places}x32xf32>, %z: tensor<{wide}x32xf32>, %w: tensor<3x32x32xf32>)
            -> tensor<{places}x32xf32> {{
          %zero = arith.constant 0.0 : f32
          %b = tensor.empty() : tensor<{wide}x32xf32>
          %f = linalg.fill ins(%zero : f32) outs(%b : tensor<{wide}x32xf32>) -> tensor<{wide}x32xf32>
          %none = tensor.empty() : tensor<2x32xf32>
          %border = linalg.fill ins(%zero : f32) outs(%none : tensor<2x32xf32>) -> tensor<2x32xf32>
          %ends = tensor.insert_slice %border into %b[0, 0] [2, 32] [{wide - 1}, 1]
              : tensor<2x32xf32> into tensor<{wide}x32xf32>
          %i = tensor.insert_slice %x into {inserted}[{dilation}, 0] [{places}, 32] [1, 1]
              : tensor<{places}x32xf32> into tensor<{wide}x32xf32>
          %e = tensor.empty() : tensor<{places}x32xf32>
          %g = linalg.fill ins(%zero : f32) outs(%e : tensor<{places}x32xf32>) -> tensor<{places}x32xf32>
          %y = linalg.generic {{indexing_maps = [affine_map<(h, n, r, c) -> (h + r * {dilation}, c)>,
              affine_map<(h, n, r, c) -> (r, c, n)>, affine_map<(h, n, r, c) -> (h, n)>],
              iterator_types = ["parallel", "parallel", "reduction", "reduction"]}}
              ins(%i, %w : tensor<{wide}x32xf32>, tensor<3x32x32xf32>) outs(%g : tensor<{places}x32xf32>) {{
          ^bb0(%p: f32, %q: f32, %o: f32):
            %m = arith.mulf %p, %q : f32
            %t = arith.addf %o, %m : f32
            linalg.yield %t : f32
          }} -> tensor<{places}x32xf32>
          return %y : tensor<{places}x32xf32>
        }}""")
    return module, [op for block in blocks(module.operation) for op in linalg_ops(block, Weights())][-1]


@pytest.mark.parametrize(
    ("places", "dilation", "rows", "inserted", "skips"),
    [
        (20, 8, 5, "%f", True),
        (20, 8, 20, "%f", False),  # some place of the tile is inside at each step
        (40, 1, 5, "%f", False),  # too few steps lie outside
        (20, 8, 5, "%b", True),  # what nothing wrote has no contents
        (20, 8, 5, "%z", False),  # anything may lie there
        (7, 1, 1, "%ends", True),  # both ends of a border, inserted at once
    ],
)
def test_windows_skip_the_border(places: int, dilation: int, rows: int, inserted: str, skips: bool) -> None:
    _module, op = padded(places, dilation, inserted)
    mark_image(op, [rows, 32, 1, 1], ["unit", "unit"])
    assert ("tile.image" in op.op.attributes) == skips
    if skips:
        assert list(ir.DenseI64ArrayAttr(op.op.attributes["tile.image"])) == [0, 0, dilation, dilation + places]


@pytest.mark.parametrize(("ways", "channels", "rows"), [(12, 1024, 12), (8, 1024, 6), (8, 512, 12), (8, 1008, 12)])
def test_rows_of_a_tile_stay_in_the_nearest_cache(ways: int, channels: int, rows: int) -> None:
    """Places 4 KB apart share a set of the cache, those 2 KB apart two; other distances reach all sets."""
    machine = replace(MACHINE, l1_bytes=4096 * ways, l1_ways=ways)
    tiling, _ = planned(DENSE, machine, h=12, w=12, n=64, r=3, s=3, c=channels)
    assert tiling.register[1] == rows
