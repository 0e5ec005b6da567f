# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Descriptions of machines: what planning knows of the hardware.

``devices.get("cpu")`` describes this host; ``get("cpu:x86-64-v3")`` or ``get("cpu:znver5")`` a CPU by LLVM's name;
``get("cpu:amd-zen5")`` a file of this folder. The MLIR bindings are needed for CPU names and attributes only.
"""

from tilewright.devices.device import Device, Level, Units
from tilewright.devices.files import file_names, load
from tilewright.devices.host import available_cpus, detect_host
from tilewright.devices.lookup import get
from tilewright.devices.nvidia import for_arch

__all__ = [
    "Device",
    "Level",
    "Units",
    "available_cpus",
    "detect_host",
    "file_names",
    "for_arch",
    "get",
    "load",
]
