# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of loops that write single elements: copies of these on blocks of tensors, with the iterations of a core."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.errors import UserError
from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create, create_number, descendants, operations_of, terminator, uses
from tilewright.mlir import ir
from tilewright.plan.mesh.collectives.regions import renamed
from tilewright.sim.coremesh.combinations import Combine
from tilewright.targets.mesh.attributes import ELEMENT, LOOPS
from tilewright.targets.mesh.control.digits import Digit, counted_anew, without_counting
from tilewright.targets.mesh.control.shared_loops import Axes, Shared
from tilewright.targets.mesh.control.single_elements import Around, listed
from tilewright.targets.mesh.placement import Placement, laid_type
from tilewright.targets.mesh.reductions import allreduced

_PICK = "tensor.extract"


def on_cores(op: ir.Operation, shared: Shared, around: Around, loops: Sequence[str], placement: Placement) -> None:
    """Let cores run a loop; its results lie on them, numbers go to the host.

    Args:
        loops: the axis along each index of it.
    """
    made = _Program(op, shared, around, loops, placement).make()
    for number, (old, new) in enumerate(zip(op.results, made, strict=True)):
        if isinstance(old.type, ir.RankedTensorType):
            placement.made(old, new)
        else:
            how = shared.flags[number] if any(loops) and number in shared.flags else None
            old.replace_all_uses_with(_number(new, old.type, how, placement))


class _Program:
    """One program of all cores.

    Attributes:
        split: indices that an axis splits, with that.
    """

    def __init__(
        self, op: ir.Operation, shared: Shared, around: Around, loops: Sequence[str], placement: Placement
    ) -> None:
        self.op, self.shared, self.around, self.loops, self.placement = op, shared, around, loops, placement
        self.split = {digit: axis for digit, axis in zip(shared.digits, loops, strict=True) if axis}

    def make(self) -> list[ir.Value]:
        """The results on the grid; of numbers a tensor of one, of truths that cores gather one of each core."""
        place = self.placement
        starts = [place.starts(axis, digit.size) for digit, axis in self.split.items()]
        inputs = [place.laid(value, self._axes(value)) for value in self.around.tensors]
        inputs += [*map(place.number, self.around.numbers), *starts]
        results = [self._result(number) for number in range(len(self.op.results))]
        made = ir.Operation.create("coremesh.local", results=results, operands=inputs, regions=1)
        block = ir.Block.create_at_start(made.regions[0], [block_type(value.type) for value in inputs])
        with ir.InsertionPoint(block):
            ir.Operation.create("coremesh.yield", operands=self._copied(list(block.arguments)))
        return list(made.results)

    def _axes(self, value: ir.Value) -> Axes:
        return self.shared.axes(value, self.loops)

    def _is_gathered(self, number: int) -> bool:
        return bool(self.split) and number in self.shared.flags

    def _result(self, number: int) -> ir.Type:
        value, side = self.op.results[number], self.placement.side
        if self._is_gathered(number):
            return laid_type(ir.RankedTensorType.get([1, side, side], value.type), ("", "y", "x"), side)
        kind = listed(value)
        return laid_type(kind, self._axes(value) if kind == value.type else ("",), side)

    def _copied(self, arguments: list[ir.Value]) -> list[ir.Value]:
        """A copy of the loop that reads a core's blocks; its results, each as a tensor."""
        tensors, numbers = len(self.around.tensors), len(self.around.numbers)
        known = dict(zip(self.around.tensors, arguments, strict=False))
        for value, block in zip(self.around.numbers, arguments[tensors : tensors + numbers], strict=True):
            known[value] = _element(block, value.type)
        blocks = arguments[tensors + numbers :]
        starts = {digit: _element(block, ir.IndexType.get()) for digit, block in zip(self.split, blocks, strict=True)}
        for one in self.around.made:
            copy = renamed(one.clone(), known)
            known.update(zip(one.results, copy.results, strict=True))
            self._retype(one.results, copy.results)
            if one.name == "linalg.fill":
                with ir.InsertionPoint(copy):
                    copy.operands[1] = create("tensor.empty", [], copy.results[0].type)
        copy = renamed(self.op.clone(), known)
        for attribute in [name for name in copy.attributes if name.startswith("coremesh.")]:
            del copy.attributes[attribute]
        if self.split:
            self._share(copy, starts)
        return [
            _as_tensor(value, [1, 1, 1] if self._is_gathered(number) else [1])
            for number, value in enumerate(copy.results)
        ]

    def _retype(self, old: Sequence[ir.Value], new: Sequence[ir.Value]) -> None:
        """Tensors as the blocks that a core has of them."""
        for before, after in zip(old, new, strict=True):
            if isinstance(before.type, ir.RankedTensorType):
                after.set_type(block_type(laid_type(before.type, self._axes(before), self.placement.side)))

    def _share(self, copy: ir.Operation, starts: dict[Digit, ir.Value]) -> None:
        """Leave a core its own iterations."""
        twins: dict[ir.Operation, ir.Operation] = {}
        for one, other in zip((self.op, *descendants(self.op)), (copy, *descendants(copy)), strict=True):
            twins[one] = other
            self._retype(one.results, other.results)
            for region, twin in zip(one.regions, other.regions, strict=True):
                for block, same in zip(region.blocks, twin.blocks, strict=True):
                    self._retype(block.arguments, same.arguments)
        for loop in dict.fromkeys(digit.loop for digit in self.split):
            self._count(loop, twins, starts)

    def _count(
        self, loop: ir.Operation, twins: dict[ir.Operation, ir.Operation], starts: dict[Digit, ir.Value]
    ) -> None:
        """Let a loop count a core's own indices; what lies beyond the tensors is left out."""
        side, copy = self.placement.side, twins[loop]
        digits = [digit for digit in self.shared.digits if digit.loop == loop]
        sizes = [-(-digit.size // side) if digit in self.split else digit.size for digit in digits]
        old = operations_of(copy.regions[0].blocks[0])
        indices = counted_anew(copy, sizes)
        inside: ir.Value | None = None
        with ir.InsertionPoint(old[0]):
            for digit, size, here in zip(digits, sizes, indices, strict=True):
                whole = here
                if digit in self.split:
                    whole = create("arith.addi", [starts[digit], here], here.type)
                if size * side > digit.size and digit in self.split:
                    inside = _both(inside, _less(whole, digit.size))
                self._replace(digit, here, whole, twins)
        old = without_counting(old)
        if inside is not None:
            _guard(copy, old, inside)

    def _replace(self, digit: Digit, here: ir.Value, whole: ir.Value, twins: dict[ir.Operation, ir.Operation]) -> None:
        """Where an index chooses elements of a core's block, it counts these; else it is that of the whole tensor."""
        for value in digit.values:
            for user, number in uses(value):
                twins[user].operands[number] = here if self._is_place(digit, user, number) else whole

    def _is_place(self, digit: Digit, user: ir.Operation, number: int) -> bool:
        first = {_PICK: 1, ELEMENT: 2}.get(user.name, 0)
        if not first or number < first or digit not in self.split:
            return False
        return self._axes(user.operands[first - 1])[number - first] == self.split[digit]


def _less(value: ir.Value, than: int) -> ir.Value:
    less = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 2)}
    operands = [value, create_number(than, value.type)]
    return create("arith.cmpi", operands, ir.IntegerType.get_signless(1), less)


