# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the threads of a task meet: on the emulator, which finds races, and counted in the PTX."""

from __future__ import annotations

import re

import numpy as np
import pytest
from gpu_kernels import ARCHS, compile_kernels, run

SLIDING = """
tile.kernel @k(%x: memref<512xf32>, %y: memref<512xf32>) attributes {{tile.threads = 128 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant 5 : index
  %distance = arith.constant {distance} : index
  %s = tile.alloc : memref<2048xf32, #tile.level<"shared">>
  %all = tile.load %x[%c0] : memref<512xf32>, !tile.tile<512xf32>
  %zero = arith.constant dense<0.0> : !tile.tile<2048xf32>
  tile.store %zero, %s[%c0] : !tile.tile<2048xf32>, memref<2048xf32, #tile.level<"shared">>
  tile.store %all, %s[%c0] : !tile.tile<512xf32>, memref<2048xf32, #tile.level<"shared">>
  scf.for %i = %c0 to %steps step %c1 {{
    %o = arith.muli %i, %distance : index
    %a = tile.load %s[%o] : memref<2048xf32, #tile.level<"shared">>, !tile.tile<256xf32>
    %b = arith.addf %a, %a : !tile.tile<256xf32>
    tile.store %b, %s[%o] : !tile.tile<256xf32>, memref<2048xf32, #tile.level<"shared">>
  }}
  %end = tile.load %s[%c0] : memref<2048xf32, #tile.level<"shared">>, !tile.tile<512xf32>
  tile.store %end, %y[%c0] : !tile.tile<512xf32>, memref<512xf32>
  tile.return
}}
"""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("distance", [16, 256])
def test_blocks_of_iterations_that_overlap(distance: int, arch: str) -> None:
    """In the next iteration, elements of the same number are other threads'; of blocks further on nobody's."""
    text = SLIDING.format(distance=distance)
    for seed in (1, 2, 3):
        x = np.random.default_rng(seed).standard_normal(512).astype(np.float32)
        y, expected = np.zeros_like(x), np.concatenate([x, np.zeros(1536, np.float32)])
        for step in range(5):
            expected[step * distance : step * distance + 256] *= 2
        run(text, "k", [x, y], arch=arch, seed=seed)
        np.testing.assert_array_equal(y, expected[:512])


REDUCTIONS = """
tile.kernel @k(%x: memref<512xf32>, %y: memref<1xf32>, %z: memref<1xf32>) attributes {tile.threads = 128 : i64} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : memref<512xf32>, !tile.tile<512xf32>
  %a = tile.reduce add %t dims [0] : !tile.tile<512xf32> -> !tile.tile<1xf32>
  %b = tile.reduce max %t dims [0] : !tile.tile<512xf32> -> !tile.tile<1xf32>
  tile.store %a, %y[%c0] : !tile.tile<1xf32>, memref<1xf32>
  tile.store %b, %z[%c0] : !tile.tile<1xf32>, memref<1xf32>
  tile.return
}
"""


@pytest.mark.parametrize("arch", ARCHS)
def test_nobody_waits_before_the_first_use_of_scratch(arch: str) -> None:
    """Two reductions through the same bytes: meet, then meet before and after they are written again."""
    ptx = compile_kernels(REDUCTIONS, arch)[0].decode()
    assert len(re.findall(r"\bbar(?:rier)?\.sync", ptx)) == 3
    for seed in (1, 2, 3):
        x = np.random.default_rng(seed).standard_normal(512).astype(np.float32)
        y, z = np.zeros(1, np.float32), np.zeros(1, np.float32)
        run(REDUCTIONS, "k", [x, y, z], arch=arch, seed=seed)
        np.testing.assert_allclose(y, x.sum(dtype=np.float64), atol=1e-4)
        assert z[0] == x.max()
