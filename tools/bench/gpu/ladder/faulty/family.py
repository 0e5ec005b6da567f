# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a rung's probes have in common for the campaign: cases, faults that can be drawn, a run, a diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as _field
from typing import Any, Protocol

import numpy as np

from bench.gpu.far.ladder.diagnosis.cause import Cause
from tilewright.runtime.gpu.gpu_device import Device


@dataclass(frozen=True)
class Fault:
    """One thing wrong.

    Attributes:
        rung: that it is put into.
        case: number of the rung's case; -1: all of them.
        field: of the set-up, or of the kernel's text.
        expected, found: values before and after.
        setup: what the probe is really run with.
        same: other names of the field: entries of a list two of which are exchanged.
        edit: what is done to the text of the kernel.
    """

    rung: str
    case: int
    field: str
    expected: Any
    found: Any
    setup: Any = None
    same: tuple[str, ...] = ()
    edit: Callable[[str], str] | None = _field(default=None, repr=False)


class Family(Protocol):
    """The probes of a rung.

    Attributes:
        rung: its name.
        cases: set-ups.
    """

    rung: str
    cases: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Fault:
        """A fault that the driver's own checks let pass."""
        ...

    def observe(self, device: Device, case: int, fault: Fault | None) -> Any:
        """Run a case. UserError where driver or launch refuse it; EmulationError where the kernel dies."""
        ...

    def passes(self, case: int, seen: Any) -> bool:
        """Whether the rung calls this right: by the numbers alone."""
        ...

    def diagnose(self, case: int, seen: Any) -> Cause | None:
        """What the ladder says."""
        ...


def drop(statement: str, put: str = "") -> Callable[[str], str]:
    """An edit that takes the first such line out of a text, or puts another in its place."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        at = next(i for i, line in enumerate(lines) if statement in line)
        return "\n".join([*lines[:at], *([put] if put else []), *lines[at + 1 :]])

    return edit
