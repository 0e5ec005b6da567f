# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MeshGEMM and Cannon's algorithm: operands go round rings, C stays.

Both do the same on different rings. Cannon's closes a line of N cores by one link of N - 1 hops; MeshGEMM's is folded,
so that neighbours stand at most two hops apart and every link of the mesh carries one flow (WaferLLM, OSDI 2025,
section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tilewright.plan.mesh.product import Accumulator, Product
from tilewright.plan.mesh.shifting.rotation import Passing, Rotation, align, slots
from tilewright.plan.mesh.terms import X, Y
from tilewright.plan.mesh.writer import Writer
from tilewright.sim.coremesh.program import Order, Program

ORDERS: dict[str, Order] = {"meshgemm": "ring", "cannon": "linear"}


def shifted_product(product: Product, algorithm: Literal["meshgemm", "cannon"] = "meshgemm") -> Program:
    """C = A B by compute-shift rounds; inputs ``A`` [m, k] and ``B`` [k, n], output ``C`` [m, n].

    Each round multiplies the tiles that have met, while the next ones arrive. Core (I, J) begins with block
    ``I * held_b + J * held_a`` of the summed dimension.
    """
    return shifted_products([product], algorithm)


def shifted_products(products: Sequence[Product], algorithm: Literal["meshgemm", "cannon"] = "meshgemm") -> Program:
    """Several products of one A, one after the other, as of queries, keys and values; A is aligned once.

    Inputs ``A``, then ``B`` (``B1``, ``B2``, ... of several), outputs ``C`` alike. Each product but the last shifts A
    once more than it needs, home again, possibly to another slot; B has its home once the product is done.
    """
    first, order = products[0], ORDERS[algorithm]
    writer = Writer(algorithm, first.height, first.width)
    left = _left(writer, first, order)
    rights = [_right(writer, one, order, _numbered("B", number, products)) for number, one in enumerate(products)]
    left, *rights = _aligned(writer, first, left, list(zip(products, rights, strict=True)))
    for number, (one, right) in enumerate(zip(products, rights, strict=True)):
        last = number == len(products) - 1
        total = Accumulator(writer, one, order)
        left = compute_shift(writer, total, left, right, one.blocks, home=not last)
        total.finish(_numbered("C", number, products))
    return writer.program()


def compute_shift(
    writer: Writer,
    total: Accumulator,
    left: Rotation,
    right: Rotation,
    rounds: int,
    home: bool,
    keep: Passing | None = None,
) -> Rotation:
    """Rounds of multiplying what has met while both operands shift; the last shifts A alone, home, or nothing.

    Args:
        keep: what else is done with B's tile of a round.

    Returns:
        A as it lies then.
    """
    with writer.loop(rounds - 1) as turn:
        tokens = left.start_shift(writer, turn) + right.start_shift(writer, turn)
        total.add(left.at(0, turn), right.at(0, turn))
        if keep:
            keep(right.at(0, turn), turn)
        if tokens:
            writer.wait(tokens, "round")
    tokens = left.start_shift(writer, rounds - 1) if home else []
    total.add(left.at(0, rounds - 1), right.at(0, rounds - 1))
    if keep:
        keep(right.at(0, rounds - 1), rounds - 1)
    if tokens:
        writer.wait(tokens, "round")
    return left.after(rounds)


def _left(writer: Writer, product: Product, order: Order) -> Rotation:
    m, k, _ = product.tile
    shape, held = (m, k), product.held_a
    buffer = writer.buffer("A", shape, product.dtype, slots(product.width, held))
    first = X * held if product.skew_a == "run" else (X * held + Y * product.held_b) % product.blocks
    operand = Rotation(buffer, "x", order, product.width, held)
    for place in range(held):
        block = (Y, (first + place) % product.blocks if place else first)
        writer.input("A", (product.m, product.k), operand.at(place), block, order)
    return operand


def _right(writer: Writer, product: Product, order: Order, name: str) -> Rotation:
    _, k, n = product.tile
    held = product.held_b
    buffer = writer.buffer(name, (k, n), product.dtype, slots(product.height, held))
    first = Y * held if product.skew_b == "run" else (Y * held + X * product.held_a) % product.blocks
    operand = Rotation(buffer, "y", order, product.height, held)
    for place in range(held):
        block = ((first + place) % product.blocks if place else first, X)
        writer.input(name, (product.k, product.n), operand.at(place), block, order)
    return operand


def _aligned(writer: Writer, first: Product, left: Rotation, rights: list[tuple[Product, Rotation]]) -> list[Rotation]:
    """Operands, those aligned that the host did not align: all of them in one loop."""
    operands = [(left, first.held_b, first.skew_a)]
    operands += [(right, product.held_a, product.skew_b) for product, right in rights]
    moved = iter(align(writer, [(operand, pace) for operand, pace, skew in operands if skew == "run"]))
    return [next(moved) if skew == "run" else operand for operand, _, skew in operands]


def _numbered(name: str, number: int, products: Sequence[Product]) -> str:
    return name if len(products) == 1 else f"{name}{number + 1}"
