# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in launches: grid, block, cluster, shared memory, values and order of parameters."""

from __future__ import annotations

import numpy as np

from bench.gpu.far.ladder import watching
from bench.gpu.far.ladder.diagnosis import launches
from bench.gpu.far.ladder.diagnosis.cause import Cause, get, put
from bench.gpu.far.ladder.setup import LaunchSetup
from bench.gpu.ladder.echo import echo
from bench.gpu.ladder.faulty.family import Fault
from tilewright.runtime.gpu.gpu_device import Device

_NAMES = ("x", "y", "size", "stride", "mode")
_VALUES = (0x7F12_3456_7800, 0x7F65_4321_0F00, 1000, 4096, 3)
_CASES = (
    LaunchSetup((6, 4, 2), (64, 2, 1), (1, 1, 1), 2048, _NAMES, _VALUES),
    LaunchSetup((8, 4, 1), (128, 1, 1), (2, 1, 1), 66560, _NAMES, _VALUES),
    LaunchSetup((4, 8, 2), (32, 4, 1), (1, 2, 1), 0, _NAMES, _VALUES),
)
_FIELDS = ("grid", "block", "cluster", "shared_bytes", "values", "value")


class Launches:
    """Launches of a kernel that writes down how it was launched."""

    rung = "launches"
    cases = _CASES

    def draw(self, rng: np.random.Generator) -> Fault:
        """A fault of an attribute or a parameter; some the launch refuses."""
        while True:
            case, field = int(rng.integers(len(self.cases))), _FIELDS[int(rng.integers(len(_FIELDS)))]
            setup = self.cases[case]
            field = f"values[{int(rng.integers(5))}]" if field == "value" else field
            value = _other(rng, get(setup, field), field)
            if value != get(setup, field):
                return Fault(self.rung, case, field, get(setup, field), value, put(setup, field, value))

    def observe(self, device: Device, case: int, fault: Fault | None) -> np.ndarray:
        """The records."""
        return watching.echo(device, echo(), fault.setup if fault else self.cases[case])

    def passes(self, case: int, seen: np.ndarray) -> bool:
        """Whether all CTAs were launched as meant."""
        return bool((seen == launches.records(self.cases[case])).all())

    def diagnose(self, case: int, seen: np.ndarray) -> Cause | None:
        """The attribute."""
        return launches.diagnose(self.cases[case], seen)


def _other(rng: np.random.Generator, old, field: str):
    if field == "values":  # two of one size exchanged
        return (old[1], old[0], *old[2:]) if rng.random() < 0.5 else (*old[:2], old[3], old[2], old[4])
    if field.startswith("values"):
        return old ^ 1 << int(rng.integers(12))
    if field == "shared_bytes":
        return max(old + 256 * int(rng.integers(-8, 9)), 0)
    values = list(old)
    if rng.random() < 0.4:
        first, second = rng.choice(3, 2, replace=False)
        values[first], values[second] = values[second], values[first]
        return tuple(values)
    axis = int(rng.integers(3))
    values[axis] = max(1, values[axis] + int(rng.integers(-3, 4)))
    return tuple(values)
