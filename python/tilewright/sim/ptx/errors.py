# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the emulator raises when a program breaks a rule of the machine."""

from __future__ import annotations

from tilewright.core.errors import TilewrightError


class EmulationError(TilewrightError):
    """A kernel did what the machine forbids or leaves undefined.

    Attributes:
        rule: which: "misaligned", "out-of-bounds", "uninitialised", "race", "dead-lock", "convergence", "barrier",
            "asynchronous", "metadata", "arithmetic", "limit", "trap".
        line: line of the PTX text, or None.
        source: "file:line" of the code that the PTX was made from, or None.
        cta: coordinates of the CTA, or None.
        thread: number of the thread in its CTA, or None.
    """

    kind = "emulation error"

    def __init__(
        self,
        message: str,
        *,
        rule: str = "",
        line: int | None = None,
        source: str | None = None,
        cta: tuple[int, int, int] | None = None,
        thread: int | None = None,
        location: str | None = None,
        ir: str | None = None,
        command: str | None = None,
    ) -> None:
        super().__init__(message, location=location, ir=ir, command=command)
        self.rule = rule
        self.line = line
        self.source = source
        self.cta = cta
        self.thread = thread
