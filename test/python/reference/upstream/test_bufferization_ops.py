# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`bufferization`: tensors as memory, and ownership."""

from __future__ import annotations

import numpy as np


def test_tensors_and_memory(interpret):
    text = """func.func @main(%m: memref<2xf32>, %v: f32) -> (tensor<2xf32>, memref<2xf32>, tensor<2xf32>) {
      %c0 = arith.constant 0 : index
      %t = bufferization.to_tensor %m restrict : memref<2xf32> to tensor<2xf32>
      %k = bufferization.clone %m : memref<2xf32> to memref<2xf32>
      memref.store %v, %m[%c0] : memref<2xf32>
      %a = bufferization.alloc_tensor() copy(%t) : tensor<2xf32>
      %b = bufferization.to_buffer %a : tensor<2xf32> to memref<2xf32>
      memref.store %v, %b[%c0] : memref<2xf32>
      bufferization.dealloc_tensor %a : tensor<2xf32>
      %n = bufferization.to_tensor %b restrict : memref<2xf32> to tensor<2xf32>
      return %t, %k, %n : tensor<2xf32>, memref<2xf32>, tensor<2xf32> }"""
    memory = np.float32([1, 2])
    old, cloned, new = interpret(text, memory, 9)
    assert [old.tolist(), cloned.tolist(), new.tolist(), memory.tolist()] == [[1, 2], [1, 2], [9, 2], [9, 2]]


def test_materialize_in_destination(interpret):
    text = """func.func @main(%s: tensor<2xf32>, %t: tensor<2xf32>, %m: memref<2xf32>) -> tensor<2xf32> {
      %r = bufferization.materialize_in_destination %s in %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      bufferization.materialize_in_destination %s in restrict writable %m : (tensor<2xf32>, memref<2xf32>) -> ()
      return %r : tensor<2xf32> }"""
    source, memory = np.float32([1, 2]), np.zeros(2, np.float32)
    assert interpret(text, source, np.zeros(2, np.float32), memory)[0].tolist() == [1, 2]
    assert memory.tolist() == [1, 2]


def test_dealloc_hands_ownership_on(interpret):
    text = """func.func @main(%a: memref<4xf32>, %b: memref<4xf32>, %own: i1) -> (i1, i1) {
      %t = arith.constant true
      %s = memref.subview %a[1] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: 1>>
      %r:2 = bufferization.dealloc (%a, %b : memref<4xf32>, memref<4xf32>) if (%own, %t)
        retain (%s, %b : memref<2xf32, strided<[1], offset: 1>>, memref<4xf32>)
      return %r#0, %r#1 : i1, i1 }"""
    arrays = np.zeros(4, np.float32), np.zeros(4, np.float32)
    assert [bool(v) for v in interpret(text, *arrays, True)] == [True, True]
    assert [bool(v) for v in interpret(text, *arrays, False)] == [False, True]
