# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Padding with zeros that windows alone see is no work: loads outside an image give zeros.

TMA fills what lies outside of a tensor with zeros, cp.async takes a number of bytes, and other loads have a mask, so
implicit GEMM reads the image as it is (cuDNN's precomputed indices do the same; Chetlur et al., 2014, section 3). What
padding in memory costs is a launch that fills it, a copy where the image has other readers, and results that do not
start at multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tilewright.ir.generics import constant_of, create, is_copy, maker, maps, uses, walk
from tilewright.ir.structure import Weights, blocks, index_terms
from tilewright.ir.views import groups_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.model.implicit_padding import expand_inside, surround
from tilewright.plan.model.mark_host_fallback import reason_for_host

_RESHAPE = "tensor.expand_shape"
_DYNAMIC = ir.ShapedType.get_dynamic_size()
#: What an operation's own reshape needs besides its operand.
_SHAPING = ("reassociation", "static_output_shape")


class _Padding(NamedTuple):
    """A tensor that is an image and zeros around it."""

    insert: ir.Operation
    fill: ir.Operation
    low: list[int]
    high: list[int]

    @property
    def dims(self) -> set[int]:
        """The dimensions that are padded."""
        return {d for d, (a, b) in enumerate(zip(self.low, self.high, strict=True)) if a or b}


@register
@dataclass(frozen=True)
class FoldPadding(Pass):
    """Let windows read images whose padding is not in memory (`tensor.pad` with `tile.implicit_padding`).

    Of tensors that zeros are filled into and an image copied or computed, where windows that kernels run are the
    only readers. Their groups take the image, and make the padding for themselves.

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    #window = affine_map<(i, k) -> (i + k)>
    #tap = affine_map<(i, k) -> (k)>
    #place = affine_map<(i, k) -> (i)>
    func.func @main(%x: tensor<64xf32>, %w: tensor<3xf32>) -> tensor<64xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<66xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<66xf32>) -> tensor<66xf32>
      %s = tensor.extract_slice %f[1] [64] [1] : tensor<66xf32> to tensor<64xf32>
      %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<64xf32>) outs(%s : tensor<64xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      } -> tensor<64xf32>
      %p = tensor.insert_slice %c into %f[1] [64] [1] : tensor<64xf32> into tensor<66xf32>
      %d = tensor.empty() : tensor<64xf32>
      %g = linalg.fill ins(%zero : f32) outs(%d : tensor<64xf32>) -> tensor<64xf32>
      %y = linalg.generic {indexing_maps = [#window, #tap, #place], iterator_types = ["parallel", "reduction"]}
          ins(%p, %w : tensor<66xf32>, tensor<3xf32>) outs(%g : tensor<64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %m = arith.mulf %a, %b : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<64xf32>
      return %y : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %p = tensor.pad %x low[1] high[1] {
    ^bb0(%i: index):
      tensor.yield %zero : f32
    } {tile.implicit_padding} : tensor<64xf32> to tensor<66xf32>
    ...
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "reduction"]}
        ins(%p, %w : tensor<66xf32>, tensor<3xf32>) outs(%g : tensor<64xf32>) {
    ```
    """

    name: ClassVar[str] = "tile-fold-padding"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit what is inserted into fills, in each block that groups are formed in."""
        weights = Weights()
        planned = list(blocks(op))
        for insert in walk(op, "tensor.insert_slice"):
            padding = _padding_of(insert) if insert.block in planned else None
            if padding is not None and not weights.only(insert.results[0]) and _windows_only(padding):
                _fold(padding)


def _padding_of(insert: ir.Operation) -> _Padding | None:
    """The padding that an insertion leaves; None where it leaves none, or something else than zeros.

    Sizes of a run may be those of dimensions without padding, or differ by a number that is known.
    """
    fill = maker(insert.operands[1])
    empty = maker(fill.operands[1]) if fill is not None and fill.name == "linalg.fill" else None
    if fill is None or empty is None or empty.name != "tensor.empty" or constant_of(fill.operands[0]) != 0:
        return None
    source, whole = (ir.RankedTensorType(value.type) for value in list(insert.operands)[:2])
    offsets, sizes, steps = (
        list(ir.DenseI64ArrayAttr(insert.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    if source.rank != whole.rank or _DYNAMIC in offsets or set(steps) != {1} or 0 in sizes:
        return None
    inner = _filled(sizes, list(insert.operands)[2:])
    outer = _filled(whole.shape, list(empty.operands))
    high = []
    for all_of_it, offset, size in zip(outer, offsets, inner, strict=True):
        more = _difference(all_of_it, size)
        if more is None or more < offset:
            return None
        high.append(more - offset)
    return _Padding(insert, fill, offsets, high) if any((*offsets, *high)) else None


def _filled(shape: Sequence[int], dynamic: list[ir.Value]) -> list[int | ir.Value]:
    """A shape with the sizes of a run in their places."""
    values = iter(dynamic)
    return [next(values) if size == _DYNAMIC else size for size in shape]


def _difference(larger: int | ir.Value, smaller: int | ir.Value) -> int | None:
    """By how much two sizes differ, where that is known at compile time."""
    (base, more), (other, less) = _terms(larger), _terms(smaller)
    if base is None or other is None:  # a value compares with values alone
        return more - less if base is other else None
    return more - less if base == other else None


def _terms(size: int | ir.Value) -> tuple[ir.Value | None, int]:
    """A size as a value, or none, and a number that is added to it."""
    total = 0
    while not isinstance(size, int):
        made = maker(size)
        known = None if made is None or not made.operands else constant_of(made.operands[len(made.operands) - 1])
        if made is not None and made.name == "arith.constant":
            return None, total + int(constant_of(size) or 0)
        if made is None or made.name not in ("arith.addi", "arith.subi") or known is None:
            return size, total
        total += int(known) if made.name == "arith.addi" else -int(known)
        size = made.operands[0]
    return None, total + size


def _windows_only(padding: _Padding) -> bool:
    """Whether all readers are windows of kernels, each of which moves along all padded dimensions."""
    readers = list(uses(padding.insert.results[0]))
    return bool(readers) and all(_is_window(op, number, padding.dims) for op, number in readers)


def _is_window(op: ir.Operation, number: int, dims: set[int]) -> bool:
    if op.name == _RESHAPE and len(op.operands) == 1:
        groups = groups_of(op.attributes["reassociation"])
        if any(len(groups[d]) != 1 for d in dims):
            return False
        moved = {groups[d][0] for d in dims}
        readers = list(uses(op.results[0]))
        return bool(readers) and all(_is_window(reader, at, moved) for reader, at in readers)
    if op.name != "linalg.generic" or number + 1 == len(op.operands) or reason_for_host(op):
        return False
    results = maps(op)[number].results
    return all(len(index_terms(results[d]) or {}) > 1 for d in dims)


def _fold(padding: _Padding) -> None:
    insert = padding.insert
    kind = ir.RankedTensorType(insert.results[0].type)
    with insert.location, ir.InsertionPoint(insert):
        image, left = _image(insert)
        padded = surround(image, kind, padding.low, padding.high, padding.fill.operands[0])
    insert.results[0].replace_all_uses_with(padded)
    insert.erase()
    _erase_unused(left)
    for op, _ in list(uses(padded)):
        if op.name == _RESHAPE:
            attributes = {name: op.attributes[name] for name in _SHAPING}
            with op.location, ir.InsertionPoint(op):
                inside = expand_inside(padded, ir.RankedTensorType(op.results[0].type), attributes)
            op.results[0].replace_all_uses_with(inside)
            op.erase()
    _erase_unused(maker(padded))


def _image(insert: ir.Operation) -> tuple[ir.Value, ir.Operation | None]:
    """What is inserted, in a tensor of its own: the source of a plain copy, or made elsewhere than in the slice.

    Also gives the operation that nothing may need once the insertion is gone.
    """
    value, fill = insert.operands[0], maker(insert.operands[1])
    made = maker(value)
    if made is None or made.name != "linalg.generic" or len(made.results) != 1 or len(list(uses(value))) != 1:
        return value, fill
    last = len(made.operands) - 1
    slice_ = maker(made.operands[last])
    if slice_ is None or slice_.name != "tensor.extract_slice":
        return value, fill
    if is_copy(made) and maps(made)[0] == maps(made)[1] and made.operands[0].type == value.type:
        return made.operands[0], made
    with made.location, ir.InsertionPoint(made):
        made.operands[last] = create("tensor.empty", list(slice_.operands)[1:], value.type)
    return value, slice_


def _erase_unused(op: ir.Operation | None) -> None:
    """Erase an operation, and what it alone uses, where nothing uses its result."""
    names = ("linalg.generic", "linalg.fill", "tensor.empty", "tensor.extract_slice", "tensor.pad")
    if op is None or op.name not in names or any(list(uses(result)) for result in op.results):
        return
    makers: list[ir.Operation] = []
    for made in map(maker, op.operands):
        if made is not None and not any(made == other for other in makers):
            makers.append(made)  # compared before any of them is gone
    op.erase()
    for made in makers:
        _erase_unused(made)
