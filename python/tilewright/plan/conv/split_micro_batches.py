# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-split-micro-batches`.

A launch runs over a whole batch before the next one begins. Where the tensors of all images outgrow the caches, each
launch reads from far what the one before has just written, and tasks that pass over an image several times (once for
each panel of weights) find it in no near cache either. Images that run one after the other keep them there, at the
price of weights that are read once per round: layers of few channels over many places gain; the last ones, of many
channels over few places, do not, and stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir.generics import body, create, create_copy, is_copy, kinds, loops_of, maker, maps, uses
from tilewright.ir.structure import Weights
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register
from tilewright.plan.model.traffic import tensor_bytes

#: Part of the largest cache that a tensor of the whole batch must exceed, for the rest serves other tensors and cores.
_OUTGROWN = 1 / 4
#: Part of it that the largest tensor of the images of a round may take.
_ROUND = 1 / 8
#: Rows of a round whose multiply-adds with a weight take as long as its way from memory.
_HIDING_ROWS = 16
_FREE = ("tensor.empty", "linalg.fill")
_SLICES = ("tensor.extract_slice", "tensor.insert_slice")


def _leads(value: ir.Value, images: int) -> bool:
    """Whether a tensor of known sizes has one part for each image, one after the other."""
    kind = value.type
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape or kind.rank < 2:
        return False
    return kind.shape[0] == images


def _batch_loop(op: ir.Operation) -> int | None:
    """The loop of a generic along the first dimension of its result; None where its body asks for the index."""
    first = maps(op)[-1].results[0]
    if len(op.results) != 1 or not isinstance(first, ir.AffineDimExpr):
        return None
    loop = first.position
    for inner in body(op).operations:
        name = inner.operation.name
        if name == "tensor.extract" or (
            name == "linalg.index" and ir.IntegerAttr(inner.operation.attributes["dim"]).value == loop
        ):
            return None
    return loop


@dataclass
class _Segment:
    """Operations at the begin of a function that work on each image of a batch by itself, in order."""

    images: int
    weights: Weights
    ops: list[ir.Operation] = field(default_factory=list)
    made: set[ir.Value] = field(default_factory=set)
    #: those of them that hold nothing of a run
    free: set[ir.Value] = field(default_factory=set)

    def collect(self, block: ir.Block) -> None:
        """Take operations up to the first one that needs several images of what these make."""
        for op in block.operations:
            operation = op.operation
            if self._takes(operation):
                self.ops.append(operation)
                self.made.add(operation.results[0])
                if operation.name in _FREE:
                    self.free.add(operation.results[0])
            elif any(value in self.made and value not in self.free for value in _needed(operation)):
                return

    def batched(self, op: ir.Operation) -> list[int]:
        """The operands of which an image is a part; others are the same for all."""
        if op.name == "tensor.empty":
            return []
        if op.name == "linalg.fill":
            return [1]
        if op.name != "linalg.generic":
            return [*range(2 if op.name == "tensor.insert_slice" else 1)]
        loop = _batch_loop(op)
        return [n for n, access in enumerate(maps(op)) if any(loop in loops_of(e) for e in access.results)]

    def _takes(self, op: ir.Operation) -> bool:
        if len(op.results) != 1 or not _leads(op.results[0], self.images) or self.weights.only(op.results[0]):
            return False
        if op.name == "tensor.empty":
            return True
        if op.name == "linalg.fill":
            return op.operands[1] in self.made
        if op.name in _SLICES:
            return self._cuts_images(op)
        if op.name in RESHAPES:
            first = ir.ArrayAttr(ir.ArrayAttr(op.attributes["reassociation"])[0])
            return len(first) == 1 and len(op.operands) == 1 and _leads(op.operands[0], self.images)
        return op.name == "linalg.generic" and self._is_parallel(op)

    def _cuts_images(self, op: ir.Operation) -> bool:
        """Whether a slice is one of each image."""
        count = 1 if op.name == "tensor.extract_slice" else 2
        if len(op.operands) != count or not all(_leads(value, self.images) for value in op.operands):
            return False
        offset, size, step = (
            list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))[0] for name in ("offsets", "sizes", "strides")
        )
        ranks = {ir.RankedTensorType(v.type).rank for v in (*op.operands, op.results[0])}
        return (offset, size, step) == (0, self.images, 1) and len(ranks) == 1

    def _is_parallel(self, op: ir.Operation) -> bool:
        loop = _batch_loop(op)
        if loop is None or kinds(op)[loop]:
            return False
        batched = self.batched(op)
        for number, access in enumerate(maps(op)):
            value = op.operands[number]
            if number not in batched:
                if value in self.made and value not in self.free:
                    return False
                continue
            first, *others = access.results
            if not isinstance(first, ir.AffineDimExpr) or not _leads(value, self.images):
                return False
            if any(loop in loops_of(e) for e in others):
                return False
        return True

    # --- how far -----------------------------------------------------------------------------------------------

    def cut(self, l3_bytes: int) -> bool:
        """Keep the operations that gain together; False where too little is moved for that.

        Tasks of sums over windows share no rows with what makes their input, so all of it is written before it is read.
        """
        rounds = self.images // self.round_size(l3_bytes)
        total = best = 0.0
        end = windows = 0
        for at, op in enumerate(self.ops):
            if op.name != "linalg.generic" or not any(kinds(op)):
                continue
            total -= self._read_again(op, rounds)
            if self._has_window(op):
                windows += 1
                total += sum(tensor_bytes(op.operands[n]) for n in self.batched(op))
            if windows > 1 and total > best:
                best, end = total, at + 1
        end = self._with_followers(end)
        for op in self.ops[end:]:
            self.made.discard(op.results[0])
        self.ops = self.ops[:end]
        return self._largest() > l3_bytes * _OUTGROWN

    def _has_window(self, op: ir.Operation) -> bool:
        return not all(maps(op)[n].is_projected_permutation for n in self.batched(op))

    def _read_again(self, op: ir.Operation, rounds: int) -> float:
        """Bytes that all micro-batches read, those of the first apart, where many rows do not hide them."""
        access = maps(op)
        shape = ir.RankedTensorType(op.results[0].type).shape
        loops = [loops_of(e) for e in access[-1].results]
        total, batched = 0.0, self.batched(op)
        for number, value in enumerate(op.operands):
            if number in batched or not isinstance(value.type, ir.RankedTensorType):
                continue
            own = frozenset().union(*(loops_of(e) for e in access[number].results))
            rows = prod(n for n, along in zip(shape, loops, strict=True) if not along & own) / rounds
            total += tensor_bytes(value) * (rounds - 1) * min(1.0, _HIDING_ROWS / rows)
        return total

    def _with_followers(self, end: int) -> int:
        """Behind a sum, what follows point by point; padding for what comes then stays outside."""
        for at in range(end, len(self.ops) if end else 0):
            op = self.ops[at]
            if op.name in _FREE:
                continue
            if op.name != "linalg.generic" or any(kinds(op)) or is_copy(op):
                break
            end = at + 1
        return end

    def _largest(self) -> int:
        made = (tensor_bytes(op.results[0]) for op in self.ops if op.name == "linalg.generic")
        return max(made, default=0)

    def round_size(self, l3_bytes: int) -> int:
        """Images of a round: as many as stay near, and divide the batch."""
        near = l3_bytes * _ROUND * self.images / max(self._largest(), 1)
        return max(n for n in range(1, self.images + 1) if self.images % n == 0 and (n == 1 or n <= near))

    def left(self) -> list[ir.Value]:
        """What operations outside read."""
        inside = {op.results[0] for op in self.ops}
        found = []
        for op in self.ops:
            outside = (
                user for user, _ in uses(op.results[0]) if not len(user.results) or user.results[0] not in inside
            )
            if op.name not in _FREE and any(True for _ in outside):
                found.append(op.results[0])
        return found


