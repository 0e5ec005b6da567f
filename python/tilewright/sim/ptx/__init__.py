# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An emulator of PTX in NumPy: runs what ships, and says where a program breaks a rule of the machine.

from tilewright.sim import ptx as emulate

memory = emulate.GlobalMemory()
kernel = emulate.load(ptx).kernel("gemm")
emulate.launch(kernel, grid=(4, 4), params=[...], memory=memory)
"""

from tilewright.sim.ptx.device import Device, unknown_options
from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.launch import LoadedModule, launch, load
from tilewright.sim.ptx.machine import CHECKS, Options
from tilewright.sim.ptx.memory.global_memory import GlobalMemory
from tilewright.sim.ptx.trace import Trace

__all__ = [
    "CHECKS",
    "Device",
    "EmulationError",
    "GlobalMemory",
    "LoadedModule",
    "Options",
    "Trace",
    "launch",
    "load",
    "unknown_options",
]
