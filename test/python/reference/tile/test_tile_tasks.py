# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches, groups, clusters, programs: who runs, in which order, and what stands still."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError

TRACE = """
tile.kernel @trace(%log: memref<16xindex>, %n: memref<1xindex>) grid(%i, %j) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %at = memref.load %n[%c0] : memref<1xindex>
  %tens = arith.muli %i, %c10 : index
  %id = arith.addi %tens, %j : index
  memref.store %id, %log[%at] : memref<16xindex>
  %next = arith.addi %at, %c1 : index
  memref.store %next, %n[%c0] : memref<1xindex>
  tile.return
}
"""


def test_the_first_coordinate_varies_slowest(run_kernel):
    log, n = np.zeros(16, np.int64), np.zeros(1, np.int64)
    run_kernel(TRACE, "trace", [log, n], [2, 3])
    assert log[: n[0]].tolist() == [0, 1, 2, 10, 11, 12]


def test_a_grid_of_zero_runs_nothing(run_kernel):
    log, n = np.zeros(16, np.int64), np.zeros(1, np.int64)
    run_kernel(TRACE, "trace", [log, n], [2, 0])
    assert n[0] == 0


def test_wrong_number_of_arguments(run_kernel):
    with pytest.raises(InterpreterError, match="@trace takes 2 arguments, got 1"):
        run_kernel(TRACE, "trace", [np.zeros(16, np.int64)], [2, 3])


AGAIN = """
tile.kernel @again(%times: index, %log: memref<16xindex>, %n: memref<1xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %t = %c0 to %times step %c1 {
    tile.launch @trace grid(%c1, %c2) outs(%log, %n : memref<16xindex>, memref<1xindex>)
  }
  tile.return
}
"""


def test_a_kernel_launches_another(run_kernel):
    log, n = np.zeros(16, np.int64), np.zeros(1, np.int64)
    run_kernel(TRACE + AGAIN, "again", [3, log, n], [])
    assert log[: n[0]].tolist() == [0, 1] * 3


DOUBLE = """
tile.kernel @double(%x: memref<4x8xf32>, %y: memref<4x8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%i, %c0] : memref<4x8xf32>, !tile.tile<1x8xf32>
  %b = arith.addf %a, %a : !tile.tile<1x8xf32>
  tile.store %b, %y[%i, %c0] : !tile.tile<1x8xf32>, memref<4x8xf32>
  tile.return
}
"""


def test_launch_on_tensors_leaves_its_operands_alone(interpret, rng):
    text = (
        DOUBLE
        + """
    func.func @main(%x: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
      %c3 = arith.constant 3 : index
      %y = tile.launch @double grid(%c3) ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> (tensor<4x8xf32>)
      return %y, %o : tensor<4x8xf32>, tensor<4x8xf32> }"""
    )
    x, o = rng.random((4, 8), np.float32), np.ones((4, 8), np.float32)
    y, untouched = interpret(text, x, o)
    np.testing.assert_array_equal(y, np.concatenate([2 * x[:3], o[3:]]))
    np.testing.assert_array_equal(untouched, np.ones((4, 8)))


def test_launch_on_memrefs_writes(interpret, rng):
    text = (
        DOUBLE
        + """
    func.func @main(%x: memref<4x8xf32>, %o: memref<4x8xf32>) {
      %c4 = arith.constant 4 : index
      tile.launch @double grid(%c4) ins(%x : memref<4x8xf32>) outs(%o : memref<4x8xf32>)
      return }"""
    )
    x, o = rng.random((4, 8), np.float32), np.zeros((4, 8), np.float32)
    interpret(text, x, o)
    np.testing.assert_array_equal(o, 2 * x)


def test_groups_nest(interpret, rng):
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %g:2 = tile.group "l2" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
        %r = tile.group "register" (%b = %a : tensor<4xf32>) -> (tensor<4xf32>) {
          %e = arith.addf %b, %b : tensor<4xf32>
          tile.yield %e : tensor<4xf32>
        }
        tile.yield %r, %a : tensor<4xf32>, tensor<4xf32>
      }
      return %g#0, %g#1 : tensor<4xf32>, tensor<4xf32> }"""
    x = rng.random(4, np.float32)
    doubled, same = interpret(text, x)
    np.testing.assert_array_equal(doubled, 2 * x)
    np.testing.assert_array_equal(same, x)


