# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-materialize-copies`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import ancestors, body, create, create_copy, maker, terminator, uses, walk
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_DESTINATION_STYLE = ("linalg.generic", "linalg.fill", "tensor.insert", "tensor.insert_slice", "scf.for")
#: What has no place of its own: bufferization finds one for it.
_ANYWHERE = (
    "scf.if",
    "scf.while",
    "arith.select",
    "tensor.cast",
    "tensor.generate",
    "tensor.from_elements",
    "tensor.pad",
)
#: What makes sizes that bufferization compares slices by at no cost.
_SIZES = (
    "affine.apply",
    "arith.addi",
    "arith.ceildivsi",
    "arith.constant",
    "arith.divsi",
    "arith.floordivsi",
    "arith.muli",
    "arith.subi",
    "tensor.dim",
)
_MOST_STEPS = 64  # of a size
_OFFSETS = ("static_offsets", "static_sizes", "static_strides")


@register
@dataclass(frozen=True)
class MaterializeCopies(Pass):
    """Make the copies explicit that slices, reshapes of slices, choices, and loops imply.

    A tensor put into a slice of another is copied there (of a run's size, too, unless that is a choice); the state of a
    loop is a tensor that only the loop writes, and each step writes the next state in the place of the old one. (An
    inner loop may write into the state of an outer one that nothing reads later.) Tensors that begin with the same
    parts each get these parts. Kernels take contiguous tensors: a slice that is not one run of memory is copied before
    it is seen in another shape, and a slice that is the result of a branch is copied there, since the other branch's
    result has another layout. As generics, these copies are planned and fused like other work; without them,
    bufferization would have to insert some.

    Before:
    ```mlir
    func.func @main(%x: tensor<4x8xf32>, %t: tensor<6x8xf32>) -> tensor<6x8xf32> {
      %r = tensor.insert_slice %x into %t[1, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<6x8xf32>
      return %r : tensor<6x8xf32>
    }
    ```
    After:
    ```mlir
    %s = tensor.extract_slice %t[1, 0] [4, 8] [1, 1] : tensor<6x8xf32> to tensor<4x8xf32>
    %c = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<4x8xf32>) outs(%s : tensor<4x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<4x8xf32>
    %r = tensor.insert_slice %c into %t[1, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<6x8xf32>
    ```
    """

    name: ClassVar[str] = "tile-materialize-copies"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Slices first: their copies may write loop states."""
        for insert in walk(op, "tensor.insert_slice"):
            _fill_slice(insert)
        for insert in walk(op, "tensor.insert_slice"):
            _own_parts(insert)
        for name in RESHAPES:
            for reshape in walk(op, name):
                _make_contiguous(reshape)
        for choice in walk(op, "scf.if"):
            for region in (r for r in choice.regions if len(r.blocks)):  # there may be no else
                _whole_results(terminator(region))
            _results_apart(choice)
        for choice in walk(op, "arith.select"):
            _whole_results(choice)
        for loop in walk(op, "scf.for"):
            _own_state(loop)
            _carry_in_place(loop)


def _destination(value: ir.Value) -> ir.Value | None:
    """The tensor in whose place `value` is made, or None."""
    made = maker(value)
    if made is None or made.name not in _DESTINATION_STYLE:
        return None
    number = list(made.results).index(value)
    if made.name in ("tensor.insert", "tensor.insert_slice"):
        return made.operands[1]
    if made.name == "scf.for":
        return made.operands[3 + number]
    return made.operands[len(made.operands) - len(made.results) + number]


def _is_static(value: ir.Value) -> bool:
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and kind.has_static_shape


def _fill_slice(insert: ir.Operation) -> None:
    _drop_ones(insert)
    source, target = insert.operands[0], insert.operands[1]
    if not _is_static(source) and not all(_is_plain_size(value) for value in list(insert.operands)[2:]):
        return
    place = _destination(source)
    if place is not None and _is_slice_for(place, insert):
        return
    rest = list(insert.operands)[2:]
    segments = list(ir.DenseI32ArrayAttr(insert.attributes["operandSegmentSizes"]))
    attributes = {name: insert.attributes[name] for name in _OFFSETS}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, *segments[2:]])
    with insert.location, ir.InsertionPoint(insert):
        piece = create("tensor.extract_slice", [target, *rest], source.type, attributes)
        insert.operands[0] = create_copy(source, piece)


def _is_plain_size(size: ir.Value) -> bool:
    """Whether a size follows from the inputs' by a few sums and products.

    Not by choices: of two slices whose sizes are chosen (what Reshape is asked to have, where a tensor says it),
    bufferization compares each choice on the way with every other one, which takes minutes.
    """
    front, steps = [size], 0
    while front:
        made, steps = maker(front.pop()), steps + 1
        if made is None or made.name == "tensor.dim":
            continue
        if made.name not in _SIZES or steps > _MOST_STEPS:
            return False
        front.extend(made.operands)
    return True


def _drop_ones(insert: ir.Operation) -> None:
    """Insert a tensor as it was before dimensions of 1 were added: its maker can then write into the slice."""
    made = maker(insert.operands[0])
    if made is None or made.name != "tensor.expand_shape" or not _is_static(made.operands[0]):
        return
    plain, expanded = (ir.RankedTensorType(value.type).shape for value in (made.operands[0], made.results[0]))
    if [size for size in plain if size != 1] != [size for size in expanded if size != 1]:
        return
    insert.operands[0] = made.operands[0]
    if not any(True for _ in uses(made.results[0])):
        made.erase()


def _own_parts(insert: ir.Operation) -> None:
    """Copy the first parts of a tensor again where another tensor begins with the same ones: each is made in one place.

    Bufferization would copy the whole tensor where the two part, elements that nothing has written yet included.
    """
    parts, target = [], insert.operands[1]
    made = maker(target)
    while made is not None and made.name == "tensor.insert_slice" and _is_copied(made):
        parts.append(made)
        made = maker(made.operands[1])
    source, cut = maker(insert.operands[0]), _cut_of(insert)
    if source is None or cut is None or not parts or made is None or made.name != "tensor.empty":
        return
    if all(user in (insert, cut) for user, _ in uses(target)):
        return
    with insert.location, ir.InsertionPoint(source):
        value = create("tensor.empty", list(made.operands), target.type)
        for part in reversed(parts):
            value = _put_again(part, value)
        own = cut.clone()
    own.operands[0] = insert.operands[1] = value
    for number, operand in enumerate(source.operands):
        if operand == cut.results[0]:
            source.operands[number] = own.results[0]
    if not any(True for _ in uses(cut.results[0])):
        cut.erase()


def _cut_of(insert: ir.Operation) -> ir.Operation | None:
    """The slice of the target that what is inserted is made in."""
    place = _destination(insert.operands[0])
    return maker(place) if place is not None and _is_slice_for(place, insert) else None


def _is_copied(insert: ir.Operation) -> bool:
    """Whether the part that is inserted is copied, or filled, in its place: that is no work to do twice."""
    source = maker(insert.operands[0])
    if source is None or _cut_of(insert) is None:
        return False
    return source.name == "linalg.fill" or (source.name == "linalg.generic" and len(body(source).operations) == 1)


def _put_again(insert: ir.Operation, target: ir.Value) -> ir.Value:
    """Another tensor with a part inserted, at the current insertion point."""
    source, cut = maker(insert.operands[0]), _cut_of(insert)
    assert source is not None and cut is not None
    piece, copied, inserted = cut.clone(), source.clone(), insert.clone()
    piece.operands[0] = target
    copied.operands[len(copied.operands) - 1] = piece.results[0]
    inserted.operands[0], inserted.operands[1] = copied.results[0], target
    return inserted.results[0]


def _make_contiguous(reshape: ir.Operation) -> None:
    """Copy the slice that is reshaped, where its elements do not follow each other in memory."""
    source = reshape.operands[0]
    made = maker(source)
    if made is None or made.name != "tensor.extract_slice" or not _is_static(source) or _is_contiguous(made):
        return
    _copy_operand(reshape, 0)


def _copy_operand(op: ir.Operation, number: int) -> None:
    """Let an op read a copy, in a tensor of its own."""
    value = op.operands[number]
    with op.location, ir.InsertionPoint(op):
        op.operands[number] = create_copy(value, create("tensor.empty", [], value.type))


def _is_contiguous(cut: ir.Operation) -> bool:
    """Whether a slice is one run of memory: whole in all dimensions behind the first that is larger than 1."""
    if not _is_static(cut.operands[0]):
        return False
    whole = ir.RankedTensorType(cut.operands[0].type).shape
    sizes, strides = (list(ir.DenseI64ArrayAttr(cut.attributes[name])) for name in _OFFSETS[1:])
    first = next((d for d, n in enumerate(sizes) if n != 1), len(sizes))
    return all(sizes[d] == whole[d] for d in range(first + 1, len(sizes))) and all(s == 1 for s in strides)


def _is_slice_for(place: ir.Value, insert: ir.Operation) -> bool:
    made = maker(place)
    if made is None or made.name != "tensor.extract_slice" or made.operands[0] != insert.operands[1]:
        return False
    same = all(made.attributes[name] == insert.attributes[name] for name in _OFFSETS)
    return same and list(made.operands)[1:] == list(insert.operands)[2:]


def _own_state(loop: ir.Operation) -> None:
    """Give each initial state a tensor of its own, unless the loop may overwrite it: nothing else reads it later."""
    for number in range(3, len(loop.operands)):
        value = loop.operands[number]
        if not _is_static(value):
            continue
        made = maker(value)
        fresh = made is not None and made.name in (*_DESTINATION_STYLE, "tensor.empty")
        if fresh and len(list(uses(value))) == 1:
            continue
        if _may_overwrite(loop, number):
            continue
        with loop.location, ir.InsertionPoint(loop):
            kind = ir.RankedTensorType(value.type)
            empty = create("tensor.empty", [], kind)
            is_empty = made is not None and made.name == "tensor.empty"
            loop.operands[number] = empty if is_empty else create_copy(value, empty)


def _may_overwrite(loop: ir.Operation, number: int) -> bool:
    """Whether a loop's steps may write into what it starts from: its maker's, or a loop's state, which ends there."""
    value, state = loop.operands[number], loop.regions[0].blocks[0].arguments[number - 2]
    made = maker(value)
    if made is None:
        owner = ir.BlockArgument(value).owner.owner
        owned = owner is not None and owner.name in ("scf.for", "scf.while")
    else:
        owned = made.name in _DESTINATION_STYLE
    if not owned or not _leads_to(terminator(loop.regions[0]).operands[number - 3], state):
        return False
    return all(user == loop and at == number or _is_read_before(user, at, loop) for user, at in uses(value))


