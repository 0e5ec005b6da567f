# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a function with the indices that are kept: types, constants, slices."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.ir.generics import create, kinds, maker
from tilewright.mlir import ir
from tilewright.normalize.sparsity.apart import Apart, analysed, gathering
from tilewright.normalize.sparsity.facts import Facts, extent, is_tensor, shape_of, small_and_large, window_of
from tilewright.normalize.sparsity.kept import Kept
from tilewright.normalize.sparsity.trials import Found, has_open_sizes, tried
from tilewright.passes import remark
from tilewright.passes.weights import create_table

#: Elements of a slice of integers that hold one number, at least, for it to be a pruned one.
_SLICE = 2
_CONTROL = ("scf.for", "scf.if", "scf.while")
_CONSTANTS = ("arith.constant", "ml_program.global_load_const")


def _operations(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations]


def _prunes(facts: Facts, ops: list[ir.Operation]) -> bool:
    """Whether a constant of floats has slices of zeros, or one of small integers slices of one number (for zero)."""
    return any(_pruned(facts, op.results[0]) for op in ops if op.name in _CONSTANTS and is_tensor(op.results[0]))


def _pruned(facts: Facts, value: ir.Value) -> bool:
    element, count = ir.RankedTensorType(value.type).element_type, prod(shape_of(value))
    small = isinstance(element, ir.IntegerType) and 1 < element.width <= 8
    for axis in facts.of(value):
        if axis is None or axis.zero.all() or not (small or isinstance(element, ir.FloatType)):
            continue
        if (axis.known if small and count // len(axis.known) >= _SLICE else axis.zero).any():
            return True
    return False


def _work(op: ir.Operation) -> int:
    """Points of the loops of a reduction."""
    if op.name != "linalg.generic" or not any(kinds(op)):
        return 0
    return prod(extent(op, loop) or 1 for loop in range(len(kinds(op))))


def _gather(value: ir.Value, kept: list[np.ndarray]) -> ir.Value:
    """A constant's kept elements; behind it, to be computed at compile time."""
    sizes = [int(one.sum()) for one in kept]
    element = ir.RankedTensorType(value.type).element_type
    kind = ir.RankedTensorType.get(sizes, element)
    owner = value.owner.operation
    attribute = owner.attributes["value"] if owner.name == "arith.constant" else None
    with ir.InsertionPoint.after(owner), owner.location:
        if attribute is not None and ir.DenseElementsAttr(attribute).is_splat:
            splat = ir.DenseElementsAttr.get_splat(kind, ir.DenseElementsAttr(attribute).get_splat_value())
            return create("arith.constant", [], kind, {"value": splat})
        chosen = [d for d, one in enumerate(kept) if not one.all()]
        tables = [create_table(np.flatnonzero(kept[d]).astype(np.int64)) for d in chosen]
        return gathering(value, dict(zip(chosen, tables, strict=True)), {d: sizes[d] for d in chosen})


def _sized(kind: ir.Type, kept: list[np.ndarray]) -> ir.Type:
    """A type with the kept indices; sizes that are known at run time only stay."""
    old = ir.RankedTensorType(kind)
    sizes = [size if size < 0 else int(one.sum()) for size, one in zip(old.shape, kept, strict=True)]
    return ir.RankedTensorType.get(sizes, old.element_type, old.encoding)


def _rewindow(op: ir.Operation, axes: list[np.ndarray] | None, window: list[slice]) -> None:
    """Give a slice the place, in the kept indices of the larger tensor (None: all), and the sizes that it has now."""
    small, _ = small_and_large(op)
    offsets = [place.start for place in window]
    if axes is not None:
        offsets = [int(one[: place.start].sum()) for one, place in zip(axes, window, strict=True)]
    op.attributes["static_offsets"] = ir.DenseI64ArrayAttr.get(offsets)
    op.attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(list(shape_of(small)))


def _shrink(ops: list[ir.Operation], kept: Kept, apart: Apart) -> None:
    """Give all tensors the sizes of the indices that are kept."""
    windows = {op.results[0]: window_of(op) for op in ops if op.name in ("tensor.insert_slice", "tensor.extract_slice")}
    chosen = {value: axes for op in ops for value in op.results if is_tensor(value) and (axes := kept.axes(value))}
    made = {op.results[0]: loops for op in ops if (loops := apart.loops(op, kept)) is not None}
    for value, axes in {**chosen, **made}.items():
        if value.owner.operation.name in _CONSTANTS:
            uses = [(use.owner.operation, use.operand_number) for use in value.uses]
            new = _gather(value, axes)
            for user, number in uses:
                user.operands[number] = new
        else:
            value.set_type(_sized(value.type, axes))
    larger = {
        op.results[0]: chosen.get(small_and_large(op)[1]) for op in ops if op.results and op.results[0] in windows
    }
    apart.spread()
    for op in ops:
        if op.name == "tensor.expand_shape" and op.results[0] in chosen:
            op.attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(shape_of(op.results[0])))
        elif (window := windows.get(op.results[0]) if op.results else None) is not None:
            _rewindow(op, larger[op.results[0]], window)
    apart.gather()


