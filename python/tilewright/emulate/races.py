# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Races in shared memory."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilewright.emulate.machine import Machine
    from tilewright.emulate.step import Step


class NoRaces:
    """The detector that is switched off: the same calls, nothing done."""

    def read(self, step: Step, flat: np.ndarray, nbytes: int) -> None:
        """A read of shared memory."""

    def write(self, step: Step, flat: np.ndarray, nbytes: int) -> None:
        """A write to shared memory."""

    def atomic(self, step: Step, flat: np.ndarray, nbytes: int) -> None:
        """An atomic access to shared memory."""

    def acquire_global(self, step: Step) -> None:
        """A load with acquire semantics."""

    def release_global(self, step: Step) -> None:
        """A store with release semantics."""

    def warp_sync(self, step: Step) -> None:
        """Lanes of a warp synchronise."""

    def fence(self, step: Step) -> None:
        """A fence."""

    def release(self, step: Step, key: Hashable) -> None:
        """Publish at a sync object what the step's warps have done and seen."""

    def acquire(self, warps: np.ndarray, key: Hashable) -> None:
        """Warps see what was published in the object's phases that are over."""

    def phase(self, key: Hashable) -> None:
        """A phase of a sync object is over."""


def make_races(machine: Machine) -> NoRaces:
    """The detector that the machine's options ask for."""
    return NoRaces()
