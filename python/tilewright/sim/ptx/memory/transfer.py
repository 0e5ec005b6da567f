# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous work on its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.syntax.tree import Instruction


@dataclass
class Transfer:
    """Asynchronous work that has been issued and has not taken effect.

    Attributes:
        complete: does the work: writes memory, signals mbarriers.
        why: for messages.
        keys: what a wait can select it by, e.g. {"lane": 5, "group": 2}.
        ins: the instruction that issued it.
        slot: slot of the CTA that issued it.
    """

    complete: Callable[[Machine], None]
    why: str
    keys: dict[str, Any] = field(default_factory=dict)
    ins: Instruction | None = None
    slot: int = 0
