# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches whose values stay on the grid: which of them do, and how these lie.

A loop is a sequence of programs that the host starts; what goes from one iteration to the next lies on the cores. How
often it runs, and where it branches, the host decides by numbers that it has or collects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.ir.constants import trip_count
from tilewright.ir.generics import ancestors, maker
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import CARRIED, OUTSIDE, texts
from tilewright.targets.mesh.computations import KINDS, computation

Axes = tuple[str, ...]

#: Ops that decide what runs.
CONTROL = ("scf.for", "scf.while", "scf.if")
_SLICES = ("tensor.extract_slice", "tensor.insert_slice")
#: Ops that read what lies on the grid there, or hand it on.
READERS = (
    *CONTROL,
    *_SLICES,
    *RESHAPES,
    "linalg.generic",
    "sparse_tile.matmul",
    *("scf.yield", "scf.condition", "func.return"),
)


@dataclass(frozen=True, eq=False)
class Carried:
    """Values of a loop or branch that are one after the other in the same place, and thus of one type.

    Attributes:
        values: arguments of blocks, and results.
        feeds: ops, and numbers of their operands, that these come from.
    """

    values: tuple[ir.Value, ...]
    feeds: tuple[tuple[ir.Operation, int], ...]

    @property
    def type(self) -> ir.Type:
        """The type of all of them."""
        return self.values[0].type


def carried(op: ir.Operation) -> list[Carried]:
    """What goes round in a loop, or comes out of a branch; nothing for another op."""
    if op.name not in CONTROL:
        return []
    blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
    ends = [_end(block) for block in blocks]
    if op.name == "scf.for":
        arguments = list(blocks[0].arguments)[1:]
        pairs = zip(arguments, op.results, strict=True)
        return [Carried(pair, ((op, 3 + at), (ends[0], at))) for at, pair in enumerate(pairs)]
    if op.name == "scf.while":
        tested, done = blocks
        first = [Carried((one,), ((op, at), (ends[1], at))) for at, one in enumerate(tested.arguments)]
        pairs = zip(done.arguments, op.results, strict=True)
        return first + [Carried(pair, ((ends[0], 1 + at),)) for at, pair in enumerate(pairs)]
    return [Carried((one,), tuple((end, at) for end in ends)) for at, one in enumerate(op.results)]


def plan_axes(op: ir.Operation) -> list[Axes | None] | None:
    """How each of what a loop carries lies on the grid; None for what stays outside, and for a loop that does."""
    groups = carried(op)
    if not _computes(op):
        return None
    found = [_axes(group) for group in groups]
    return found if any(axes is not None for axes in found) else None


def write_axes(op: ir.Operation, found: Sequence[Axes | None]) -> None:
    """Note a decision on the op."""
    parts = [ir.UnitAttr.get() if axes is None else texts(list(axes)) for axes in found]
    op.attributes[CARRIED] = ir.ArrayAttr.get(parts)


def read_axes(op: ir.Operation) -> list[Axes | None]:
    """The decision of an op."""
    parts = ir.ArrayAttr(op.attributes[CARRIED])
    return [_texts(part) if isinstance(part, ir.ArrayAttr) else None for part in parts]


def default_axes(shape: Sequence[int], whole: set[int]) -> Axes:
    """The last dimensions of more than one element along y and x, but no `whole` one; a single one along y."""
    axes = [""] * len(shape)
    open_ = [dim for dim, size in enumerate(shape) if size > 1 and dim not in whole]
    for dim, axis in zip(reversed(open_), ("x", "y") if len(open_) > 1 else ("y",), strict=False):
        axes[dim] = axis
    return tuple(axes)


def picked(op: ir.Operation) -> set[int]:
    """Dimensions of the large tensor of a slice op of which a run says where the part lies."""
    dynamic = ir.ShapedType.get_dynamic_size()  # of offsets, too
    offsets = list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))
    return {dim for dim, offset in enumerate(offsets) if offset == dynamic}


def picked_of(group: Carried) -> set[int]:
    """Dimensions of what is carried of which a run says which part is read or written."""
    whole: set[int] = set()
    for value in group.values:
        for user, number in _users(value):
            if user.name in _SLICES and number == (user.name == "tensor.insert_slice"):
                whole |= picked(user)
            if user.name not in READERS:  # a body picks elements
                whole |= set(range(ir.RankedTensorType(value.type).rank - 1))
    return whole


def kept_dims(sizes: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Which dimensions a slice keeps, as MLIR has it: one of size 1 is dropped where its type goes on with another."""
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        if len(kept) < len(shape) and shape[len(kept)] == size:
            kept.append(dim)
    return tuple(kept)


def slice_dims(op: ir.Operation) -> tuple[int, ...]:
    """Which dimensions of its source a `tensor.extract_slice` keeps."""
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    return kept_dims(sizes, ir.RankedTensorType(op.results[0].type).shape)


def in_order(block: ir.Block) -> list[ir.Operation]:
    """All ops of a block in the order of the text, with those of loops and branches behind these."""
    found = []
    for view in block.operations:
        op = view.operation
        found.append(op)
        if op.name in CONTROL:
            found += [inner for region in op.regions for one in region.blocks for inner in in_order(one)]
    return found


def repeats(op: ir.Operation) -> tuple[int, bool]:
    """How often an op runs in a call, and whether this is known: loops of which a run knows count once."""
    times, known = 1, True
    for above in ancestors(op):
        if above.name == "scf.for":
            count = trip_count(above)
            times, known = times * (1 if count is None else count), known and count is not None
        known = known and above.name not in ("scf.while", "scf.if")
    return times, known


def _texts(attribute: ir.Attribute) -> Axes:
    return tuple(ir.StringAttr(axis).value for axis in ir.ArrayAttr(attribute))


def _axes(group: Carried) -> Axes | None:
    kind = group.type
    if any(user.name == "tensor.insert_slice" and OUTSIDE in user.attributes for user in _makers(group)):
        return None  # it is put together outside
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape or 0 in kind.shape:
        return None
    if str(kind.element_type) not in KINDS or kind.rank == 0:
        return None
    for value in group.values:
        for user, _ in _users(value):
            if user.name not in READERS and user.parent.operation.name != "linalg.generic":
                return None
    return default_axes(kind.shape, picked_of(group))


def _makers(group: Carried) -> list[ir.Operation]:
    """The ops that make what is carried."""
    made = [maker(user.operands[number]) for user, number in group.feeds]
    return [op for op in made if op is not None]


def _users(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Those of a value, and of what it is called in loops inside."""
    for use in value.uses:
        user = use.owner.operation
        yield user, use.operand_number
        for group in carried(user):
            if (user, use.operand_number) in group.feeds:
                yield from _users(group.values[0])


def _computes(op: ir.Operation) -> bool:
    """Whether something inside can be done by collectives."""
    found = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name == "linalg.generic" and not isinstance(computation(inner), str):
            found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return bool(found)


def _end(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation
