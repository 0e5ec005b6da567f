# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`memref`: views share memory, accesses are checked."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError


def test_store_through_a_subview(interpret):
    text = """func.func @main(%m: memref<6x8xf32>, %i: index, %v: f32) {
      %s = memref.subview %m[%i, 1] [2, 3] [2, 2] : memref<6x8xf32> to memref<2x3xf32, strided<[16, 2], offset: ?>>
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      memref.store %v, %s[%c1, %c2] : memref<2x3xf32, strided<[16, 2], offset: ?>>
      return }"""
    m = np.zeros((6, 8), np.float32)
    interpret(text, m, 1, 7)
    assert m[3, 5] == 7
    assert m.sum() == 7
    with pytest.raises(InterpreterError, match="outside a dimension of 6"):
        interpret(text, m, 4, 7)


@pytest.mark.parametrize("index", [-1, 4])
def test_an_access_outside_is_reported(interpret, index):
    text = """func.func @main(%m: memref<4xf32>, %i: index) -> f32 {
      %v = memref.load %m[%i] : memref<4xf32>
      return %v : f32 }"""
    with pytest.raises(InterpreterError, match="outside dimension 0 of size 4|out of bounds for axis 0 with size 4"):
        interpret(text, np.zeros(4, np.float32), index)


def test_alloc_is_poison_and_copy_copies(interpret):
    text = """func.func @main(%m: memref<2x3xf32>) -> (f32, memref<2x3xf32>) {
      %a = memref.alloc() : memref<2x3xf32>
      %c0 = arith.constant 0 : index
      %p = memref.load %a[%c0, %c0] : memref<2x3xf32>
      memref.copy %m, %a : memref<2x3xf32> to memref<2x3xf32>
      return %p, %a : f32, memref<2x3xf32> }"""
    m = np.ones((2, 3), np.float32)
    poison, copied = interpret(text, m)
    assert np.isnan(poison)
    np.testing.assert_array_equal(copied, m)


def test_views_of_an_arena(interpret):
    text = """func.func @main(%arena: memref<64xi8>, %at: index, %v: f32) {
      %a = memref.view %arena[%at][] : memref<64xi8> to memref<2x4xf32>
      %c = memref.collapse_shape %a [[0, 1]] : memref<2x4xf32> into memref<8xf32>
      %e = memref.expand_shape %c [[0, 1]] output_shape [4, 2] : memref<8xf32> into memref<4x2xf32>
      %t = memref.transpose %e (i, j) -> (j, i) : memref<4x2xf32> to memref<2x4xf32, strided<[1, 2]>>
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      memref.store %v, %t[%c1, %c3] : memref<2x4xf32, strided<[1, 2]>>
      return }"""
    arena = np.zeros(64, np.int8)
    interpret(text, arena, 32, 2.5)
    assert arena.view(np.float32)[8 + 7] == 2.5
    with pytest.raises(InterpreterError, match="bytes 40..72 are outside a buffer of 64"):
        interpret(text, arena, 40, 2.5)


def test_ops_that_change_no_element(interpret):
    text = """func.func @main(%x: memref<4xf32>) -> f32 {
      %c0 = arith.constant 0 : index
      %a = memref.alloca() : memref<4xf32>
      %b = memref.alloc() : memref<4xf32>
      memref.copy %x, %a : memref<4xf32> to memref<4xf32>
      memref.dealloc %b : memref<4xf32>
      memref.prefetch %a[%c0], read, locality<3>, data : memref<4xf32>
      %s = memref.memory_space_cast %a : memref<4xf32> to memref<4xf32, 1>
      %l = memref.assume_alignment %s, 64 : memref<4xf32, 1>
      %d = memref.cast %l : memref<4xf32, 1> to memref<?xf32, 1>
      %v = memref.load %d[%c0] : memref<?xf32, 1>
      return %v : f32 }"""
    assert interpret(text, np.float32([5, 6, 7, 8]))[0] == 5


def test_reinterpret_cast_and_metadata(interpret):
    text = """func.func @main(%m: memref<4x6xf32>) -> (memref<2x3xf32, strided<[1, 6], offset: 7>>, index, index) {
      %s = memref.subview %m[1, 2] [2, 2] [1, 2] : memref<4x6xf32> to memref<2x2xf32, strided<[6, 2], offset: 8>>
      %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %s
        : memref<2x2xf32, strided<[6, 2], offset: 8>> -> memref<f32>, index, index, index, index, index
      %r = memref.reinterpret_cast %m to offset: [7], sizes: [2, 3], strides: [1, 6]
        : memref<4x6xf32> to memref<2x3xf32, strided<[1, 6], offset: 7>>
      return %r, %offset, %strides#1 : memref<2x3xf32, strided<[1, 6], offset: 7>>, index, index }"""
    m = np.arange(24, dtype=np.float32).reshape(4, 6)
    recast, offset, stride = interpret(text, m)
    assert recast.tolist() == [[7, 13, 19], [8, 14, 20]]
    assert (int(offset), int(stride)) == (8, 2)


def test_globals_and_atomics(interpret):
    text = """
    memref.global @table : memref<3xf32> = dense<[1.0, 2.0, 3.0]>
    func.func @main(%v: f32) -> (f32, memref<3xf32>) {
      %t = memref.get_global @table : memref<3xf32>
      %c1 = arith.constant 1 : index
      %old = memref.atomic_rmw addf %v, %t[%c1] : (f32, memref<3xf32>) -> f32
      %u = memref.get_global @table : memref<3xf32>
      return %old, %u : f32, memref<3xf32> }"""
    old, table = interpret(text, 10)
    assert old == 2
    assert table.tolist() == [1, 12, 3]
