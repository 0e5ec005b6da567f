# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the architecture of an NVIDIA GPU has, and the description that stands for an architecture."""

from __future__ import annotations

import re

from tilewright.core.errors import UserError
from tilewright.devices.device import Device
from tilewright.devices.files import described

_BY_ARCH = {"sm_80": "nvidia-sm80", "sm_90a": "nvidia-h100"}


def for_arch(arch: str) -> Device:
    """Return the description that plans are made for where only the architecture is known.

    Args:
        arch: ``sm_80`` (any GPU from compute capability 8.0 on) or ``sm_90a`` (an H100; an H200's tiles are the same).

    Raises:
        UserError: there is none for it.
    """
    if arch not in _BY_ARCH:
        raise UserError(f"no device description for '{arch}': use one of {', '.join(_BY_ARCH)}, or a .toml file")
    return described(_BY_ARCH[arch])


def capability(device: Device) -> int:
    """Return ten times the compute capability: 80 for ``sm_80``, 90 for ``sm_90a``.

    Raises:
        UserError: the description names no architecture.
    """
    found = re.fullmatch(r"sm_(\d+)[af]?", device.cpu)
    if found is None:
        raise UserError(
            f"device '{device.name}' names no GPU architecture: its `cpu` is '{device.cpu}', not sm_80, say"
        )
    return int(found[1])


def has_hopper(device: Device) -> bool:
    """Whether TMA, wgmma and clusters may be used: code for them runs on ``sm_90a`` alone."""
    return device.cpu == "sm_90a"
