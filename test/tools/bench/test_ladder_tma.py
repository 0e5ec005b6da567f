# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The forward model of a TMA load against the emulator's, which is written apart from it."""

import numpy as np
import pytest
from ladder_setups import MEMORY_BYTES, tma

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis.tma import Loaded, poisoned, source, verdict
from bench.gpu.far.ladder.diagnosis.tma_cause import diagnose
from bench.gpu.ladder import watched
from tilewright.sim import ptx as emulate


def device():
    """An emulator that shows what a GPU would."""
    return emulate.Device(options=emulate.Options(checks=frozenset()))


@pytest.mark.parametrize("seed", range(40))
def test_model_and_emulator_agree(seed):
    setup = tma(np.random.default_rng(seed))
    memory, image = source(MEMORY_BYTES, seed % 2), poisoned()
    seen = watching.box(device(), watched.box(len(setup.box)), setup, memory, image, limit=1000)
    assert (seen.over, seen.excess, seen.missing) == verdict(setup) == (True, 0, 0)
    np.testing.assert_array_equal(seen.dump, Loaded(memory, image).dump(setup))
    assert diagnose(setup, seen, memory, image) is None
