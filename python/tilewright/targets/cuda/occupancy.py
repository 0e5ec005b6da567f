# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many CTAs a multiprocessor holds by what ptxas says of a kernel, beside what its plan counted on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.devices import Device
from tilewright.plan.model.gpu import Gpu


def held_ctas(device: Device, kernel: Mapping[str, Any], resources: Mapping[str, Any]) -> int | None:
    """CTAs that a multiprocessor holds at a time; None where ptxas did not see the kernel.

    Args:
        device: the GPU's description.
        kernel: how it is launched: `threads`, `shared_bytes`.
        resources: what ptxas says of it: `registers`.
    """
    registers = resources.get("registers", 0)
    return Gpu.of(device).occupancy(kernel["threads"], kernel["shared_bytes"], registers) if registers else None


def remark_on(name: str, plan: Mapping[str, Any], found: int | None, kernel: Mapping[str, Any], registers: int) -> str:
    """Say that a kernel has fewer CTAs at a time than its plan counted on; "" where it has not.

    Args:
        name: of the kernel.
        plan: its `tile.prediction`.
        found: CTAs that a multiprocessor holds.
        kernel: how it is launched.
        registers: of a thread.
    """
    planned = plan.get("occupancy", 0)
    if found is None or found >= planned:
        return ""
    return (
        f"a multiprocessor holds {found} CTAs of kernel '{name}' ({kernel['threads']} threads of {registers} "
        f"registers, {kernel['shared_bytes']} bytes of shared memory), the predicted time counts on {planned}"
    )
