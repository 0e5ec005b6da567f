# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether the cores hold a weight condensed: cycles of the product by what they hold, and bytes of a core."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import body, create
from tilewright.mlir import ir
from tilewright.plan.mesh.allreduce import allreduce
from tilewright.plan.mesh.collectives.regions import block_gemm_program
from tilewright.plan.mesh.kernels import Fill
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.reduction import Line
from tilewright.plan.mesh.reduction_cost import choose as choose_scheme
from tilewright.plan.mesh.relayout import Placing, Relayout, Spread, relayout
from tilewright.plan.mesh.writer import Writer, slot
from tilewright.sim.coremesh.checks.colors import routes_by_color, usable_colors
from tilewright.sim.coremesh.checks.memory import core_classes
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Cost
from tilewright.sim.coremesh.timing import time_program
from tilewright.targets.mesh.computations import Product, loop_sizes
from tilewright.targets.mesh.cutting.choice import UNLIMITED
from tilewright.targets.mesh.placement import block_bytes, laid_type
from tilewright.targets.mesh.weights.condensed import ROUND, STANDING, block_gemm, going_round, result_kind
from tilewright.targets.mesh.weights.sparse import MOST_LEFT, Weight, most_left
from tilewright.targets.mesh.weights.stored import stored

#: The part of a core's memory above which a weight is held condensed whatever it costs.
LARGE = 1 / 8


@dataclass(frozen=True)
class Held:
    """A way to hold a weight condensed.

    Attributes:
        algorithm: as `coremesh.algorithm` says it.
        cycles: of one product of the batch.
    """

    algorithm: str
    cycles: float


def standing(op: ir.Operation, found: Product, weight: Weight, side: int, machine: Machine, room: int) -> Held | None:
    """Cycles where it stays: of the fullest core, and of adding up partial sums; None where that does not fit.

    Args:
        side: cores along each side of the grid.
        room: bytes of a core.
    """
    sizes = loop_sizes(op)
    m = 1 if weight.rows is None else sizes[weight.rows]
    k, n = (-(-sizes[loop] // side) for loop in (found.summed, weight.columns))
    result, bits = _width(op.results[0]), 8 * _width(op.operands[1 - weight.number])
    store = stored(op, weight, found.summed, {found.summed: "y", weight.columns: "x"}, side)
    own = m * (k * bits // 8 + n * result) + sum(map(block_bytes, store.kinds))
    if _with_batch(own, m * k * bits // 8, m * n * result, _batch(op, found)) > room:
        return None
    steps, more = _steps(sizes[found.summed], n, weight, side)
    doubles = 2 * m * steps * n * (str(ir.RankedTensorType(op.results[0].type).element_type) == "f64")
    cost = Cost(m * steps * n, steps * (n if m > 1 else 1) + 1, more + m * n, bits, doubles=doubles)
    return Held(STANDING, machine.kernel_cycles(cost) + _added_up(m * n, result, side, machine))


def round_about(
    op: ir.Operation, found: Product, weight: Weight, side: int, machine: Machine, room: int
) -> Held | None:
    """Cycles where it goes round, of the program that would be made; None where there is none, or no room for it."""
    if weight.rows is None:
        return None
    store, kind = going_round(op, found, weight, side), result_kind(op, weight, side)
    shape = [loop_sizes(op)[loop] for loop in (weight.rows, found.summed)]
    element = ir.RankedTensorType(op.operands[1 - weight.number].type).element_type
    left = laid_type(ir.RankedTensorType.get(shape, element), ("y", "x"), side)
    with ir.InsertionPoint(op), op.location:
        given = [create("builtin.unrealized_conversion_cast", [], one) for one in (left, *store.kinds)]
        made = block_gemm(given[0], given[1:], kind, store)
        program = block_gemm_program(made.owner)
        for value in (made, *given):
            value.owner.erase()
    sizes = block_bytes(left), block_bytes(kind)
    if _with_batch(core_classes(program)[0].peak, *sizes, _batch(op, found)) > room:
        return None
    return Held(ROUND, time_program(program, machine, loads=False).cycles)


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


def reason_against(weight: Weight, ways: list[Held], dense: float, bytes_dense: int, machine: Machine) -> str:
    """Why the elements are held instead; empty where the weight is held condensed.

    Args:
        ways: to hold it so that fit, the fastest first.
        dense: cycles of the best product that moves or holds all elements.
        bytes_dense: of one core's elements.
    """
    if weight.values is not None and np.count_nonzero(weight.values) > MOST_LEFT * weight.values.size:
        return f"{np.count_nonzero(weight.values) / weight.values.size:.0%} of the weight are not 0"
    if not ways:
        return "without zeros or decoded by the cores it does not fit beside the other operand"
    if ways[0].cycles > dense and bytes_dense <= LARGE * machine.sram_bytes:
        return f"without zeros or decoded in the core it takes {ways[0].cycles:,.0f} cycles"
    return ""


def told(weight: Weight, ways: list[Held]) -> str:
    """What is held, for a remark."""
    what = "of its numbers that are not 0" if weight.how == "sparse" else "of its codes, decoded by each core"
    others = "".join(f"; {way.algorithm} {way.cycles:,.0f}" for way in ways[1:])
    return f"{what}: {ways[0].algorithm}: {ways[0].cycles:,.0f} cycles simulated{others}"


def _batch(op: ir.Operation, found: Product) -> int:
    """How many products there are."""
    return prod(loop_sizes(op)[loop] for loop in found.batch)


def _with_batch(own: int, left: int, result: int, batch: int) -> int:
    """Bytes of a core at its fullest: in the last product of a batch, or where results become one.

    Args:
        own: of one product.
        left, result: of its other operand, of which all of the batch is held, and of its result.
    """
    if batch == 1:
        return own
    return max(own + batch * left + (batch - 1) * result, 2 * batch * result)


def _steps(k: int, n: int, weight: Weight, side: int) -> tuple[int, int]:
    """Multiply-adds of a core per row and column, and elements that it makes besides."""
    if weight.values is not None:
        return most_left(weight.values, side), 0
    assert weight.made is not None
    rows = -(-k // side)
    work = sum(view.operation.name.partition(".")[0] != "linalg" for view in body(weight.made).operations)
    return rows, rows * n * max(1, work)


def _width(value: ir.Value) -> int:
    """Bytes of an element."""
    return of_mlir(str(ir.RankedTensorType(value.type).element_type)).itemsize


def _added_up(elements: int, width: int, side: int, machine: Machine) -> float:
    """Cycles of an allreduce along lines of cores."""
    channels = usable_colors(machine) if routes_by_color(machine) else UNLIMITED
    wavelets = max(1, -(-elements * width // 4))
    scheme = choose_scheme(side, wavelets, machine.mesh.ramp_cycles, channels, everywhere=True)
    writer = Writer("sums", side, side)
    kind = np.dtype(f"i{width}")
    total = slot(writer.buffer("sums", (elements,), kind))
    writer.compute(ALL, Fill((elements,), kind), (), (total,))
    allreduce([Line(writer, "y", total)], [scheme])
    return time_program(writer.program(), machine, loads=False).cycles