def _needed(op: ir.Operation) -> list[ir.Value]:
    """All values that an operation or its regions read."""
    found: list[ir.Value] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def _of_round(kind: ir.Type, count: int) -> ir.Type:
    ranked = ir.RankedTensorType(kind)
    return ir.RankedTensorType.get([count, *ranked.shape[1:]], ranked.element_type)


class _Loop:
    """Writes the loop over micro-batches in the place of a segment."""

    def __init__(self, segment: _Segment, count: int) -> None:
        self.segment, self.count = segment, count
        self.new: dict[ir.Value, ir.Value] = {}
        self.at: ir.Value | None = None

    def emit(self) -> None:
        """The loop; what is read behind it comes from its results."""
        left = self.segment.left()
        with self.segment.ops[-1].location, ir.InsertionPoint.after(self.segment.ops[-1]):
            index = ir.IndexType.get()
            bounds = [
                create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, n)})
                for n in (0, self.segment.images, self.count)
            ]
            states = [create("tensor.empty", [], value.type) for value in left]
            types = [value.type for value in left]
            loop = ir.Operation.create("scf.for", results=types, operands=[*bounds, *states], regions=1)
            block = ir.Block.create_at_start(loop.regions[0], [index, *types])
            with ir.InsertionPoint(block):
                self.at, *carried = block.arguments
                places = dict(zip(left, carried, strict=True))
                for op in self.segment.ops:
                    if op.name in _FREE:
                        continue  # where they are needed
                    new = self._clone(op)
                    if (state := places.get(op.results[0])) is not None:
                        places[op.results[0]] = self._hand_on(new, state)
                ir.Operation.create("scf.yield", operands=[places[value] for value in left])
        inside = {op.results[0] for op in self.segment.ops}
        for value, result in zip(left, loop.results, strict=True):
            for user, number in uses(value):
                if not len(user.results) or user.results[0] not in inside:
                    user.operands[number] = result
        for op in reversed(self.segment.ops):
            if not any(True for _ in op.results[0].uses):
                op.erase()

    def _clone(self, op: ir.Operation) -> ir.Operation:
        """The operation for the images of a round."""
        parts = {number: self._part(op.operands[number]) for number in self.segment.batched(op)}
        new = op.clone()
        for number, part in parts.items():
            new.operands[number] = part
        new.results[0].set_type(_of_round(op.results[0].type, self.count))
        for name in ("static_sizes", "static_output_shape"):
            if name in new.attributes:
                sizes = list(ir.DenseI64ArrayAttr(new.attributes[name]))
                new.attributes[name] = ir.DenseI64ArrayAttr.get([self.count, *sizes[1:]])
        self.new[op.results[0]] = new.results[0]
        return new

    def _part(self, value: ir.Value) -> ir.Value:
        """The images of this round in a tensor of all."""
        if value not in self.new:
            if value in self.segment.free:
                op = maker(value)
                assert op is not None
                self._clone(op)
            else:
                self.new[value] = self._slice(value)
        return self.new[value]

    def _slice(self, value: ir.Value) -> ir.Value:
        kind = _of_round(value.type, self.count)
        return create("tensor.extract_slice", [value, self.at], kind, self._place(kind, [1, 1, 0, 0]))

    def _place(self, kind: ir.Type, segments: Sequence[int]) -> dict[str, ir.Attribute]:
        shape = list(ir.RankedTensorType(kind).shape)
        offsets = [ir.ShapedType.get_dynamic_stride_or_offset(), *[0] * (len(shape) - 1)]
        static = {"offsets": offsets, "sizes": shape, "strides": [1] * len(shape)}
        found: dict[str, ir.Attribute] = {f"static_{name}": ir.DenseI64ArrayAttr.get(v) for name, v in static.items()}
        return {**found, "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)}

    def _hand_on(self, new: ir.Operation, state: ir.Value) -> ir.Value:
        """What a loop carries, with the result of a round in its place: made there, or copied."""
        value, last = new.results[0], len(new.operands) - 1
        place = maker(new.operands[last]) if new.name == "linalg.generic" else None
        if place is not None and place.name == "tensor.empty":
            with ir.InsertionPoint(new):
                new.operands[last] = self._slice(state)
        else:
            value = create_copy(value, self._slice(state))
        return create(
            "tensor.insert_slice", [value, state, self.at], state.type, self._place(value.type, [1, 1, 1, 0, 0])
        )


@register
@dataclass(frozen=True)
class SplitMicroBatches(Pass):
    """Run a batch in micro-batches where all images outgrow the caches.

    From the begin of a function on, as far as operations work on each image by itself, sums over windows follow each
    other, and the weights that each round reads again cost less than the images from far.

    Before:
    ```mlir
    #x = affine_map<(n, i, t) -> (n, i + t)>
    #w = affine_map<(n, i, t) -> (t)>
    #y = affine_map<(n, i, t) -> (n, i)>
    func.func @main(%x: tensor<4x1048580xf32>, %w: tensor<3xf32>) -> tensor<4x1048576xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4x1048578xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x1048578xf32>) -> tensor<4x1048578xf32>
      %y = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<4x1048580xf32>, tensor<3xf32>) outs(%f : tensor<4x1048578xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      } -> tensor<4x1048578xf32>
      %d = tensor.empty() : tensor<4x1048576xf32>
      %g = linalg.fill ins(%zero : f32) outs(%d : tensor<4x1048576xf32>) -> tensor<4x1048576xf32>
      %z = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%y, %w : tensor<4x1048578xf32>, tensor<3xf32>) outs(%g : tensor<4x1048576xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      } -> tensor<4x1048576xf32>
      return %z : tensor<4x1048576xf32>
    }
    ```
    After:
    ```mlir
    scf.for %n = %c0 to %c4 step %c1 iter_args(%all = %e) -> (tensor<4x1048576xf32>) {
      %x = tensor.extract_slice %arg0[%n, 0] [1, 1048580] [1, 1] : tensor<4x1048580xf32> to tensor<1x1048580xf32>
      ...
      tensor.insert_slice
    ```
    """

    name: ClassVar[str] = "tile-split-micro-batches"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "scf", "tensor")

    l3_bytes: int = device_option(33554432, facts.last_bytes, "bytes of the largest cache")

    def run(self, op: ir.Operation) -> None:
        """Visit the function that runs with the model."""
        for block in main_blocks(op):
            for images in dict.fromkeys(_batches(block)):
                segment = _Segment(images, Weights())
                segment.collect(block)
                if segment.cut(self.l3_bytes) and (count := segment.round_size(self.l3_bytes)) < images:
                    _Loop(segment, count).emit()
                    break


def main_blocks(op: ir.Operation) -> list[ir.Block]:
    """The bodies of the functions that run with the model."""
    functions = [inner.operation for inner in op.regions[0].blocks[0].operations if inner.operation.name == "func.func"]
    named = [(f, ir.StringAttr(f.attributes["sym_name"]).value) for f in functions]
    return [f.regions[0].blocks[0] for f, name in named if name != "init" and len(f.regions[0].blocks)]


def _batches(block: ir.Block) -> list[int]:
    """What may be numbers of images: first sizes of what the model is called with."""
    kinds_ = [ir.RankedTensorType(v.type) for v in block.arguments if isinstance(v.type, ir.RankedTensorType)]
    return [kind.shape[0] for kind in kinds_ if kind.has_static_shape and kind.rank > 1 and kind.shape[0] > 1]
