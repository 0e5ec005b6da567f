# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing of programs on whole machines: `time_program`."""

from tilewright.sim.coremesh.timing.result import Timing
from tilewright.sim.coremesh.timing.run import Sync, time_program

__all__ = ["Sync", "Timing", "time_program"]
