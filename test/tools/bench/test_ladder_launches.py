# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What CTAs write down of a launch, against the emulator."""

import dataclasses

import numpy as np
import pytest

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis.launches import diagnose, records
from bench.gpu.far.ladder.setup import LaunchSetup
from bench.gpu.ladder.echo import echo
from tilewright.sim import ptx as emulate

RIGHT = LaunchSetup((6, 4, 2), (64, 2, 1), (2, 2, 1), 2048, ("x", "y", "size", "stride", "mode"), (1 << 40, 5, 6, 7, 8))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, None),
        ({"grid": (4, 6, 2)}, "grid"),
        ({"block": (32, 2, 1)}, "block"),
        ({"cluster": (2, 1, 1)}, "cluster"),
        ({"shared_bytes": 0}, "shared_bytes"),
        ({"values": (5, 1 << 40, 6, 7, 8)}, "values"),
        ({"values": (1 << 40, 5, 6, 9, 8)}, "values[3]"),
    ],
)
def test_records(change, field):
    setup = dataclasses.replace(RIGHT, **change)
    seen = watching.echo(emulate.Device(), echo(), setup)
    np.testing.assert_array_equal(seen, records(setup))
    cause = diagnose(RIGHT, seen)
    assert (cause.field if cause else None) == field


def test_two_faults_are_unknown():
    assert diagnose(RIGHT, records(dataclasses.replace(RIGHT, grid=(6, 4, 1), shared_bytes=0))) is None