def shrink(block: ir.Block, trials: int = 0) -> None:
    """Leave out what nothing in a block, and in those of loops and branches inside, needs; remarks tell what is left.

    What a block gets from outside, and what it yields, stays as it is.

    Args:
        block: of a function, a loop or a branch.
        trials: number of random trials that look for further slices of one number; 0: none. What they find is likely,
            but not proven.

    Raises:
        InternalError: a trial shows that a rule is wrong.
    """
    _shrink_block(block, trials)
    for op in _operations(block):
        for region in op.regions if op.name in _CONTROL else ():
            for inner in region.blocks:
                _bring_constants(inner)
                shrink(inner, trials)


def _bring_constants(block: ir.Block) -> None:
    """Give a block constants of its own, where one of those that it reads is pruned."""
    ops, facts = _operations(block), Facts()
    own = {value for op in ops for value in op.results}
    reads = [
        (op, number, made)
        for op in ops
        for number, value in enumerate(op.operands)
        if value not in own and is_tensor(value) and (made := maker(value)) is not None and made.name in _CONSTANTS
    ]
    for _, _, made in reads:
        facts.look_at(made)
    if not _prunes(facts, [made for _, _, made in reads]):
        return
    copies: dict[ir.Value, ir.Value] = {}
    for op, number, made in reads:
        if made.results[0] not in copies:
            copies[made.results[0]] = made.clone(ip=ir.InsertionPoint.at_block_begin(block)).results[0]
        op.operands[number] = copies[made.results[0]]


def _shrink_block(block: ir.Block, trials: int) -> None:
    ops, facts = _operations(block), Facts()
    for op in ops:
        if op.name in _CONSTANTS:
            facts.look_at(op)
    prunes = _prunes(facts, ops)
    if not prunes and not trials:
        return
    for op in ops:
        if op.name not in _CONSTANTS:
            facts.look_at(op)
    found = _tried(ops, facts, trials)
    if not prunes and not found.alone:
        return
    if found.alone:
        facts = Facts(found.axes)
        for op in ops:
            facts.look_at(op)
    kept = analysed(block, ops, facts)
    before = sum(map(_work, ops))
    _shrink(ops, kept, Apart(kept))
    left = sum(map(_work, ops))
    if left < before:
        part = f"{100 * left / before:.3g} %"
        remark(_last(ops), f"pruned weights: reductions keep {part} of {before} terms, the others change nothing")


def _tried(ops: list[ir.Operation], facts: Facts, trials: int) -> Found:
    """What random trials find; remarks tell of it, and of what they did not run."""
    if not trials or not any(map(is_tensor, (value for op in ops for value in op.results))):
        return Found()
    if has_open_sizes(ops):
        remark(ops[-1], "random trials: none here, since sizes are known at run time only")
        return Found()
    found = tried(ops, facts, trials)
    if found.alone:
        slices = "1 slice holds" if found.alone == 1 else f"{found.alone} slices hold"
        text = f"{slices} one number in all of {trials}, which no rule says: likely, but not proven"
        remark(ops[-1], f"random trials: {text}")
    if found.skipped:
        names = ", ".join(sorted({op.name for op in found.skipped}))
        text = f"{len(found.skipped)} of {len(ops)} operations not run ({names}): too large, or not to be interpreted"
        remark(found.skipped[0], f"random trials: {text}")
    return found


def _last(ops: list[ir.Operation]) -> ir.Operation:
    return next(op for op in reversed(ops) if _work(op))
