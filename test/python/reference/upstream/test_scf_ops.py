# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`scf`, `affine`, functions and globals."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError


@pytest.mark.parametrize(("lower", "upper", "step"), [(0, 5, 1), (2, 11, 3), (3, 3, 1), (5, 1, 1)])
def test_for(interpret, lower, upper, step):
    text = """func.func @main(%l: index, %u: index, %s: index) -> (index, index) {
      %c0 = arith.constant 0 : index
      %sum, %n = scf.for %i = %l to %u step %s iter_args(%a = %c0, %b = %c0) -> (index, index) {
        %c1 = arith.constant 1 : index
        %a1 = arith.addi %a, %i : index
        %b1 = arith.addi %b, %c1 : index
        scf.yield %a1, %b1 : index, index }
      return %sum, %n : index, index }"""
    total, count = interpret(text, lower, upper, step)
    assert (int(total), int(count)) == (sum(range(lower, upper, step)), len(range(lower, upper, step)))


@pytest.mark.parametrize("step", [0, -1])
def test_for_needs_a_positive_step(interpret, step):
    text = """func.func @main(%s: index) {
      %c0 = arith.constant 0 : index
      scf.for %i = %c0 to %c0 step %s {}
      return }"""
    with pytest.raises(InterpreterError, match="positive step"):
        interpret(text, step)


def test_loop_carried_values_swap(interpret):
    text = """func.func @main(%n: index, %x: f32, %y: f32) -> (f32, f32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (f32, f32) { scf.yield %b, %a : f32, f32 }
      return %r#0, %r#1 : f32, f32 }"""
    assert [float(v) for v in interpret(text, 3, 1, 2)] == [2, 1]


def test_if_while_switch(interpret):
    text = """func.func @main(%n: i32) -> (i32, i32, i32) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      // Number of halvings down to zero.
      %w:2 = scf.while (%v = %n, %k = %c0) : (i32, i32) -> (i32, i32) {
        %go = arith.cmpi sgt, %v, %c0 : i32
        scf.condition(%go) %v, %k : i32, i32
      } do {
      ^bb0(%v: i32, %k: i32):
        %h = arith.divsi %v, %c2 : i32
        %k1 = arith.addi %k, %c1 : i32
        scf.yield %h, %k1 : i32, i32
      }
      %r = arith.remsi %n, %c2 : i32
      %odd = arith.cmpi eq, %r, %c1 : i32
      %i = scf.if %odd -> (i32) { scf.yield %c1 : i32 } else { scf.yield %c2 : i32 }
      %x = arith.index_cast %n : i32 to index
      %s = scf.index_switch %x -> i32
        case 4 { scf.yield %c1 : i32 }
        case 9 { scf.yield %c2 : i32 }
        default { scf.yield %c0 : i32 }
      return %w#1, %i, %s : i32, i32, i32 }"""
    assert [int(v) for v in interpret(text, 9)] == [4, 1, 2]
    assert [int(v) for v in interpret(text, 4)] == [3, 2, 1]
    assert [int(v) for v in interpret(text, 0)] == [0, 2, 0]


