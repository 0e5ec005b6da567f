# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that are known at run time only: memory of the call, results that it hands over, calls that fail."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import tilewright as tw

#: Indices of the elements that are not zero.
NONZERO = """
func.func @main(%x: tensor<16xf32> {tile.name = "x"}) -> (tensor<?xi64> {tile.name = "where"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xi64>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%k = %c0, %t = %e) -> (index, tensor<16xi64>) {
    %v = tensor.extract %x[%i] : tensor<16xf32>
    %p = arith.cmpf une, %v, %zero : f32
    %q:2 = scf.if %p -> (index, tensor<16xi64>) {
      %ii = arith.index_cast %i : index to i64
      %t1 = tensor.insert %ii into %t[%k] : tensor<16xi64>
      %k1 = arith.addi %k, %c1 : index
      scf.yield %k1, %t1 : index, tensor<16xi64>
    } else {
      scf.yield %k, %t : index, tensor<16xi64>
    }
    scf.yield %q#0, %q#1 : index, tensor<16xi64>
  }
  %s = tensor.extract_slice %r#1[0] [%r#0] [1] : tensor<16xi64> to tensor<?xi64>
  return %s : tensor<?xi64>
}
"""

#: A table of as many rows as the input says, and a tensor of known size.
TABLE = """
func.func @main(%n: tensor<i64>) -> (tensor<?x3xf32> {tile.name = "table"}, tensor<4xf32>) {
  %v = tensor.extract %n[] : tensor<i64>
  %k = arith.index_cast %v : i64 to index
  %c0 = arith.constant 0 : index
  %ok = arith.cmpi sge, %k, %c0 : index
  cf.assert %ok, "node 'foo': the number of rows is negative"
  %g = tensor.generate %k {
  ^bb0(%i: index, %j: index):
    %a = arith.addi %i, %j : index
    %b = arith.index_cast %a : index to i32
    %f = arith.sitofp %b : i32 to f32
    tensor.yield %f : f32
  } : tensor<?x3xf32>
  %c = arith.constant 2.5 : f32
  %s = tensor.splat %c : tensor<4xf32>
  return %g, %s : tensor<?x3xf32>, tensor<4xf32>
}
"""

#: Rows of a table of any size, by indices of any number; checked.
GATHER = """
#row = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<?x4xf32> {tile.name = "x"}, %at: tensor<?xi64> {tile.name = "at"})
    -> (tensor<?x4xf32> {tile.name = "y"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x4xf32>
  %count = tensor.dim %at, %c0 : tensor<?xi64>
  scf.for %i = %c0 to %count step %c1 {
    %v = tensor.extract %at[%i] : tensor<?xi64>
    %k = arith.index_cast %v : i64 to index
    %ok = arith.cmpi ult, %k, %rows : index
    cf.assert %ok, "an index is out of range"
  }
  %e = tensor.empty(%count) : tensor<?x4xf32>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<?xi64>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%a: i64, %o: f32):
    %k = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%k, %j] : tensor<?x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}
"""


def number(value: int) -> np.ndarray:
    """An input of one element."""
    return np.array(value, np.int64)


def test_a_result_whose_size_depends_on_data() -> None:
    model = tw.compile(NONZERO, target="cpu", threads=1)
    assert str(model.outputs[0]) == "where: ?xi64"
    x = np.zeros(16, np.float32)
    assert model(x)[0].shape == (0,)
    x[[1, 5, 15]] = 1
    (where,) = model(x)
    np.testing.assert_array_equal(where, [1, 5, 15])
    other = model(np.ones(16, np.float32))[0]
    np.testing.assert_array_equal(where, [1, 5, 15])  # each result has memory of its own
    assert other.size == 16
    where[0] = 7
    del other
    gc.collect()
    assert where[0] == 7


def test_sizes_from_an_input() -> None:
    model = tw.compile(TABLE, target="cpu", threads=1)
    for rows in (5, 0, 1):
        table, fixed = model(number(rows))
        np.testing.assert_array_equal(table, np.add.outer(np.arange(rows), np.arange(3)).astype(np.float32))
        np.testing.assert_array_equal(fixed, np.full(4, 2.5, np.float32))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (-5, "node 'foo': the number of rows is negative"),
        (1 << 60, "more elements than memory can hold"),
        (1 << 44, "out of memory: a tensor of 211106232532992 bytes"),
    ],
)
def test_a_call_that_fails_leaves_the_process_alone(rows: int, message: str) -> None:
    model = tw.compile(TABLE, target="cpu", threads=2)
    with pytest.raises(tw.UserError, match=message):
        model(number(rows))
    assert model(number(2))[0].shape == (2, 3)


def test_inputs_of_any_size() -> None:
    model = tw.compile(GATHER, target="cpu", threads=1)
    assert [str(spec) for spec in model.inputs] == ["x: ?x4xf32", "at: ?xi64"]
    x = np.arange(40, dtype=np.float32).reshape(10, 4)
    np.testing.assert_array_equal(model(x, np.array([9, 0, 3]))[0], x[[9, 0, 3]])
    np.testing.assert_array_equal(model(x[:2], np.array([1]))[0], x[1:2])
    assert model(x, np.array([], np.int64))[0].shape == (0, 4)
    with pytest.raises(tw.UserError, match="an index is out of range"):
        model(x, np.array([10]))
    with pytest.raises(tw.UserError, match=r"input x must have shape \[any, 4\], got \[2, 5\]"):
        model(np.zeros((2, 5), np.float32), np.array([0]))


def test_out_takes_sizes_that_are_known_after_the_run() -> None:
    model = tw.compile(NONZERO, target="cpu", threads=1)
    x, place = np.zeros(16, np.float32), np.full(3, -1, np.int64)
    x[[2, 3, 7]] = 1
    model(x, out=[place])
    assert place.tolist() == [2, 3, 7]
    with pytest.raises(tw.UserError, match=r"output where has shape \[0\], its array \[3\]"):
        model(np.zeros(16, np.float32), out=[place])


def test_saved_models_and_profiles(tmp_path) -> None:
    tw.compile(NONZERO, target="cpu", threads=1).save(tmp_path / "m.tw")
    model = tw.load(tmp_path / "m.tw")
    np.testing.assert_array_equal(model(np.ones(16, np.float32))[0], np.arange(16))
    model.profile(np.ones(16, np.float32))


@pytest.mark.parametrize("shape", ["0x4", "4x0", "0"])
def test_tensors_without_elements(shape: str) -> None:
    sizes = tuple(map(int, shape.split("x")))
    dims = ", ".join(f"d{i}" for i in range(len(sizes)))
    text = f"""
    #id = affine_map<({dims}) -> ({dims})>
    func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
      %e = tensor.empty() : tensor<{shape}xf32>
      %y = linalg.generic {{indexing_maps = [#id, #id], iterator_types = [{", ".join(['"parallel"'] * len(sizes))}]}}
          ins(%x : tensor<{shape}xf32>) outs(%e : tensor<{shape}xf32>) {{
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      }} -> tensor<{shape}xf32>
      return %y : tensor<{shape}xf32>
    }}"""
    assert tw.compile(text, target="cpu", threads=1)(np.zeros(sizes, np.float32))[0].shape == sizes
