# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that write single elements, split among cores: each runs the iterations whose elements it has.

An index of a loop can be split where all that is written is read and written at this index along one dimension: no
iteration then needs what those with another one wrote. Each has to hand on what it was given, but for elements: one
that swaps two tensors, or begins with one from around the loop again, tells on all behind it. What is only read is
split likewise, or lies whole in each core. A truth to which each iteration adds its own (whether all places lie in a
tensor) is found by all cores together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.ir.generics import descendants, maker, terminator, uses
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import ELEMENT
from tilewright.targets.mesh.control.digits import Digit, digits_of

Axes = tuple[str, ...]
_PICK, _SELECT = "tensor.extract", "arith.select"
#: How truths of iterations become one, and how those of cores do.
FLAGS = {"arith.andi": "umin", "arith.ori": "umax"}


@dataclass(eq=False)
class Group:
    """Tensors that are one in memory, or may be.

    Attributes:
        accesses: indices of each element that is read or written.
        is_written: whether one of them is made by writing.
    """

    values: list[ir.Value] = field(default_factory=list)
    accesses: list[list[ir.Value]] = field(default_factory=list)
    is_written: bool = False

    @property
    def shape(self) -> list[int]:
        """Of each of them."""
        return list(ir.RankedTensorType(self.values[0].type).shape)

    def dim_of(self, digit: Digit) -> int | None:
        """The dimension along which an index alone chooses elements."""
        for dim, size in enumerate(self.shape):
            if size == digit.size and all(index[dim] in digit.values for index in self.accesses):
                return dim
        return None


