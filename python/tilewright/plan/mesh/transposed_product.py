# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""dist-GEMM-T: C = A B^T without transposing: a mesh transpose would move tiles across the diagonal.

Each round multiplies the core's tile of A with the tile of B that is passing, and adds the partial products of a row
into the core that owns this block of C: a root that moves from round to round. Two chains run towards it from the ends
of the row. They overlap with the next round's product (WaferLLM, OSDI 2025, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.plan.mesh.kernels import MatMul, Store
from tilewright.plan.mesh.product import ALL, Product
from tilewright.plan.mesh.shifting.rotation import Passing, Rotation, slots
from tilewright.plan.mesh.terms import Condition, P, Term, TermLike, X, Y, differ, equal, term
from tilewright.plan.mesh.writer import Writer, cores, slot
from tilewright.sim.coremesh.program import Program, Slot


def transposed_product(product: Product) -> Program:
    """C = A B^T; inputs ``A`` [m, k] and ``B`` [n, k], output ``C`` [m, n], all in plain blocks along the folded rings.

    The rows of B are cut into lcm(height, width) blocks, which go round the columns; no operand is aligned. In round t
    row I holds block ``h = I * held_b - t`` of B, whose products belong to the core of logical column ``h / held_a``.
    """
    writer = Writer("gemm_t", product.height, product.width)
    home = transposed_rounds(writer, product, *_operands(writer, product))
    writer.output("C", (product.m, product.n), home, (Y, X), "ring")
    return writer.program()


def transposed_rounds(
    writer: Writer,
    product: Product,
    left: Slot,
    right: Rotation,
    keep: Passing | None = None,
    *,
    turned_tiles: bool = False,
) -> Slot:
    """Write all rounds, of operands that lie as `transposed_product` says; B is away from home then. Returns C.

    Args:
        keep: what else is done with B's tile of a round.
        turned_tiles: tiles of B are [k, n]: blocks of B^T on exchanged axes, not of B.
    """
    rounds = product.blocks
    state = _State(writer, product, left, right, keep, turned_tiles)
    state.multiply(0)
    if rounds > 1:
        _wait(writer, right.start_shift(writer, 0))
    with writer.loop(max(rounds - 2, 0)) as turn:
        tokens = state.reduce(turn) + right.start_shift(writer, turn + 1)
        state.multiply(turn + 1)
        _wait(writer, tokens)
    if rounds > 1:
        tokens = state.reduce(rounds - 2)
        state.multiply(rounds - 1)
        _wait(writer, tokens)
    _wait(writer, state.reduce(rounds - 1))
    return state.whole()


def _operands(writer: Writer, product: Product) -> tuple[Slot, Rotation]:
    """The inputs, in buffers of their own."""
    m, k, n = _tile(product)
    left = slot(writer.buffer("A", (m, k), product.dtype))
    writer.input("A", (product.m, product.k), left, (Y, X), "ring")
    held = product.held_b
    buffer = writer.buffer("B", (n, k), product.dtype, slots(product.height, held))
    right = Rotation(buffer, "y", "ring", product.height, held)
    for place in range(held):
        writer.input("B", (product.n, product.k), right.at(place), (Y * held + place, X), "ring")
    return left, right


