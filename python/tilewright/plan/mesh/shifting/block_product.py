# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MeshGEMM by a right operand in another form than its elements: without zeros, or as codes.

Several tensors stand for it. Those that have a part of their own for each block of the summed dimension go round the
ring of each column together; others (as scales of columns) stay. A kernel multiplies what has met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.plan.mesh.kernels import Fill
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.shifting.rotation import Rotation, align, slots
from tilewright.plan.mesh.terms import Term, TermLike, X, Y, term
from tilewright.plan.mesh.writer import Axis, Kernel, Writer, cores, slot
from tilewright.sim.coremesh.program import Order, Program, Slot

RING: Order = "ring"


@dataclass(frozen=True)
class Part:
    """One of the tensors.

    Attributes:
        tile: of one core.
        axes: along its dimensions; None: not split.
        skewed: the host has aligned it.
    """

    shape: tuple[int, ...]
    tile: tuple[int, ...]
    dtype: np.dtype
    axes: tuple[Axis | None, ...]
    skewed: bool = True


@dataclass(frozen=True)
class BlockProduct:
    """One product on ``side`` x ``side`` cores.

    Attributes:
        left: [m, k], split [y, x].
        rights: what stands for the right operand; y splits along the summed dimension.
        result: [m, n], split [y, x].
        multiply: makes, of a core's tiles of all of them, the new tile of the result.
    """

    side: int
    left: Part
    rights: tuple[Part, ...]
    result: Part
    multiply: Kernel


def block_product(product: BlockProduct) -> Program:
    """Inputs ``A``, then ``B1``, ``B2``, ...; output ``C``."""
    side, result = product.side, product.result
    writer = Writer("block_gemm", side, side)
    left = _rotating(writer, "A", product.left, "x", side)
    rights: list[Rotation | Slot] = []
    for number, part in enumerate(product.rights, 1):
        made = _rotating if "y" in part.axes else _staying
        rights.append(made(writer, f"B{number}", part, "y", side))
    given = [(left, product.left), *zip(rights, product.rights, strict=True)]
    operands = _aligned(writer, given)
    total = slot(writer.buffer("C", result.tile, result.dtype))
    writer.compute(ALL, Fill(result.tile, result.dtype), (), (total,))
    _rounds(writer, product, operands, total)
    writer.output("C", result.shape, total, (Y, X), RING)
    return writer.program()


def _rounds(writer: Writer, product: BlockProduct, operands: Sequence[Rotation | Slot], total: Slot) -> None:
    """Multiply what has met while the next comes; what comes last is multiplied alone."""

    def multiply(shifted: TermLike) -> None:
        reads = [one.at(0, shifted) if isinstance(one, Rotation) else one for one in operands]
        writer.compute(cores(order=RING), product.multiply, (*reads, total), (total,))

    with writer.loop(product.side - 1) as turn:
        moving = [one for one in operands if isinstance(one, Rotation)]
        tokens = [token for one in moving for token in one.start_shift(writer, turn)]
        multiply(turn)
        writer.wait(tokens, "round")
    multiply(product.side - 1)


def _rotating(writer: Writer, name: str, part: Part, axis: Axis, side: int) -> Rotation:
    buffer = writer.buffer(name, part.tile, part.dtype, slots(side, 1))
    operand = Rotation(buffer, axis, RING, side, 1)
    first = (Y + X) % side if part.skewed else (X if axis == "x" else Y)
    block = [first if along == axis else _place(along) for along in part.axes]
    writer.input(name, part.shape, operand.at(0), block, RING)
    return operand


def _staying(writer: Writer, name: str, part: Part, axis: Axis, side: int) -> Slot:
    at = slot(writer.buffer(name, part.tile, part.dtype))
    writer.input(name, part.shape, at, [_place(along) for along in part.axes], RING)
    return at


def _place(axis: Axis | None) -> Term:
    if axis is None:
        return term(0)
    return Y if axis == "y" else X


def _aligned(writer: Writer, operands: Sequence[tuple[Rotation | Slot, Part]]) -> list[Rotation | Slot]:
    """Operands, those aligned that the host did not align: all of them in one loop."""
    moved = iter(align(writer, [(one, 1) for one, part in operands if isinstance(one, Rotation) and not part.skewed]))
    return [next(moved) if isinstance(one, Rotation) and not part.skewed else one for one, part in operands]
