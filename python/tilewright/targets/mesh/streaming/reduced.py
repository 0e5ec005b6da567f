# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and products whose combined loop is cut into blocks: each block makes a partial result of its own."""

from __future__ import annotations

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import create, create_fill, create_generic, create_number, kinds, maps
from tilewright.mlir import ir
from tilewright.sim.coremesh.combinations import Combine, identity, is_float, op_of
from tilewright.targets.mesh.computations import Product, Reduction, computation, factors_of
from tilewright.targets.mesh.images.windows import terms, windows


def combined_loops(op: ir.Operation) -> tuple[int, ...]:
    """The loops of a generic along which it combines, in whatever parts; none where it combines in another way."""
    found = computation(op)
    if isinstance(found, Product):
        return (found.summed,)
    if isinstance(found, Reduction):
        return found.loops
    return _channels(op) if factors_of(op) is not None and not isinstance(windows(op), str) else ()


def _channels(op: ir.Operation) -> tuple[int, ...]:
    """Summed loops of a convolution that move no window."""
    exprs = [terms(expr) or [] for map_ in maps(op) for expr in map_.results]
    moving = {loop for one in exprs if len(one) > 1 for loop, _ in one}
    return tuple(loop for loop, is_summed in enumerate(kinds(op)) if is_summed and loop not in moving)


def start_of_part(op: ir.Operation) -> ir.Value:
    """What each partial result starts from, at the current insertion point: what changes nothing."""
    kind = ir.RankedTensorType(op.results[0].type)
    number = create_number(identity(_how(op), of_mlir(str(kind.element_type))), kind.element_type)
    return create_fill(number, create("tensor.empty", [], kind))


def with_part(op: ir.Operation, total: ir.Value, part: ir.Value) -> ir.Value:
    """The result so far with one more partial result, at the current insertion point."""
    kind = ir.RankedTensorType(op.results[0].type)
    name = op_of(_how(op), is_float(of_mlir(str(kind.element_type))))
    same = ir.AffineMap.get_identity(kind.rank)

    def step(elements: list[ir.Value]) -> ir.Value:
        return create(name, elements[:2], kind.element_type)

    return create_generic(
        [(total, same), (part, same)], create("tensor.empty", [], kind), same, [False] * kind.rank, step
    )


def _how(op: ir.Operation) -> Combine:
    found = computation(op)
    return found.how if isinstance(found, Reduction) else "add"