def _tile(product: Product) -> tuple[int, int, int]:
    return -(-product.m // product.height), -(-product.k // product.width), -(-product.n // product.blocks)


class _State:
    """Buffers of a program, and what is done with them in a round."""

    def __init__(
        self,
        writer: Writer,
        product: Product,
        left: Slot,
        right: Rotation,
        keep: Passing | None,
        turned_tiles: bool,
    ) -> None:
        self.writer, self.product, self.left, self.right = writer, product, left, right
        self.keep, self.turned_tiles = keep, turned_tiles
        m, _, n = _tile(product)
        self.partial = writer.buffer("partial", (m, n), product.accumulator, 2) if product.width > 1 else ""
        self.total = writer.buffer("C", (m, n), product.accumulator, product.held_a)
        self.width = m, n * product.held_a

    def multiply(self, turn: TermLike) -> None:
        """The product of a round: the root's into C, the others' into one of two slots."""
        kernel = MatMul(self.product.accumulator, transposed=not self.turned_tiles)
        reads, root = (self.left, self.right.at(0, turn)), self.root(turn)
        if self.keep:
            self.keep(self.right.at(0, turn), turn)
        if self.product.width == 1:
            self.writer.compute(cores(order="ring"), kernel, reads, (self.block(turn),))
            return
        at_root, others = equal(X, root), differ(X, root, self.product.width)
        self.writer.compute(cores(at_root, order="ring"), kernel, reads, (self.block(turn),))
        self.writer.compute(cores(others, order="ring"), kernel, reads, (slot(self.partial, term(turn) % 2),))

    def reduce(self, turn: TermLike) -> list[str]:
        """Start to add the partial products of a round into the root's. Returns tokens."""
        if self.product.width == 1:
            return []
        chains = _Chains(self.writer, self.product.width, self.root(turn), slot(self.partial, term(turn) % 2))
        return chains.start(self.block(turn))

    def root(self, turn: TermLike) -> Term:
        """Logical column of the root of each row."""
        return self._passing(turn) // self.product.held_a

    def block(self, turn: TermLike) -> Slot:
        """Where the root keeps the block of C of a round."""
        return slot(self.total, self._passing(turn) % self.product.held_a)

    def whole(self) -> Slot:
        """C as one tile per core, in the result's type."""
        product, home = self.product, self.total
        if product.held_a > 1 or product.result != product.accumulator:
            home = self.writer.buffer("C_whole", self.width, product.result)
            parts = [slot(self.total, place) for place in range(product.held_a)]
            self.writer.compute(ALL, Store(np.dtype(product.result)), parts, (slot(home),))
        return slot(home)

    def _passing(self, turn: TermLike) -> Term:
        """Which block of B's rows passes each row of cores."""
        return (Y * self.product.held_b - turn) % self.product.blocks


@dataclass(frozen=True)
class _Chains:
    """Two chains along each row, towards a root given by its logical column.

    Cores are told apart by their logical columns l, that of the root being r, of N. Even places of the line have
    ``l <= (N - 1) / 2`` and stand at ``2 l``, odd ones at ``2 (N - l) - 1``. So a core stands left of the root exactly
    if ``l > r`` and ``l + r >= N`` are both true or both false: an affine condition. One route leads to the right, one
    to the left; a core that relays receives and sends on it.
    """

    writer: Writer
    length: int
    root: Term
    partial: Slot

    def start(self, total: Slot) -> list[str]:
        """Start chains that add up in the root's slot ``total``. Returns tokens."""
        last = self.length // 2  # the logical column of the last place
        above = (X - self.root + self.length - 1) // self.length  # 1 if l > r, else 0
        beyond = (X + self.root) // self.length  # 1 if l + r >= N, else 0
        return [
            *self._chain("right", 0, equal(above, beyond), total),
            *self._chain("left", last, equal(above + beyond, 1), total),
        ]

    def _chain(self, way: str, end: int, side: Condition, total: Slot) -> list[str]:
        """From the core at one end of the line to the root, if that is another."""
        route = self.writer.route(f"x_{way}", "x", P - 1 if way == "right" else P + 1)
        exists = differ(self.root, end, self.length)
        sends = cores(equal(X, end), exists, order="ring")
        relays = cores(side, differ(X, self.root, self.length), differ(X, end, self.length), order="ring")
        hears = cores(equal(X, self.root), exists, order="ring")
        return [
            self.writer.send(sends, route, self.partial),
            self.writer.relay(relays, route, route, self.partial),
            self.writer.recv(hears, route, total, "add"),
        ]


def _wait(writer: Writer, tokens: list[str]) -> None:
    if tokens:
        writer.wait(tokens, "round")
