# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-split-repeats`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tilewright.ir.generics import (
    body,
    create,
    create_generic,
    create_like,
    create_repeated,
    create_split,
    kinds,
    maker,
    maps,
    open_sizes,
    positions,
    uses,
    walk,
)
from tilewright.mlir import ir
from tilewright.normalize.attention_rows import is_plain, is_product
from tilewright.passes import Pass, register


@dataclass(frozen=True)
class _Merged:
    """A tensor of which one dimension is two, seen as one.

    Attributes:
        dim: that dimension.
        parts: sizes of the two.
        value: the tensor with both; of a repeat, what is repeated.
        missing: of a repeat, which of the two (0, 1) its tensor has not; None where it has both.
    """

    dim: int
    parts: tuple[int, int]
    value: ir.Value
    missing: int | None = None


@register
@dataclass(frozen=True)
class SplitRepeats(Pass):
    """Let heads of a group read the keys and values that they share, instead of a copy each.

    Exporters repeat each head of keys and values for the heads of queries that read it, and merge both into one
    dimension: as many copies of a whole cache, in each step. The product's loop over heads becomes two, over groups and
    within one, and so do those of what follows on it; keys are then read without the inner one.

    Before:
    ```mlir
    func.func @main(%q: tensor<4x5x8xf32>, %k: tensor<2x9x8xf32>) -> tensor<4x5x9xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<2x2x9x8xf32>
      %r = linalg.generic {
          indexing_maps = [affine_map<(h, g, t, d) -> (h, t, d)>, affine_map<(h, g, t, d) -> (h, g, t, d)>],
          iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
          ins(%k : tensor<2x9x8xf32>) outs(%e : tensor<2x2x9x8xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      } -> tensor<2x2x9x8xf32>
      %m = tensor.collapse_shape %r [[0, 1], [2], [3]] : tensor<2x2x9x8xf32> into tensor<4x9x8xf32>
      %f = tensor.empty() : tensor<4x5x9xf32>
      %z = linalg.fill ins(%zero : f32) outs(%f : tensor<4x5x9xf32>) -> tensor<4x5x9xf32>
      %y = linalg.generic {
          indexing_maps = [affine_map<(h, s, t, d) -> (h, s, d)>, affine_map<(h, s, t, d) -> (h, t, d)>,
                           affine_map<(h, s, t, d) -> (h, s, t)>],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%q, %m : tensor<4x5x8xf32>, tensor<4x9x8xf32>) outs(%z : tensor<4x5x9xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %p = arith.mulf %a, %b : f32
        %n = arith.addf %o, %p : f32
        linalg.yield %n : f32
      } -> tensor<4x5x9xf32>
      return %y : tensor<4x5x9xf32>
    }
    ```
    After:
    ```mlir
    %q2 = tensor.expand_shape %q [[0, 1], [2], [3]] output_shape [2, 2, 5, 8]
        : tensor<4x5x8xf32> into tensor<2x2x5x8xf32>
    ...
    %y2 = linalg.generic {indexing_maps = [#map2, #map3, #map4],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%q2, %k : tensor<2x2x5x8xf32>, tensor<2x9x8xf32>) outs(%z2 : tensor<2x2x5x9xf32>) {
    ...
    %y = tensor.collapse_shape %y2 [[0, 1], [2], [3]] : tensor<2x2x5x9xf32> into tensor<4x5x9xf32>
    ```
    """

    name: ClassVar[str] = "tile-split-repeats"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Begin at products with what is repeated, go on with what reads their results."""
        found = {merge.result: repeat for merge in walk(op, "tensor.collapse_shape") if (repeat := _repeat(merge))}
        chain = _Chain(found)
        if found:
            for generic in walk(op, "linalg.generic"):
                chain.visit(generic)


def _repeat(merge: ir.Operation) -> _Merged | None:
    """What a collapse_shape repeats, if all that read it are products that can read less."""
    made = maker(merge.operands[0])
    groups = [[ir.IntegerAttr(i).value for i in group] for group in merge.attributes["reassociation"]]
    pairs = [(dim, group) for dim, group in enumerate(groups) if len(group) > 1]
    if made is None or len(pairs) != 1 or len(pairs[0][1]) != 2 or not _is_broadcast(made):
        return None
    dim, pair = pairs[0]
    shape = ir.RankedTensorType(made.results[0].type).shape
    read, parts = positions(maps(made)[0]), (shape[pair[0]], shape[pair[1]])
    lost = [loop for loop in range(len(shape)) if loop not in read]
    if len(lost) != 1 or lost[0] not in pair or min(parts) < 0 or read != sorted(read):
        return None
    repeat = _Merged(dim, parts, made.operands[0], pair.index(lost[0]))
    readers = [(reader, number) for reader, number in uses(merge.result)]
    if not all(_can_split(reader, {number: repeat}) and is_product(reader) for reader, number in readers):
        return None
    return repeat


def _is_broadcast(op: ir.Operation) -> bool:
    """Whether it copies its only input along loops that the input has not."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1 or any(kinds(op)):
        return False
    block, (read, written) = body(op), maps(op)
    plain = len(block.operations) == 1 and block.operations[0].operands[0] == block.arguments[0]
    same = written == ir.AffineMap.get_identity(written.n_dims)
    return plain and same and all(isinstance(e, ir.AffineDimExpr) for e in read.results)


