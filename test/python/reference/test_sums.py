# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A loop of products done at once is the loop done step by step."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.mlir import ir
from tilewright.reference import InterpreterError
from tilewright.reference import sums as sums_module
from tilewright.reference.machine import Frame
from tilewright.reference.program import Reader, walk
from tilewright.reference.upstream import scf_ops

KERNEL = """
tile.kernel @k(%a: memref<16x12xf32>, %b: memref<3x12x8xf32>, %c: memref<16x8xf32>, %lo: index, %hi: index) grid(%g) {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {step} : index
  %zero = arith.constant dense<0.0> : !tile.tile<4x8xf32>
  %row = affine.apply affine_map<(d) -> (d * 4)>(%g)
  %sum:2 = scf.for %k = %lo to %hi step %step iter_args(%s = %zero, %t = %zero)
      -> (!tile.tile<4x8xf32>, !tile.tile<4x8xf32>) {{
    %one = arith.constant 1 : index
    %r = affine.apply affine_map<(d) -> (d * 4)>(%g)
    %x = tile.load %a[%r, %k] : memref<16x12xf32>, !tile.tile<4x2xf32>
    %y = tile.load %b[%one, %k, %c0] : memref<3x12x8xf32>, !tile.tile<2x8xf32>
    %p = tile.mma %x, %y, %s : !tile.tile<4x2xf32>, !tile.tile<2x8xf32>, !tile.tile<4x8xf32>
    {second}
    scf.yield %p, %q : !tile.tile<4x8xf32>, !tile.tile<4x8xf32>
  }}
  %all = arith.addf %sum#0, %sum#1 : !tile.tile<4x8xf32>
  tile.store %all, %c[%row, %c0] : !tile.tile<4x8xf32>, memref<16x8xf32>
  tile.return
}}"""
MMA = "!tile.tile<4x2xf32>, !tile.tile<2x8xf32>, !tile.tile<4x8xf32>"
SECOND = {
    "two products": f"%q = tile.mma %x, %y, %t : {MMA}",
    "crossed": f"%q = tile.mma %x, %y, %s : {MMA}",
    "other arithmetic": "%q = arith.addf %t, %p : !tile.tile<4x8xf32>",
    "row moves too": f"""%z = tile.load %a[%k, %k] : memref<16x12xf32>, !tile.tile<4x2xf32>
      %q = tile.mma %z, %y, %t : {MMA}""",
    "fixed columns": f"""%z = tile.load %a[%c0, %c0] : memref<16x12xf32>, !tile.tile<4x2xf32>
      %q = tile.mma %z, %y, %t : {MMA}""",
    "transposed": f"""%z = tile.load %a[%k, %c0] dims [1, 0] : memref<16x12xf32>, !tile.tile<4x2xf32>
      %q = tile.mma %z, %y, %t : {MMA}""",
}
ROWS = """
tile.kernel @k(%a: memref<16x12xf32>, %b: memref<12x3x8xf32>, %c: memref<16x8xf32>, %lo: index, %hi: index) grid(%g) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant dense<0.0> : !tile.tile<4x8xf32>
  %sum = scf.for %k = %lo to %hi step %c1 iter_args(%s = %zero) -> (!tile.tile<4x8xf32>) {
    %x = tile.load %a[%c2, %k] : memref<16x12xf32>, !tile.tile<4x1xf32>
    %y = tile.load %b[%k, %g, %c0] : memref<12x3x8xf32>, !tile.tile<1x8xf32>
    %p = tile.mma %x, %y, %s : !tile.tile<4x1xf32>, !tile.tile<1x8xf32>, !tile.tile<4x8xf32>
    scf.yield %p : !tile.tile<4x8xf32>
  }
  tile.store %sum, %c[%c2, %c0] : !tile.tile<4x8xf32>, memref<16x8xf32>
  tile.return
}"""
AT_ONCE = ("two products", "transposed")


def loops(text: str) -> list:
    """What each scf.for of a kernel sums."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        kernel = Reader().node(module.body.operations[0].operation)
        return [sums_module.sum_loop(node) for node in walk(kernel) if node.name == "scf.for"]


@pytest.mark.parametrize("name", SECOND)
def test_recognised(name):
    (plan,) = loops(KERNEL.format(step=2, second=SECOND[name]))
    assert (plan is not None) == (name in AT_ONCE)


@pytest.mark.parametrize(("low", "high", "step"), [(0, 12, 2), (2, 8, 2), (4, 4, 2), (0, 7, 2), (0, 11, 1), (0, 12, 3)])
@pytest.mark.parametrize("name", SECOND)
def test_the_same_sums(run_kernel, monkeypatch, rng, name, low, high, step):
    text = KERNEL.format(step=step, second=SECOND[name])
    a, b = rng.integers(-3, 4, (16, 12)).astype("f"), rng.integers(-3, 4, (3, 12, 8)).astype("f")
    results = []
    for slowly in (False, True):
        c = np.zeros((16, 8), np.float32)
        with monkeypatch.context() as patch:
            if slowly:
                patch.setattr(Frame, "run", Frame.run_arrays)
                patch.setattr(scf_ops, "sum_loop", lambda _node: None)
            try:
                run_kernel(text, "k", [a, b, c, low, high], [3])
            except InterpreterError as error:
                assert "outside" in str(error)
        results.append(c)
    np.testing.assert_array_equal(*results)


def test_one_row_of_each_matrix(run_kernel, rng):
    assert loops(ROWS) != [None]
    a, b = rng.integers(-3, 4, (16, 12)).astype("f"), rng.integers(-3, 4, (12, 3, 8)).astype("f")
    c = np.zeros((16, 8), np.float32)
    run_kernel(ROWS, "k", [a, b, c, 3, 11], [3])
    np.testing.assert_array_equal(c[2:6], a[2:6, 3:11] @ b[3:11, 2])


def test_an_access_outside_is_reported(run_kernel):
    text = KERNEL.format(step=2, second=SECOND["two products"])
    arrays = [np.zeros(shape, np.float32) for shape in ((16, 12), (3, 12, 8), (16, 8))]
    with pytest.raises(InterpreterError, match="outside a dimension of 12"):
        run_kernel(text, "k", [*arrays, 0, 14], [1])