NEIGHBOUR = """
tile.kernel @shift(%x: memref<6xf32>, %y: memref<6xf32>) grid(%i) {CLUSTER} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {SIZE} : index
  %mine = tile.alloc : memref<1xf32, #tile.level<"sram">>
  %theirs = tile.alloc : memref<1xf32, #tile.level<"sram">>
  %v = tile.load %x[%i] : memref<6xf32>, !tile.tile<1xf32>
  tile.store %v, %mine[%c0] : !tile.tile<1xf32>, memref<1xf32, #tile.level<"sram">>
  %base = arith.divui %i, %n : index
  %first = arith.muli %base, %n : index
  %i1 = arith.addi %i, %c1 : index
  %in = arith.remui %i1, %n : index
  %right = arith.addi %first, %in : index
  tile.copy %mine to %theirs at (%right) : memref<1xf32, #tile.level<"sram">>, memref<1xf32, #tile.level<"sram">>
  {MEET}
  %w = tile.load %theirs[%c0] : memref<1xf32, #tile.level<"sram">>, !tile.tile<1xf32>
  tile.store %w, %y[%i] : !tile.tile<1xf32>, memref<6xf32>
  tile.return
}
"""


def neighbour(cluster: str, size: int, meet: str = "tile.barrier") -> str:
    """Each task hands its value to the next one within a cluster of ``size``."""
    return NEIGHBOUR.replace("{CLUSTER}", cluster).replace("{SIZE}", str(size)).replace("{MEET}", meet)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize(("cluster", "size"), [("", 6), ("cluster [3]", 3), ("cluster [2]", 2)])
def test_copies_into_the_neighbour(run_kernel, cluster, size, seed):
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    run_kernel(neighbour(cluster, size), "shift", [x, y], [6], seed=seed)
    np.testing.assert_array_equal(y, np.roll(x.reshape(-1, size), 1, axis=1).ravel())


def test_without_a_barrier_the_copy_may_come_too_late(run_kernel):
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    run_kernel(neighbour("", 6, meet=""), "shift", [x, y], [6])
    assert np.isnan(y).any()


def test_another_cluster_cannot_be_reached(run_kernel):
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    with pytest.raises(InterpreterError, match="reaches no task at"):
        run_kernel(neighbour("cluster [2]", 3), "shift", [x, y], [6])


def test_a_barrier_that_some_never_reach_is_a_deadlock(run_kernel):
    text = """tile.kernel @k() grid(%i) {
      %c0 = arith.constant 0 : index
      %some = arith.cmpi eq, %i, %c0 : index
      scf.if %some { tile.barrier }
      tile.return }"""
    with pytest.raises(InterpreterError, match=r"deadlock: task \(0,\) waits for the other tasks at a barrier"):
        run_kernel(text, "k", [], [2])


PROGRAM = (
    TRACE
    + """
tile.program @two(%log: memref<16xindex>, %n: memref<1xindex>) units 2 {
  tile.wait 0 count 2 on 0
  tile.place @trace tasks [0, 2] of [2, 2] on 0 (%log, %n : memref<16xindex>, memref<1xindex>)
  tile.place @trace tasks [2, 3] of [2, 2] on 1 (%log, %n : memref<16xindex>, memref<1xindex>)
  tile.signal 0 on 1
  tile.place @trace tasks [3, 4] of [2, 2] on 1 (%log, %n : memref<16xindex>, memref<1xindex>)
  tile.signal 0 on 1
}
"""
)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_program_obeys_its_waits(run_kernel, interpret, seed):
    log, n = np.zeros(16, np.int64), np.zeros(1, np.int64)
    run_kernel(PROGRAM, "two", [log, n], [], seed=seed)
    assert log[: n[0]].tolist() == [10, 11, 0, 1]
    main = """func.func @main(%log: memref<16xindex>, %n: memref<1xindex>) {
      tile.launch @two outs(%log, %n : memref<16xindex>, memref<1xindex>)
      return }"""
    n[:] = 0
    interpret(PROGRAM + main, log, n, seed=seed)
    assert n[0] == 4


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_program_without_signals_runs_everything(run_kernel, seed):
    text = PROGRAM.replace("tile.wait 0 count 2 on 0", "")
    log, n = np.zeros(16, np.int64), np.zeros(1, np.int64)
    run_kernel(text, "two", [log, n], [], seed=seed)
    assert sorted(log[: n[0]].tolist()) == [0, 1, 10, 11]