def _both(one: ir.Value | None, other: ir.Value) -> ir.Value:
    return other if one is None else create("arith.andi", [one, other], other.type)


def _guard(loop: ir.Operation, inner: Sequence[ir.Operation], holds: ir.Value) -> None:
    """Let what a loop does happen where a truth holds; else what it carries stays."""
    *steps, end = inner
    made = list(end.operands)
    with ir.InsertionPoint(end):
        branch = ir.Operation.create("scf.if", results=[one.type for one in made], operands=[holds], regions=2)
    carried = list(loop.regions[0].blocks[0].arguments)[1:]
    for region, values in zip(branch.regions, (made, carried), strict=True):
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            ir.Operation.create("scf.yield", operands=values)
    last = terminator(branch.regions[0])
    for step in steps:
        step.move_before(last)
    for number, value in enumerate(branch.results):
        end.operands[number] = value


def _as_tensor(value: ir.Value, shape: list[int]) -> ir.Value:
    if isinstance(value.type, ir.RankedTensorType):
        return value
    kind = listed(value)
    if isinstance(value.type, ir.IndexType):
        value = create("arith.index_cast", [value], kind.element_type)
    return create("tensor.from_elements", [value], ir.RankedTensorType.get(shape, kind.element_type))


def _number(laid: ir.Value, kind: ir.Type, how: Combine | None, placement: Placement) -> ir.Value:
    """A number that cores have made, for the host; where each has its own, these as one."""
    if how is not None:
        laid = allreduced(allreduced(laid, 2, how, placement), 1, how, placement)
    plain = ir.RankedTensorType(laid.type)
    whole = create("coremesh.assemble", [laid], ir.RankedTensorType.get(plain.shape, plain.element_type))
    return _element(whole, kind)


def _element(listed_: ir.Value, kind: ir.Type) -> ir.Value:
    """The only element of a tensor."""
    zero = create_number(0, ir.IndexType.get())
    element = create("tensor.extract", [listed_, zero], ir.RankedTensorType(listed_.type).element_type)
    return element if element.type == kind else create("arith.index_cast", [element], kind)


def loops_of(op: ir.Operation, shared: Shared) -> list[str]:
    """The axis along each index of a loop, as `coremesh.loops` has it; none where that is not there.

    Raises:
        UserError: it does not fit the loop.
    """
    if LOOPS not in op.attributes:
        return [""] * len(shared.digits)
    loops = [ir.StringAttr(axis).value for axis in ir.ArrayAttr(op.attributes[LOOPS])]
    if len(loops) != len(shared.digits):
        raise UserError(
            f"{LOOPS} has {len(loops)} entries on loops that count {len(shared.digits)} indices; one for each"
        )
    used = [axis for axis in loops if axis]
    if len(set(used)) < len(used) or not {*used} <= {"y", "x"}:
        raise UserError(f'{LOOPS} is {op.attributes[LOOPS]}: each of "y", "x" stands there once at most')
    for number, (digit, axis) in enumerate(zip(shared.digits, loops, strict=True)):
        if axis and not shared.can_split(number):
            raise UserError(
                f"{LOOPS} splits index {number} (0 to {digit.size - 1}), but iterations with another one may read or "
                'write the same elements; write "" there'
            )
    return loops
