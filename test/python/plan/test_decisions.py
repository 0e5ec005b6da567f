# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each decision is an attribute: edited by hand, it changes the code, and only it does."""

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import reference
from tilewright.mlir import ir
from tilewright.passes import run_pipeline

#: y = x w, with a run-time operand that the decisions below say to copy.
PRODUCT = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<32x48xf32> {tile.name = "x"}, %w: tensor<64x48xf32> {tile.name = "w"})
    -> (tensor<32x64xf32> {tile.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<32x48xf32>, tensor<64x48xf32>) outs(%f : tensor<32x64xf32>)
      attrs = {tile.task = 0 : i64, tile.nest = 0 : i64, tile.kernel = "product",
        tile.rtile = #tile.rtile<l2 = [16, 32, 48], register = [8, 32, 1], order = [1, 0, 2]>,
        tile.layouts = [unit, #tile.layout<perm = [1, 0]>],
        tile.pack_rtiles = [unit, #tile.rtile<l2 = [48, 32], register = [16, 16], order = [0, 1]>]} {
  ^bb0(%q: f32, %s: f32, %o: f32):
    %m = arith.mulf %q, %s : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<32x64xf32>) outs(%e : tensor<32x64xf32>)
      attrs = {tile.task = 0 : i64, tile.nest = 0 : i64} {
  ^bb0(%q: f32, %o: f32):
    %t = arith.negf %q : f32
    linalg.yield %t : f32
  } -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}
"""
APPLY = "builtin.module(tile-apply-layouts,tile-form-groups,tile-groups-to-kernels,canonicalize,cse)"
SPLIT_NEST = (
    "attrs = {tile.task = 0 : i64, tile.nest = 0 : i64} {",
    "attrs = {tile.task = 0 : i64, tile.nest = 7 : i64,"
    " tile.rtile = #tile.rtile<l2 = [16, 32], register = [1, 32], order = [0, 1]>} {",
)
SPLIT_TASK = (SPLIT_NEST[0], SPLIT_NEST[1].replace("tile.task = 0", "tile.task = 1"))


def kernels(text: str) -> str:
    """The IR after phase `tile`."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, APPLY)
        return str(module)


def check_numbers(kernel_text: str) -> None:
    """The edited program still means the product."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((32, 48), np.float32), rng.standard_normal((64, 48), np.float32)
    with ir.Context(), ir.Location.unknown():
        (y,) = reference.run(ir.Module.parse(kernel_text), "main", [x, w])
    np.testing.assert_allclose(y, -(x @ w.T), rtol=1e-5, atol=1e-5)


EDITS = {
    "register tile": (("register = [8, 32, 1]", "register = [4, 16, 1]"), r"tile\.tile<4x16xf32>", r"tile<8x32xf32>"),
    "task tile": (("l2 = [16, 32, 48]", "l2 = [32, 64, 48]"), r"tile\.launch @product ins", r"launch @product grid"),
    "order": (("order = [1, 0, 2]", "order = [0, 1, 2]"), r"grid\(%c2, %c2_?0?\)|grid\(%c2, %c2\)", None),
    "unroll": (("1], order = [1, 0, 2]", "1], unroll = [1, 1, 5], order = [1, 0, 2]"), r"%c45 step %c5", None),
    "prefetch": (("tile.layouts", "tile.prefetch = array<i64: 0>, tile.layouts"), r"memref\.prefetch", None),
    "layout": (("#tile.layout<perm = [1, 0]>]", "unit]"), None, r"tile\.alloc"),
    "copy tile": (("register = [16, 16]", "register = [8, 32]"), r"tile<32x8xf32>|tile<8x32xf32>", r"tile<16x16xf32>"),
    "nest": (SPLIT_NEST, r"tile\.alloc : memref<16x32xf32", None),
    "task": (SPLIT_TASK, r"(?s)tile\.launch.*tile\.launch", None),
}

#: The same with a number of rows that is known at run time only; two nests in a task, which takes all rows.
OPEN = (
    PRODUCT.replace(*SPLIT_NEST)
    .replace("tensor<32x", "tensor<?x")
    .replace("tensor.empty()", "tensor.empty(%n)")
    .replace("  %zero =", "  %c0 = arith.constant 0 : index\n  %n = tensor.dim %x, %c0 : tensor<?x48xf32>\n  %zero =")
    .replace("l2 = [16,", "l2 = [?,")
)
OPEN_EDITS = {
    "tails": (
        ("tile.layouts", "tile.tails = [array<i64: 3, 1>, array<i64>, array<i64>], tile.layouts"),
        r"tile\.tile<3x32xf32>",
        r"tile\.mma.*tile\.tile<4x32xf32>",
    ),
    "bounds": (
        ("tile.layouts", "tile.bounds = array<i64: 40, 64, 48>, tile.layouts"),
        r"tile\.alloc : memref<40x32xf32",
        None,
    ),
    "copies apart": (("tile.layouts", "tile.pack_apart, tile.layouts"), r"(?s)launch @pack.*launch @product", None),
}


@pytest.mark.parametrize("name", [*EDITS, *OPEN_EDITS])
def test_an_edited_decision_changes_the_kernel(name: str) -> None:
    text = PRODUCT if name in EDITS else OPEN
    (old, new), appears, vanishes = {**EDITS, **OPEN_EDITS}[name]
    assert old in text
    before, after = kernels(text), kernels(text.replace(old, new))
    assert before != after
    if appears:
        assert re.search(appears, after)
    if vanishes:
        assert re.search(vanishes, before) and not re.search(vanishes, after)
    check_numbers(after)


def test_traversal_order_decides_which_loop_is_outer() -> None:
    text = PRODUCT.replace("l2 = [16, 32, 48]", "l2 = [32, 64, 48]")

    def loops(text: str) -> list[str]:
        return re.findall(r"to %c(\d+)(?:_\d+)? step", text[: text.index("tile.mma")])[-3:]

    assert loops(kernels(text)) == ["64", "32", "48"]
    assert loops(kernels(text.replace("order = [1, 0, 2]", "order = [0, 1, 2]"))) == ["32", "64", "48"]


def test_code_is_made_from_the_text_of_phase_tile_alone() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((32, 48), np.float32), rng.standard_normal((64, 48), np.float32)
    model = tw.compile(kernels(PRODUCT), threads=2)
    np.testing.assert_allclose(model(x, w)[0], -(x @ w.T), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_decision_changes_the_machine_code(name: str) -> None:
    (old, new), _, _ = EDITS[name]
    before, after = (tw.compile(kernels(text), threads=2) for text in (PRODUCT, PRODUCT.replace(old, new)))
    assert code(before) != code(after)
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((32, 48), np.float32), rng.standard_normal((64, 48), np.float32)
    for model in (before, after):
        np.testing.assert_allclose(model(x, w)[0], -(x @ w.T), rtol=1e-5, atol=1e-5)


def code(model: tw.Model) -> bytes:
    """The shared object of a model."""
    (file,) = (model.path / "code").glob("*.so")
    return file.read_bytes()


def test_decisions_place_values() -> None:
    """The product lies in registers, in a buffer of the task, or where the result goes; the copy of `w` in the task."""
    panel, block = 48 * 32 * 4, 16 * 32 * 4
    assert places(PRODUCT) == ([panel], 0)
    assert places(PRODUCT.replace(*SPLIT_NEST)) == ([panel + block], 0)
    assert places(PRODUCT.replace(*SPLIT_TASK)) == ([panel, 0], 0)  # the next kernel works in place
    assert places(PRODUCT.replace(*EDITS["layout"][0])) == ([0], 0)


def places(text: str) -> tuple[list[int], int]:
    """Bytes that a task of each kernel holds, and bytes of the arena, which lie between kernels."""
    model = tw.compile(kernels(text), threads=1)
    return [kernel.scratch_bytes for kernel in model.kernels], model.held_bytes["arena"]
