# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether the cores hold a weight condensed: cycles of the product by what they hold, and bytes of a core."""

from __future__ import annotations

import functools

import numpy as np

from tilewright.ir.generics import body
from tilewright.mlir import ir
from tilewright.plan.mesh.allreduce import allreduce
from tilewright.plan.mesh.kernels import Fill
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.reduction import Line
from tilewright.plan.mesh.reduction_cost import choose as choose_scheme
from tilewright.plan.mesh.relayout import Placing, Relayout, Spread, relayout
from tilewright.plan.mesh.writer import Writer, slot
from tilewright.sim.coremesh.checks.colors import routes_by_color, usable_colors
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Cost
from tilewright.sim.coremesh.timing import time_program
from tilewright.targets.mesh.computations import Product, loop_sizes
from tilewright.targets.mesh.cutting.choice import UNLIMITED
from tilewright.targets.mesh.weights.sparse import MOST_LEFT, Weight, condensed

#: The part of a core's memory above which a weight is held condensed whatever it costs.
LARGE = 1 / 8


def condensed_cycles(op: ir.Operation, found: Product, weight: Weight, side: int, machine: Machine) -> float:
    """Cycles of one product of the batch: of the fullest core, and of adding up partial sums.

    Args:
        side: cores along each side of the grid.
    """
    sizes = loop_sizes(op)
    m = 1 if weight.rows is None else sizes[weight.rows]
    n = -(-sizes[weight.columns] // side)
    element = ir.RankedTensorType(op.results[0].type).element_type
    steps, more = _steps(sizes[found.summed], n, weight, side)
    bits = ir.FloatType(ir.RankedTensorType(op.operands[1 - weight.number].type).element_type).width
    cost = Cost(m * steps * n, steps * (n if m > 1 else 1) + 1, more + m * n, bits)
    return machine.kernel_cycles(cost) + _added_up(m * n, ir.FloatType(element).width // 8, side, machine)


@functools.cache
def move_cycles(rows: int, columns: int, side: int, machine: Machine) -> float:
    """Cycles of the relayouts that a step of a loop needs, whose state is split along both axes.

    Args:
        rows, columns: of the result, in f32.
    """
    spread = Placing((Spread("y", "ring"), Spread("x", "ring")))
    line = Placing((None, Spread("y", "ring")))
    both = [Relayout((rows, columns), side, side, *pair) for pair in ((spread, line), (line, spread))]
    return sum(time_program(relayout(one), machine, loads=False).cycles for one in both)


def reason_against(weight: Weight, cycles: float, dense: float, bytes_dense: int, machine: Machine) -> str:
    """Why the elements are held instead; empty where the weight is held condensed.

    Args:
        dense: cycles of the best product that moves or holds all elements.
        bytes_dense: of one core's elements.
    """
    if weight.values is not None and np.count_nonzero(weight.values) > MOST_LEFT * weight.values.size:
        return f"{np.count_nonzero(weight.values) / weight.values.size:.0%} of the weight are not 0"
    if cycles > dense and bytes_dense <= LARGE * machine.sram_bytes:
        return f"without zeros or decoded in the core it takes {cycles:,.0f} cycles"
    return ""


def _steps(k: int, n: int, weight: Weight, side: int) -> tuple[int, int]:
    """Multiply-adds of a core per row and column, and elements that it makes besides."""
    if weight.values is not None:
        most = len(condensed(weight.values, side)[0]) // side
        return most, most * n
    assert weight.made is not None
    rows = -(-k // side)
    work = sum(view.operation.name.partition(".")[0] != "linalg" for view in body(weight.made).operations)
    return rows, rows * n * max(1, work)


def _added_up(elements: int, width: int, side: int, machine: Machine) -> float:
    """Cycles of an allreduce along lines of cores."""
    channels = usable_colors(machine) if routes_by_color(machine) else UNLIMITED
    wavelets = max(1, -(-elements * width // 4))
    scheme = choose_scheme(side, wavelets, machine.mesh.ramp_cycles, channels, everywhere=True)
    writer = Writer("sums", side, side)
    kind = np.dtype(np.float16 if width == 2 else np.float32)
    total = slot(writer.buffer("sums", (elements,), kind))
    writer.compute(ALL, Fill((elements,), kind), (), (total,))
    allreduce([Line(writer, "y", total)], [scheme])
    return time_program(writer.program(), machine, loads=False).cycles
