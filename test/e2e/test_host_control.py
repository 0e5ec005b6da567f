# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow that depends on data, around kernels and around scalar loops."""

from __future__ import annotations

import resource

import numpy as np
import pytest

import tilewright as tw

#: Doubles a tensor and appends a one, as often as the input says.
GROW = """
func.func @main(%x: tensor<?xf32>, %n: tensor<i64>) -> (tensor<?xf32>, tensor<i64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %m = tensor.extract %n[] : tensor<i64>
  %r:2 = scf.while (%k = %zero, %t = %x) : (i64, tensor<?xf32>) -> (i64, tensor<?xf32>) {
    %go = arith.cmpi slt, %k, %m : i64
    scf.condition(%go) %k, %t : i64, tensor<?xf32>
  } do {
  ^bb0(%k: i64, %t: tensor<?xf32>):
    %d = tensor.dim %t, %c0 : tensor<?xf32>
    %d1 = arith.addi %d, %c1 : index
    %g = tensor.generate %d1 {
    ^bb1(%i: index):
      %in = arith.cmpi ult, %i, %d : index
      %v = scf.if %in -> (f32) {
        %a = tensor.extract %t[%i] : tensor<?xf32>
        %b = arith.addf %a, %a : f32
        scf.yield %b : f32
      } else {
        %c = arith.constant 1.0 : f32
        scf.yield %c : f32
      }
      tensor.yield %v : f32
    } : tensor<?xf32>
    %k1 = arith.addi %k, %one : i64
    scf.yield %k1, %g : i64, tensor<?xf32>
  }
  %o = tensor.from_elements %r#0 : tensor<i64>
  return %r#1, %o : tensor<?xf32>, tensor<i64>
}
"""

#: A kernel in each branch and in the loop: the state is added to itself, or negated, until it is large.
BRANCHES = """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<1024xf32>, %limit: tensor<f32>) -> (tensor<1024xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %top = tensor.extract %limit[] : tensor<f32>
  %r = scf.while (%t = %x) : (tensor<1024xf32>) -> (tensor<1024xf32>) {
    %v = tensor.extract %t[%c0] : tensor<1024xf32>
    %go = arith.cmpf olt, %v, %top : f32
    scf.condition(%go) %t : tensor<1024xf32>
  } do {
  ^bb0(%t: tensor<1024xf32>):
    %v = tensor.extract %t[%c0] : tensor<1024xf32>
    %p = arith.cmpf olt, %v, %zero : f32
    %e = tensor.empty() : tensor<1024xf32>
    %s = scf.if %p -> (tensor<1024xf32>) {
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%t : tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
      ^bb1(%a: f32, %o: f32):
        %b = arith.negf %a : f32
        linalg.yield %b : f32
      } -> tensor<1024xf32>
      scf.yield %y : tensor<1024xf32>
    } else {
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%t : tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
      ^bb1(%a: f32, %o: f32):
        %b = arith.addf %a, %a : f32
        linalg.yield %b : f32
      } -> tensor<1024xf32>
      scf.yield %y : tensor<1024xf32>
    }
    scf.yield %s : tensor<1024xf32>
  }
  %last = tensor.extract %r[%c0] : tensor<1024xf32>
  %l = tensor.from_elements %last : tensor<f32>
  return %r, %l : tensor<1024xf32>, tensor<f32>
}
"""

#: Sorts by exchanging neighbours: a state that only single elements of change.
SORT = """
func.func @main(%x: tensor<200xi32>) -> tensor<200xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 199 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<200xi32>) {
    %m = arith.subi %n, %i : index
    %s = scf.for %j = %c0 to %m step %c1 iter_args(%u = %t) -> (tensor<200xi32>) {
      %k = arith.addi %j, %c1 : index
      %a = tensor.extract %u[%j] : tensor<200xi32>
      %b = tensor.extract %u[%k] : tensor<200xi32>
      %p = arith.cmpi sgt, %a, %b : i32
      %v = scf.if %p -> (tensor<200xi32>) {
        %u1 = tensor.insert %b into %u[%j] : tensor<200xi32>
        %u2 = tensor.insert %a into %u1[%k] : tensor<200xi32>
        scf.yield %u2 : tensor<200xi32>
      } else {
        scf.yield %u : tensor<200xi32>
      }
      scf.yield %v : tensor<200xi32>
    }
    scf.yield %s : tensor<200xi32>
  }
  return %r : tensor<200xi32>
}
"""


def number(value: int) -> np.ndarray:
    """An input of one element."""
    return np.array(value, np.int64)


def test_a_state_that_grows() -> None:
    model = tw.compile(GROW, target="cpu", threads=1)
    y, count = model(np.arange(3, dtype=np.float32), number(4))
    np.testing.assert_array_equal(y, [0, 16, 32, 8, 4, 2, 1])
    assert count == 4
    x = np.arange(3, dtype=np.float32)
    y, _ = model(x, number(0))
    np.testing.assert_array_equal(y, x)
    assert not np.may_share_memory(x, y)


def test_iterations_free_their_memory() -> None:
    model = tw.compile(GROW, target="cpu", threads=1)
    x = np.zeros(1 << 16, np.float32)
    model(x, number(10))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model(x, number(2000))  # half a gigabyte where nothing were freed
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_in_branches_of_a_loop(threads: int) -> None:
    model = tw.compile(BRANCHES, target="cpu", threads=threads)
    assert len(model.kernels) >= 2
    x = np.linspace(-1, 1, 1024, dtype=np.float32)
    y, last = model(x, np.array(100, np.float32))
    np.testing.assert_array_equal(y, -x * 128)
    assert last == 128
    y, last = model(-x, np.array(0.5, np.float32))
    np.testing.assert_array_equal(y, -x)
    assert last == 1


def test_elements_change_in_place() -> None:
    model = tw.compile(SORT, target="cpu", threads=1)
    assert not [r for r in model.report_data()["remarks"] if "copy" in r["message"]]
    x = np.random.default_rng(0).integers(-100, 100, 200, dtype=np.int32)
    given = x.copy()
    np.testing.assert_array_equal(model(x)[0], np.sort(x))
    np.testing.assert_array_equal(x, given)