def _is_read_before(user: ir.Operation, number: int, loop: ir.Operation) -> bool:
    """Whether an operation only reads an operand, and is over when a loop begins."""
    inputs = len(user.operands) - len(user.results) if user.name == "linalg.generic" else 1
    if user.name not in ("tensor.extract", "tensor.dim", "linalg.generic") or number >= inputs:
        return False
    here = _within(user, loop.block)
    return here is not None and here.is_before_in_block(loop)


def _within(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The operation of a block that is or holds another one."""
    return next((here for here in (op, *ancestors(op)) if here.block == block), None)


def _whole_results(choice: ir.Operation) -> None:
    """Copy slices that are one of the results to choose from: the others have another layout."""
    for number, value in enumerate(choice.operands):
        if _is_static(value) and _is_part(value):
            _copy_operand(choice, number)


def _results_apart(choice: ir.Operation) -> None:
    """Copy what two results of a branch in a loop would share, and one of two tensors from before that are one result.

    To bufferization a result is the tensors of both sides at once, and so are, then, the states that these are: none
    of them could be overwritten while another one is read.
    """
    if len(choice.regions) != 2 or not len(choice.regions[1].blocks) or not _is_in_loop(choice):
        return
    ends = [terminator(region) for region in choice.regions]
    taken: list[ir.Value] = []
    for number in range(len(choice.results)):
        if not _is_static(choice.results[number]):
            continue
        roots = [_root(end.operands[number]) for end in ends]
        if roots[0] == roots[1] and roots[0] not in taken:
            taken.append(roots[0])
            continue
        several = all(_is_before(root, choice) for root in roots)
        for end, root, other in zip(ends, roots, (False, several), strict=True):
            if root in taken or other:
                _copy_operand(end, number)
            else:
                taken.append(root)


def _root(value: ir.Value) -> ir.Value:
    """The tensor whose place another one has, in another shape or overwritten; one that is made anew itself."""
    while (made := maker(value)) is not None:
        reshaped = made.name in (*RESHAPES, "tensor.cast")
        place = made.operands[0] if reshaped else _destination(value)
        source = None if place is None else maker(place)
        if place is None or (source is not None and source.name == "tensor.empty"):
            break
        value = place
    return value


def _is_before(value: ir.Value, choice: ir.Operation) -> bool:
    """Whether a tensor is there before a branch begins."""
    block = ir.BlockArgument(value).owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block
    return _within(choice, block) is not None


def _is_in_loop(op: ir.Operation) -> bool:
    return any(above.name in ("scf.for", "scf.while") for above in ancestors(op))


def _is_part(value: ir.Value) -> bool:
    """Whether a tensor is a slice, seen in another shape or not."""
    made = maker(value)
    while made is not None and made.name in (*RESHAPES, "tensor.cast"):
        made = maker(made.operands[0])
    return made is not None and made.name == "tensor.extract_slice"


def _carry_in_place(loop: ir.Operation) -> None:
    block, end = loop.regions[0].blocks[0], terminator(loop.regions[0])
    for number in range(len(end.operands)):
        value, state = end.operands[number], block.arguments[number + 1]
        if _is_static(value) and not _leads_to(value, state) and not _is_made_in(value, block):
            with loop.location, ir.InsertionPoint(end):
                end.operands[number] = create_copy(value, state)


def _is_made_in(value: ir.Value, block: ir.Block) -> bool:
    """Whether it is made in a tensor of the iteration's own: buffers change places (`tile-ping-pong-buffers`)."""
    made = maker(value)
    place = _destination(value) if made is not None and made.name == "linalg.generic" else None
    empty = None if place is None else maker(place)
    return made is not None and made.block == block and empty is not None and empty.name == "tensor.empty"


def _leads_to(value: ir.Value, state: ir.Value) -> bool:
    """Whether a chain of destinations goes from `value` to the loop's argument `state`, or may do so."""
    place: ir.Value | None = value
    while place is not None and place != state:
        made = maker(place)
        if made is not None and made.name in _ANYWHERE:
            return True
        place = _destination(place)
    return place is not None