def _can_split(op: ir.Operation, merged: dict[int, _Merged]) -> bool:
    """Whether an operation can have two loops in the place of one, for operands that are merged of the same two."""
    if op.name != "linalg.generic" or not is_plain(op) or len(op.operands) - 1 in merged:
        return False
    own = maps(op)
    loops = {positions(own[number])[one.dim] for number, one in merged.items()}
    return len(loops) == 1 and len({one.parts for one in merged.values()}) == 1 and not kinds(op)[min(loops)]


@dataclass
class _Chain:
    """Tensors with a merged dimension: the repeats, and what operations with two loops have made."""

    known: dict[ir.Value, _Merged] = field(default_factory=dict)

    def visit(self, op: ir.Operation) -> None:
        """Give an operation that reads one of them two loops, if it can have them."""
        merged = {number: self.known[v] for number, v in enumerate(op.operands) if v in self.known}
        if merged and _can_split(op, merged):
            self._split(op, merged)

    def _split(self, op: ir.Operation, merged: dict[int, _Merged]) -> None:
        number, first = next(iter(merged.items()))
        own, parts = maps(op), first.parts
        loop = positions(own[number])[first.dim]
        count = own[0].n_dims + 1
        *inputs, _ = list(op.operands)
        with op.location, ir.InsertionPoint(op):
            reads = []
            for at, (value, access) in enumerate(zip(inputs, own, strict=False)):
                one = merged.get(at) or self._opened(value, access, loop, parts)
                missing = None if one is None else one.missing
                reads.append((value if one is None else one.value, _wider(access, loop, count, missing)))
            made = op.operands[len(inputs)].owner.operation
            kind, dim = ir.RankedTensorType(op.results[0].type), positions(own[-1]).index(loop)
            shape = [*kind.shape[:dim], *parts, *kind.shape[dim + 1 :]]
            place = create_like(made, ir.RankedTensorType.get(shape, kind.element_type), open_sizes(op))
            reduces = [r for d, r in enumerate(kinds(op)) for r in [r] * (2 if d == loop else 1)]
            written = _wider(own[-1], loop, count, None)
            result = create_generic(reads, place, written, reduces, lambda elements: create_repeated(op, elements))
            groups = [[d + (d > dim)] if d != dim else [d, d + 1] for d in range(kind.rank)]
            named = ir.ArrayAttr.get([ir.ArrayAttr.get([_number(d) for d in group]) for group in groups])
            whole = create("tensor.collapse_shape", [result], kind, {"reassociation": named})
        self.known[whole] = _Merged(dim, parts, result)
        op.results[0].replace_all_uses_with(whole)
        op.erase()

    @staticmethod
    def _opened(value: ir.Value, access: ir.AffineMap, loop: int, parts: tuple[int, int]) -> _Merged | None:
        """Another operand with both dimensions; None where it has neither."""
        dims = positions(access)
        if loop not in dims:
            return None
        return _Merged(dims.index(loop), parts, create_split(value, dims.index(loop), parts))


def _wider(access: ir.AffineMap, loop: int, count: int, missing: int | None) -> ir.AffineMap:
    """A map over loops of which one is two; `missing` is the one of these that the tensor has not."""
    exprs = []
    for d in positions(access):
        both = [d, d + 1] if d == loop else [d + (d > loop)]
        exprs += [one for at, one in enumerate(both) if d != loop or at != missing]
    return ir.AffineMap.get(count, 0, [ir.AffineDimExpr.get(d) for d in exprs])


def _number(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
