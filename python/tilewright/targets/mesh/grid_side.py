# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many cores each side of a model's grid has."""

from __future__ import annotations

from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.sim.coremesh.machine import Machine
from tilewright.targets.mesh.attributes import ELEMENT
from tilewright.targets.mesh.computations import loop_sizes
from tilewright.targets.mesh.control.shared_loops import Shared
from tilewright.targets.mesh.control.single_elements import enclosing


def side_of(function: ir.Operation, machine: Machine) -> int:
    """As many as the machine's shorter side has, but no more than the longest loop has iterations."""
    sizes = [size for op in walk(function, "linalg.generic") for size in loop_sizes(op)]
    outermost = dict.fromkeys(enclosing(op)[-1] for op in walk(function, ELEMENT))
    sizes += [size for op in outermost for size in Shared(op).sizes]
    return max(1, min(machine.mesh.height, machine.mesh.width, max(sizes, default=1)))
