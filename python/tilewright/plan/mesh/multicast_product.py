# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SUMMA and the all-gather product: roots multicast their tiles along rows and columns.

In each round another core of a line is the root, so that a core lies on as many paths as its line has cores; that is
what a mesh of many cores has no routes for (WaferLLM, OSDI 2025, table of section 5). All-gather also keeps whole
panels in every core.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plan.mesh.product import Accumulator, Product
from tilewright.plan.mesh.terms import Condition, Term, TermLike, X, Y, differ, equal, term
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.program import Program, Slot


def summa(product: Product) -> Program:
    """C = A B: in round t the holders of block t of the summed dimension multicast it; all cores multiply it.

    What the next round needs arrives while this one is computed, in one of two slots. Inputs and output lie in plain
    blocks, as cores stand. Source: van de Geijn and Watts, SUMMA, 1997.
    """
    writer = Writer("summa", product.height, product.width)
    total = Accumulator(writer, product, "linear")
    operands = [_operand(writer, product, side) for side in ("A", "B")]
    rounds = product.blocks
    tokens = [token for operand in operands for token in operand.multicast(writer, 0)]
    if tokens:
        writer.wait(tokens, "round")
    with writer.loop(rounds - 1) as turn:
        tokens = [token for operand in operands for token in operand.multicast(writer, turn + 1)]
        _multiply(total, operands, turn)
        if tokens:
            writer.wait(tokens, "round")
    _multiply(total, operands, term(rounds - 1))
    total.finish()
    return writer.program()


def all_gather_product(product: Product) -> Program:
    """C = A B: every core first collects its whole row panel of A and column panel of B, then multiplies.

    Inputs and output lie in plain blocks, as cores stand.
    """
    writer = Writer("allgather", product.height, product.width)
    total = Accumulator(writer, product, "linear")
    operands = [_panel(writer, product, side) for side in ("A", "B")]
    with writer.loop(product.blocks) as turn:
        tokens = [token for operand in operands for token in operand.multicast(writer, turn)]
        if tokens:
            writer.wait(tokens, "round")
    with writer.loop(product.blocks) as turn:
        total.add(operands[0].moving(turn), operands[1].moving(turn))
    total.finish()
    return writer.program()


@dataclass(frozen=True)
class _Operand:
    """An operand whose holders multicast it, a tile per round, along an axis.

    Attributes:
        held: tiles per core; ``own`` and ``arrived``: buffers, ``arrived`` of ``slots`` slots; the same for panels.
    """

    axis: Axis
    length: int
    held: int
    own: str
    arrived: str
    slots: int

    def here(self, turn: TermLike) -> Condition:
        """Cores that hold the tile of a round."""
        return equal(self._place, term(turn) // self.held)

    def away(self, turn: TermLike) -> Condition:
        """Cores that get it."""
        return differ(self._place, term(turn) // self.held, self.length)

    def mine(self, turn: Term) -> Slot:
        """Where its holder has the tile of a round."""
        return self.moving(turn) if self.own == self.arrived else slot(self.own, turn % self.held)

    def moving(self, turn: Term) -> Slot:
        """Where others have it."""
        return slot(self.arrived, turn % self.slots)

    def multicast(self, writer: Writer, turn: TermLike) -> list[str]:
        """Start to send the tile of a round from its holder to all others of the line. Returns tokens."""
        if self.length == 1:
            return []
        at = term(turn)
        route = writer.route(f"{self.axis}_root", self.axis, at // self.held)
        return [
            writer.send(cores(self.here(at)), route, self.mine(at)),
            writer.recv(cores(self.away(at)), route, self.moving(at)),
        ]

    @property
    def _place(self) -> Term:
        return X if self.axis == "x" else Y


def _operand(writer: Writer, product: Product, side: str) -> _Operand:
    axis, length, held, shape, whole = _side(product, side)
    own = writer.buffer(side, shape, product.dtype, held)
    for place in range(held):
        block = (Y, X * held + place) if side == "A" else (Y * held + place, X)
        writer.input(side, whole, slot(own, place), block, "linear")
    arrived = writer.buffer(f"{side}_arrived", shape, product.dtype, 2) if length > 1 else own
    return _Operand(axis, length, held, own, arrived, 2 if length > 1 else held)


def _panel(writer: Writer, product: Product, side: str) -> _Operand:
    axis, length, held, shape, whole = _side(product, side)
    panel = writer.buffer(f"{side}_panel", shape, product.dtype, product.blocks)
    for place in range(held):
        index = (X if side == "A" else Y) * held + place
        writer.input(side, whole, slot(panel, index), (Y, index) if side == "A" else (index, X), "linear")
    return _Operand(axis, length, held, panel, panel, product.blocks)


def _side(product: Product, side: str) -> tuple[Axis, int, int, tuple[int, int], tuple[int, int]]:
    """Axis, its length, tiles per core, shape of a tile, shape of the matrix."""
    m, k, n = product.tile
    if side == "A":
        return "x", product.width, product.held_a, (m, k), (product.m, product.k)
    return "y", product.height, product.held_b, (k, n), (product.k, product.n)


def _multiply(total: Accumulator, operands: list[_Operand], turn: Term) -> None:
    """Holders multiply what they hold, others what has arrived: four kinds of cores, or fewer on a line."""
    left, right = operands
    for a, where_a in _kinds(left, turn):
        for b, where_b in _kinds(right, turn):
            total.add(a, b, *where_a, *where_b)


def _kinds(operand: _Operand, turn: Term) -> list[tuple[Slot, tuple[Condition, ...]]]:
    if operand.length == 1:
        return [(operand.mine(turn), ())]
    return [(operand.mine(turn), (operand.here(turn),)), (operand.moving(turn), (operand.away(turn),))]
