# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward model of wgmma against the emulator's, which is written apart from it."""

import numpy as np
import pytest
from ladder_setups import wgmma as random_setup

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis import wgmma
from bench.gpu.far.ladder.diagnosis.wgmma_cause import diagnose
from bench.gpu.ladder import watched
from tilewright.sim import ptx as emulate


def run(setup, image, registers=None):
    """d (64, n) by the emulator, which shows what a GPU would."""
    majors = (setup.a is None or setup.a.k_major, setup.b.k_major)
    text = watched.multiply(setup.n, setup.dtype, *majors, setup.a is None, setup.steps)
    device = emulate.Device(options=emulate.Options(checks=frozenset()))
    words = None if registers is None else watching.fragments_of_a(registers, setup.dtype)
    return watching.multiply(device, text, setup, image, words)


@pytest.mark.parametrize("seed", range(40))
def test_model_and_emulator_agree(seed):
    rng = np.random.default_rng(seed)
    setup = random_setup(rng)
    image = wgmma.image(setup, seed)
    registers = rng.integers(-8, 9, (64, 16 * setup.steps)) if setup.a is None else None
    expected = wgmma.product(setup, image, registers)
    assert expected is not None
    seen = run(setup, image, registers)
    np.testing.assert_array_equal(seen, expected)
    assert diagnose(setup, [seen], [image], registers) is None
