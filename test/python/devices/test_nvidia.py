# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptions of NVIDIA GPUs: peaks as in the data sheets, limits that fit together."""

from __future__ import annotations

import dataclasses

import pytest

from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.devices.nvidia import capability, for_arch, has_hopper

#: TFLOP/s of tensor cores without sparsity, GB/s, as the data sheets have them.
SHEETS = {"nvidia-a100": (312, 2039), "nvidia-h100": (989, 3350), "nvidia-h200": (989, 4800), "nvidia-sm80": (125, 600)}


@pytest.mark.parametrize("name", SHEETS)
def test_peaks_of_the_data_sheets(name: str) -> None:
    device = devices.get(name)
    products, bandwidth = SHEETS[name]
    assert device.units.peak_of("bf16") * device.units.count / 1e12 == pytest.approx(products, rel=0.01)
    assert device.level("memory").bandwidth / 1e9 == bandwidth


@pytest.mark.parametrize("name", SHEETS)
def test_limits_fit_together(name: str) -> None:
    device = devices.get(name)
    assert device.level("shared").bytes <= device.limit("sm_shared", 0) - 1024, "a CTA takes 1 KiB besides its own"
    assert device.limit("sm_threads", 0) % device.limit("warp", 0) == 0
    assert device.limit("sm_registers", 0) * 4 == device.level("register").bytes


def test_architectures() -> None:
    assert for_arch("sm_80").cpu == "sm_80" and not has_hopper(for_arch("sm_80"))
    assert has_hopper(for_arch("sm_90a")) and capability(for_arch("sm_90a")) == 90
    least = devices.get("nvidia-sm80")
    assert all(least.level("shared").bytes <= devices.get(n).level("shared").bytes for n in SHEETS)
    with pytest.raises(UserError, match="no device description for 'sm_70'"):
        for_arch("sm_70")
    with pytest.raises(UserError, match="names no GPU architecture"):
        capability(dataclasses.replace(least, cpu="znver5"))
