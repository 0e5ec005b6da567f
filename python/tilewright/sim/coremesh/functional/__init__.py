# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run a program for a mesh of cores on arrays: what it computes, and that it breaks no rule.

No cycles are counted; what is on its way waits in queues without an end.
"""

from __future__ import annotations

from tilewright.sim.coremesh.functional.interpreter import run

__all__ = ["run"]
