# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A nest of the IR as an expression: the root's loops, the tensors that cross its border, the work of its bodies."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.devices.device import Device
from tilewright.ir.structure import Access, Kind, LinalgOp, index_terms, sizes_of
from tilewright.mlir import ir
from tilewright.plan.cost.expression import Expression, Index, Operand
from tilewright.plan.model.traffic import element_bytes

_FREE = frozenset({"linalg.yield", "arith.constant", "linalg.index", "arith.index_cast"})

#: loops of an operation -> loops of the root
Binding = dict[int, int]


def nest_expression(
    root: LinalgOp,
    members: Sequence[LinalgOp],
    packed: frozenset[ir.Value],
    device: Device,
    task: Sequence[LinalgOp] = (),
) -> Expression:
    """The expression of a nest.

    Args:
        root: the operation whose loops are the nest's.
        members: all of its operations, the root included.
        packed: values that lie in memory as the nest reads them, whatever their shape says.
        device: knows what functions cost.
        task: operations of the nest's task: what they hand each other stays near.
    """
    bindings = bind(root, members)
    made = {op.result: op for op in members}
    handed = {op.result for op in task}
    inputs: list[Operand] = []
    outputs: list[Operand] = []
    work = tail = 0.0
    macs = 0
    for op, loops in bindings.items():
        outside = [a for a in op.inputs if a.value not in made]
        inputs += [_operand(a, loops, a.value in packed, a.value in handed) for a in outside]
        if _leaves(op, members):
            outputs.append(_operand(op.output, loops, False, bool(task) and not _leaves(op, task)))
        slots = _slots(op, device)
        if op.kind is Kind.CONTRACTION:
            macs += 1
            work += max(slots - 2, 0)
        elif root.reductions and not root.reductions & set(loops.values()):
            tail += slots
        else:
            work += slots
    return Expression(
        root.extents, root.reductions, tuple(dict.fromkeys(inputs)), tuple(outputs), macs=macs, work=work, tail=tail
    )


def bind(root: LinalgOp, members: Sequence[LinalgOp]) -> dict[LinalgOp, Binding]:
    """Loops of the operations of a nest as loops of its root, for those that pass values at equal points."""
    made = {op.result: op for op in members}
    bindings: dict[LinalgOp, Binding] = {root: {d: d for d in range(root.rank)}}
    changed = True
    while changed:
        changed = False
        for op in members:
            for access in op.inputs:
                changed |= _link(access, op, made.get(access.value), bindings)
    return bindings


def _link(access: Access, reader: LinalgOp, maker: LinalgOp | None, bindings: dict[LinalgOp, Binding]) -> bool:
    if maker is None or (reader in bindings) == (maker in bindings):
        return False
    pairs = [(m, r) for m, r in zip(maker.output.dims, access.dims, strict=True) if m is not None and r is not None]
    if reader in bindings:
        known = bindings[reader]
        bindings[maker] = {m: known[r] for m, r in pairs if r in known}
    else:
        known = bindings[maker]
        bindings[reader] = {r: known[m] for m, r in pairs if m in known}
    return True


def _operand(access: Access, loops: Binding, packed: bool, near: bool) -> Operand:
    index: list[Index] = []
    for expr in access.map.results:
        terms = index_terms(expr)
        known = terms is not None and all(d in loops for d in terms)
        index.append(tuple((loops[d], c) for d, c in terms.items()) if known and terms is not None else None)
    return Operand(tuple(sizes_of(access.value)), tuple(index), element_bytes(access.value), packed, near)


def _leaves(op: LinalgOp, members: Sequence[LinalgOp]) -> bool:
    inside = {member.op for member in members}
    return any(use.owner.operation not in inside for use in op.result.uses)


def _slots(op: LinalgOp, device: Device) -> float:
    return sum(
        device.rate(f"slots.{inner.operation.name}", "slots")
        for inner in op.op.regions[0].blocks[0].operations
        if inner.operation.name not in _FREE
    )
