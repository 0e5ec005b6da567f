# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tasks of a grid that wait for earlier ones: what they see, and who may wait for whom."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.reference import InterpreterError

#: Each task adds its row to the sums that the one before has left.
SUMS = """
tile.kernel @sums(%x: memref<8x64xf32>, %y: memref<8x64xf32>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = arith.constant {last} : index
  %done = tile.semaphores : memref<8xi32>
  %own = tile.load %x[%i, %c0] : memref<8x64xf32>, !tile.tile<1x64xf32>
  %others = arith.cmpi ugt, %i, %c0 : index
  %sum = scf.if %others -> (!tile.tile<1x64xf32>) {{
    %before = arith.subi %i, %c1 : index
    tile.semaphore_take %done[%{whom}] count 1 : memref<8xi32>
    %sums = tile.load %y[%before, %c0] : memref<8x64xf32>, !tile.tile<1x64xf32>
    %both = arith.addf %sums, %own : !tile.tile<1x64xf32>
    scf.yield %both : !tile.tile<1x64xf32>
  }} else {{
    scf.yield %own : !tile.tile<1x64xf32>
  }}
  tile.store %sum, %y[%i, %c0] : !tile.tile<1x64xf32>, memref<8x64xf32>
  %more = arith.cmpi ult, %i, %last : index
  scf.if %more {{
    tile.semaphore_post %done[%i] : memref<8xi32>
  }}
  tile.return
}}
"""


def test_sums_go_from_task_to_task(run_kernel) -> None:
    """Twice: the semaphores are zero again after a launch."""
    x, y = np.arange(512, dtype=np.float32).reshape(8, 64), np.zeros((8, 64), np.float32)
    for _ in range(2):
        run_kernel(SUMS.format(last=7, whom="before"), "sums", [x, y], [8])
        np.testing.assert_array_equal(y, np.cumsum(x, axis=0))


def test_who_waits_for_a_later_task_is_told(run_kernel) -> None:
    x, y = np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32)
    with pytest.raises(InterpreterError, match=r"task \(1,\) waits until semaphore 1 is 1, and it is 0"):
        run_kernel(SUMS.format(last=7, whom="i"), "sums", [x, y], [8])


def test_what_is_posted_must_be_taken(run_kernel) -> None:
    x, y = np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32)
    with pytest.raises(InterpreterError, match="semaphore 7 is 1 when all tasks are done"):
        run_kernel(SUMS.format(last=8, whom="before"), "sums", [x, y], [8])