def test_forall_sees_what_was_there_before(interpret):
    text = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %r = scf.forall (%i) in (4) shared_outs(%o = %a) -> (tensor<4xf32>) {
        %c3 = arith.constant 3 : index
        %m = arith.subi %c3, %i : index
        %v = tensor.extract_slice %o[%m] [1] [1] : tensor<4xf32> to tensor<1xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %v into %o[%i] [1] [1] : tensor<1xf32> into tensor<4xf32>
        }
      }
      return %r : tensor<4xf32> }"""
    assert interpret(text, np.float32([1, 2, 3, 4]))[0].tolist() == [4, 3, 2, 1]


def test_parallel_with_reduction(interpret):
    text = """func.func @main(%m: memref<3x4xf32>) -> f32 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %z = arith.constant 0.0 : f32
      %s = scf.parallel (%i, %j) = (%c0, %c0) to (%c3, %c4) step (%c1, %c1) init (%z) -> f32 {
        %v = memref.load %m[%i, %j] : memref<3x4xf32>
        scf.reduce(%v : f32) { ^bb0(%a: f32, %b: f32): %t = arith.addf %a, %b : f32 scf.reduce.return %t : f32 }
      }
      return %s : f32 }"""
    assert interpret(text, np.arange(12, dtype=np.float32).reshape(3, 4))[0] == 66


def test_affine(interpret):
    text = """func.func @main(%i: index, %n: index) -> (index, index, index, index, index, index, index) {
      %a = affine.apply affine_map<(d0)[s0] -> (d0 * 3 + s0 - 1)>(%i)[%n]
      %f = affine.apply affine_map<(d0) -> (d0 floordiv 4 + d0 ceildiv 4)>(%i)
      %m = affine.apply affine_map<(d0) -> (d0 mod 4)>(%i)
      %l = affine.min affine_map<(d0)[s0] -> (d0, s0 - 3)>(%i)[%n]
      %h = affine.max affine_map<(d0)[s0] -> (d0, s0 - 3)>(%i)[%n]
      %d:2 = affine.delinearize_index %n into (3, 5) : index, index
      %back = affine.linearize_index [%d#0, %d#1] by (3, 5) : index
      return %a, %f, %m, %l, %h, %d#0, %back : index, index, index, index, index, index, index }"""
    assert [int(v) for v in interpret(text, -6, 13)] == [-6, -3, 2, -6, 10, 2, 13]


def test_execute_region_and_a_mutable_global(interpret):
    text = """
    ml_program.global private mutable @counter(dense<3> : tensor<i32>) : tensor<i32>
    func.func @main() -> (tensor<i32>, tensor<i32>) {
      %old = ml_program.global_load @counter : tensor<i32>
      %new = scf.execute_region -> tensor<i32> {
        %sum = arith.addi %old, %old : tensor<i32>
        scf.yield %sum : tensor<i32>
      }
      ml_program.global_store @counter = %new : tensor<i32>
      %now = ml_program.global_load @counter : tensor<i32>
      return %old, %now : tensor<i32>, tensor<i32> }"""
    assert [int(v) for v in interpret(text)] == [3, 6]


def test_calls_and_weights(interpret):
    text = """
    ml_program.global private @w(#ml_program.extern<tensor<2xf32>>) : tensor<2xf32>
    ml_program.global private @inline(dense<[3.0, 4.0]> : tensor<2xf32>) : tensor<2xf32>
    func.func @double(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = arith.addf %x, %x : tensor<2xf32>
      return %y : tensor<2xf32> }
    func.func @main() -> tensor<2xf32> {
      %w = ml_program.global_load_const @w : tensor<2xf32>
      %i = ml_program.global_load_const @inline : tensor<2xf32>
      %d = call @double(%w) : (tensor<2xf32>) -> tensor<2xf32>
      %s = arith.addf %d, %i : tensor<2xf32>
      return %s : tensor<2xf32> }"""
    assert interpret(text, weights={"w": np.float32([1, 2])})[0].tolist() == [5, 8]
    with pytest.raises(InterpreterError, match="no weight given for the external global @w"):
        interpret(text)
    with pytest.raises(InterpreterError, match="weight @w has shape"):
        interpret(text, weights={"w": np.float32([1, 2, 3])})


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "takes 1 arguments, got 0"),
        ([np.zeros(2, np.float64)], "argument 0 of @main has dtype float64"),
        ([np.zeros((2, 1), np.float32)], "argument 0 of @main has shape"),
    ],
)
def test_wrong_arguments_are_reported(interpret, args, message):
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    with pytest.raises(InterpreterError, match=message):
        interpret(text, *args)


def test_a_missing_function_is_reported(interpret):
    with pytest.raises(InterpreterError, match="no symbol @other"):
        interpret("func.func @main() { return }", function="other")