class Shared:
    """What can be split of a loop.

    Attributes:
        digits: indices of its loops, in the order of `coremesh.loops`.
        groups: by value.
        flags: numbers of results that are truths of all iterations, with how two become one.
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op, self.digits = op, digits_of(op)
        self.groups = _groups(op)
        self._is_followed = all(map(_is_followed, descendants(op)))
        self.flags = {at: how for at in range(len(op.results)) if (how := _flag(op, at))}
        self._ways = [self._is_free(digit) for digit in self.digits]

    @property
    def sizes(self) -> list[int]:
        """Of indices that can be split."""
        return [digit.size for number, digit in enumerate(self.digits) if self.can_split(number)]

    def can_split(self, number: int) -> bool:
        """Whether an index can be split among cores."""
        return self._ways[number]

    def choose(self, lies: Mapping[ir.Value, Axes], side: int) -> list[str]:
        """The axis along each index: as what is written lies already, else those that split it most, the last first.

        Args:
            lies: how values on the grid lie.
            side: cores along each side of the grid.
        """
        open_ = [number for number, digit in enumerate(self.digits) if self.can_split(number) and digit.size > 1]
        chosen: dict[int, str] = {}
        for axis in ("y", "x"):
            like = next((number for number in open_ if self._lies(number, axis, lies)), None)
            if like is not None and like not in chosen:
                chosen[like] = axis
        rest = [number for number in open_ if number not in chosen]
        rest.sort(key=lambda number: (min(self.digits[number].size, side), number), reverse=True)
        free = [axis for axis in ("x", "y") if axis not in chosen.values()]
        if len(free) == 2 and len(rest) == 1:
            free = ["y"]  # as a vector lies
        chosen.update(zip(rest, free, strict=False))
        return [chosen.get(number, "") for number in range(len(self.digits))]

    def axes(self, value: ir.Value, loops: Sequence[str]) -> Axes:
        """How a tensor lies, with these axes along indices."""
        group = self.groups.get(value)
        rank = ir.RankedTensorType(value.type).rank
        axes = [""] * rank
        for digit, axis in zip(self.digits, loops, strict=True):
            dim = group.dim_of(digit) if group is not None and axis and group.accesses else None
            if dim is not None and axis not in axes:
                axes[dim] = axis
        return tuple(axes)

    def _lies(self, number: int, axis: str, lies: Mapping[ir.Value, Axes]) -> bool:
        for group in self._written():
            dim = group.dim_of(self.digits[number])
            if dim is not None and any(value in lies and lies[value][dim] == axis for value in group.values):
                return True
        return False

    def _written(self) -> list[Group]:
        found = {id(group): group for group in self.groups.values() if group.is_written}
        return list(found.values())

    def _is_free(self, digit: Digit) -> bool:
        """Whether iterations with another index than this one neither read nor write what those with it write."""
        written = self._written()
        if not self._is_followed or not written or any(group.dim_of(digit) is None for group in written):
            return False
        tensors = [at for at, one in enumerate(digit.loop.results) if isinstance(one.type, ir.RankedTensorType)]
        numbers = [at for at in range(len(digit.loop.results)) if at not in tensors]
        if not all(_hands_on(digit.loop, at) for at in tensors):
            return False
        return all(_flag(digit.loop, at) and self._leaves_by_flags(digit.loop, at) for at in numbers)

    def _leaves_by_flags(self, loop: ir.Operation, at: int) -> bool:
        """Whether a truth of a loop is one of all of the op, too, and is read by nothing else."""
        if loop == self.op:
            return True
        users = list(uses(loop.results[at]))
        if len(users) != 1 or users[0][0].name != "scf.yield":
            return False
        end, number = users[0]
        above = end.block.owner.operation
        return above.name == "scf.for" and bool(_flag(above, number)) and self._leaves_by_flags(above, number)


def _flag(loop: ir.Operation, at: int) -> str:
    """How a result of a loop gathers a truth of each iteration; empty where it is something else."""
    if loop.name != "scf.for" or str(loop.results[at].type) != "i1":
        return ""
    own = loop.regions[0].blocks[0].arguments[1 + at]
    readers = list(uses(own))
    made = maker(terminator(loop.regions[0]).operands[at])
    if made is None or len(readers) != 1 or readers[0][0] != made:
        return ""
    if made.name in FLAGS:
        return FLAGS[made.name] if len(list(uses(made.results[0]))) == 1 else ""
    inner = list(made.results).index(terminator(loop.regions[0]).operands[at])
    passes = made.name == "scf.for" and readers[0][1] == 3 + inner and len(list(uses(made.results[inner]))) == 1
    return _flag(made, inner) if passes else ""


def _is_followed(op: ir.Operation) -> bool:
    """Whether it is known which tensors an op makes one: elementwise arithmetic on tensors makes new ones."""
    if op.name.startswith("scf.") or op.name in (_PICK, ELEMENT, _SELECT, "tensor.empty"):
        return True
    return not any(isinstance(value.type, ir.RankedTensorType) for value in (*op.operands, *op.results))


def _hands_on(loop: ir.Operation, at: int) -> bool:
    """Whether each iteration hands on the tensor that it was given, but for elements."""
    root = _root(terminator(loop.regions[0]).operands[at], {})
    return root is not None and root == loop.regions[0].blocks[0].arguments[1 + at]


def _root(value: ir.Value, known: dict[ir.Value, ir.Value | None]) -> ir.Value | None:
    """The tensor that a value is but for elements which were written since; None where it may be one or another."""
    while (made := maker(value)) is not None and made.name == ELEMENT:
        value = made.operands[1]
    if made is None or not (made.name.startswith("scf.") or made.name == _SELECT):
        return value
    if value not in known:
        known[value] = _root_of(made, list(made.results).index(value), known)
    return known[value]


def _root_of(op: ir.Operation, at: int, known: dict[ir.Value, ir.Value | None]) -> ir.Value | None:
    """The root of a result of a loop or branch."""
    if op.name == "scf.for":
        return _root(op.operands[3 + at], known) if _hands_on(op, at) else None
    if op.name == "scf.while":
        tested, done = (list(region.blocks[0].arguments) for region in op.regions)
        root = _root(terminator(op.regions[0]).operands[1 + at], known)
        if root is None or root not in tested:
            return None
        place = tested.index(root)
        returned = _root(terminator(op.regions[1]).operands[place], known)
        is_same = returned is not None and returned == done[at]
        return _root(op.operands[place], known) if is_same else None
    ways = list(op.operands)[1:] if op.name == _SELECT else [terminator(one).operands[at] for one in op.regions]
    first, second = (_root(way, known) for way in ways)
    return first if first is not None and second is not None and first == second else None


def _groups(op: ir.Operation) -> dict[ir.Value, Group]:
    """The group of each tensor that an op has to do with."""
    groups: dict[ir.Value, Group] = {}

    def of(value: ir.Value) -> Group:
        if value not in groups:
            groups[value] = Group([value])
        return groups[value]

    for one in (op, *descendants(op)):
        for pair in _same(one):
            _join(groups, *map(of, pair))
    for one in (op, *descendants(op)):
        if one.name == _PICK:
            of(one.operands[0]).accesses.append(list(one.operands)[1:])
        if one.name == ELEMENT:
            of(one.operands[1]).accesses.append(list(one.operands)[2:])
            of(one.operands[1]).is_written = True
    return groups


def _join(groups: dict[ir.Value, Group], one: Group, other: Group) -> None:
    if one is other:
        return
    one.values += other.values
    groups.update(dict.fromkeys(other.values, one))


def _same(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Pairs of tensors that an op makes one."""
    for one, other in _pairs(op):
        if isinstance(one.type, ir.RankedTensorType):
            yield one, other


def _pairs(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value]]:
    if op.name == ELEMENT:
        yield op.operands[1], op.results[0]
    if op.name == _SELECT:
        yield from ((value, op.results[0]) for value in list(op.operands)[1:])
    ends = [terminator(region) for region in op.regions if len(region.blocks)] if op.name.startswith("scf.") else []
    if op.name == "scf.for":
        arguments = list(op.regions[0].blocks[0].arguments)[1:]
        for group in (list(op.operands)[3:], list(ends[0].operands), list(op.results)):
            yield from zip(arguments, group, strict=True)
    elif op.name == "scf.while":
        tested, done = (list(region.blocks[0].arguments) for region in op.regions)
        yield from zip(tested, op.operands, strict=True)
        yield from zip(tested, ends[1].operands, strict=True)
        yield from zip(list(ends[0].operands)[1:], done, strict=True)
        yield from zip(done, op.results, strict=True)
    else:
        for end in ends:
            yield from zip(op.results, end.operands, strict=False)
