# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole programs on tensors: bufferization, arena, launches, tw_main."""

from __future__ import annotations

import re

import numpy as np

from lib.Conversion.native import call_main, lower

RNG = np.random.default_rng(5)
KERNELS = """
tile.kernel @scale(%x: memref<8x32xf32>, %w: memref<32xf32>, %y: memref<8x32xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%i, %c0] : memref<8x32xf32>, !tile.tile<1x32xf32>
  %b = tile.load %w[%c0] : memref<32xf32>, !tile.tile<32xf32>
  %c = tile.broadcast %b : !tile.tile<32xf32> -> !tile.tile<1x32xf32>
  %d = arith.mulf %a, %c : !tile.tile<1x32xf32>
  tile.store %d, %y[%i, %c0] : !tile.tile<1x32xf32>, memref<8x32xf32>
  tile.return
}
tile.kernel @add(%x: memref<8x32xf32>, %y: memref<8x32xf32>, %z: memref<8x32xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%i, %c0] : memref<8x32xf32>, !tile.tile<1x32xf32>
  %b = tile.load %y[%i, %c0] : memref<8x32xf32>, !tile.tile<1x32xf32>
  %d = arith.addf %a, %b : !tile.tile<1x32xf32>
  tile.store %d, %z[%i, %c0] : !tile.tile<1x32xf32>, memref<8x32xf32>
  tile.return
}
"""
T = "tensor<8x32xf32>"


def floats(*shape: int) -> np.ndarray:
    """Random f32."""
    return RNG.standard_normal(shape, dtype=np.float32)


def arena_of(text: str) -> int:
    """The arena that tw_main wants, in bytes."""
    found = re.search(r"tile\.arena_bytes = (\d+)", lower(text, schedule=True))
    assert found
    return int(found[1])


def test_weights_temporaries_and_a_reshaped_result() -> None:
    """Three launches; the result is the last buffer, seen through a reshape."""
    text = f"""{KERNELS}
ml_program.global private @w_1(#ml_program.extern<tensor<32xf32>>) : tensor<32xf32>
func.func @main(%x: {T} {{tile.name = "x"}}) -> (tensor<256xf32> {{tile.name = "y"}}) {{
  %c8 = arith.constant 8 : index
  %w = ml_program.global_load_const @w_1 : tensor<32xf32>
  %e = tensor.empty() : {T}
  %0 = tile.launch @scale grid(%c8) ins(%x, %w : {T}, tensor<32xf32>) outs(%e : {T}) -> ({T})
  %1 = tile.launch @add grid(%c8) ins(%0, %x : {T}, {T}) outs(%e : {T}) -> ({T})
  %2 = tile.launch @add grid(%c8) ins(%1, %0 : {T}, {T}) outs(%e : {T}) -> ({T})
  %3 = tensor.collapse_shape %2 [[0, 1]] : {T} into tensor<256xf32>
  return %3 : tensor<256xf32>
}}"""
    x, w, y = floats(8, 32), floats(32), floats(256)
    kept = x.copy()
    call_main(text, [x], [y], [w], arena_of(text))
    np.testing.assert_allclose(y, (2 * x * w + x).reshape(-1), rtol=1e-6)
    np.testing.assert_array_equal(x, kept)
    lowered = lower(text, schedule=True)
    assert 'tile.inputs = ["x"]' in lowered
    assert 'tile.outputs = ["y"]' in lowered
    assert 'tile.globals = ["w_1"]' in lowered
    assert "@copy" not in lowered
    assert arena_of(text) <= 2 * 1024


def test_returned_input_and_doubled_result() -> None:
    """An input that is a result, and one value returned twice, are copied."""
    text = f"""{KERNELS}
func.func @main(%x: {T} {{tile.name = "x"}}) -> ({T} {{tile.name = "a"}}, {T} {{tile.name = "b"}},
                                                {T} {{tile.name = "c"}}) {{
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : {T}
  %0 = tile.launch @add grid(%c8) ins(%x, %x : {T}, {T}) outs(%e : {T}) -> ({T})
  return %0, %x, %0 : {T}, {T}, {T}
}}"""
    x = floats(8, 32)
    a, b, c = (floats(8, 32) for _ in range(3))
    call_main(text, [x], [a, b, c], [], arena_of(text))
    np.testing.assert_array_equal(a, 2 * x)
    np.testing.assert_array_equal(b, x)
    np.testing.assert_array_equal(c, 2 * x)


def test_loop_carries_a_state_in_place() -> None:
    """An scf.for over tensors, whose state is updated in place."""
    text = f"""{KERNELS}
func.func @main(%x: {T} {{tile.name = "x"}}) -> ({T} {{tile.name = "y"}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : {T}
  %s = tile.launch @add grid(%c8) ins(%x, %x : {T}, {T}) outs(%e : {T}) -> ({T})
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %s) -> ({T}) {{
    %t = tensor.empty() : {T}
    %0 = tile.launch @add grid(%c8) ins(%h, %x : {T}, {T}) outs(%t : {T}) -> ({T})
    %1 = tile.launch @add grid(%c8) ins(%0, %x : {T}, {T}) outs(%h : {T}) -> ({T})
    scf.yield %1 : {T}
  }}
  return %r : {T}
}}"""
    x, y = floats(8, 32), floats(8, 32)
    call_main(text, [x], [y], [], arena_of(text))
    np.testing.assert_allclose(y, 18 * x, rtol=1e-5)


def test_slices_are_written_in_place() -> None:
    """Concatenation: each part is computed in its place."""
    big = "tensor<16x32xf32>"
    text = f"""
tile.kernel @add(%x: memref<8x32xf32>, %y: memref<8x32xf32, strided<[32, 1], offset: ?>>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%i, %c0] : memref<8x32xf32>, !tile.tile<1x32xf32>
  %d = arith.addf %a, %a : !tile.tile<1x32xf32>
  tile.store %d, %y[%i, %c0] : !tile.tile<1x32xf32>, memref<8x32xf32, strided<[32, 1], offset: ?>>
  tile.return
}}
func.func @main(%x: {T} {{tile.name = "x"}}, %z: {T} {{tile.name = "z"}}) -> ({big} {{tile.name = "y"}}) {{
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : {big}
  %d0 = tensor.extract_slice %e[0, 0] [8, 32] [1, 1] : {big} to {T}
  %0 = tile.launch @add grid(%c8) ins(%x : {T}) outs(%d0 : {T}) -> ({T})
  %e0 = tensor.insert_slice %0 into %e[0, 0] [8, 32] [1, 1] : {T} into {big}
  %d1 = tensor.extract_slice %e0[8, 0] [8, 32] [1, 1] : {big} to {T}
  %1 = tile.launch @add grid(%c8) ins(%z : {T}) outs(%d1 : {T}) -> ({T})
  %e1 = tensor.insert_slice %1 into %e0[8, 0] [8, 32] [1, 1] : {T} into {big}
  return %e1 : {big}
}}"""
    x, z, y = floats(8, 32), floats(8, 32), floats(16, 32)
    call_main(text, [x, z], [y], [], arena_of(text))
    np.testing.assert_array_equal(y, 2 * np.concatenate([x, z]))
    assert "@copy" not in lower(text, schedule=True)
    assert arena_of(text) == 0
