# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program for a mesh of cores, wavelet by wavelet: routers, queues, ramps, banks, and one thread per core.

For machines up to about 64 x 64 cores. Values do not move; `functional` has those.
"""

from __future__ import annotations

from tilewright.sim.coremesh.wavelets.outcome import Outcome
from tilewright.sim.coremesh.wavelets.simulate import simulate

__all__ = ["Outcome", "simulate"]
