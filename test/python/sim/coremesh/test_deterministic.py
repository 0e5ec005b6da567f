# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values and times do not depend on when, or beside what, a program runs."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program
from tilewright.sim.coremesh.wavelets import simulate

TOY = machine("toy8x8", "calibrated")
PROGRAM = shifted_product(Product(7, 11, 5, 3, 4))


def fingerprint(_: int) -> tuple[str, float, str]:
    """Of a run of each tier: bytes of the result, clocks of all cores, links."""
    rng = np.random.default_rng(3)
    sizes = {place.name: place.shape for place in PROGRAM.inputs}
    dtypes = {buffer.name: buffer.dtype for buffer in PROGRAM.buffers}
    inputs = {p.name: rng.standard_normal(sizes[p.name]).astype(dtypes[p.slot.buffer]) for p in PROGRAM.inputs}
    values, timing = run(PROGRAM, inputs), time_program(PROGRAM, TOY)
    seen = hashlib.sha256()
    for name in sorted(values):
        seen.update(values[name].tobytes())
    seen.update(timing.ends.tobytes())
    seen.update(timing.loads.tobytes())
    return seen.hexdigest(), timing.cycles, simulate(PROGRAM, TOY).digest()


def test_threads_change_nothing():
    """Test 26 of the thirty: runs one by one, and on one and four threads at once."""
    alone = {fingerprint(number) for number in range(2)}
    for threads in (1, 4):
        with ThreadPoolExecutor(threads) as pool:
            alone |= set(pool.map(fingerprint, range(2 * threads)))
    assert len(alone) == 1
