# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-im2col-rows`: convolutions of few channels read rows of a window as rows of memory.

A picture has three channels, so the channels of a place are no multiple of 16 bytes, and no copy in the background
moves them: its convolution would load element by element. What all places of a window's row have of it, side by side,
is a row that copies do move. So an image of few channels is written once with the elements of each window beside each
other (im2col along one dimension only; Chellapilla et al., 2006), padded with zeros to whole pieces of 16 bytes;
filters get the same zeros. It replaces the kernel that only moves channels to the end, where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from tilewright.ir.generics import (
    body,
    create,
    create_copy,
    create_generic,
    create_repeated,
    create_transposed,
    kinds,
    maker,
    maps,
    read_through,
    uses,
)
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, describe, index_constant, index_terms, linalg_ops
from tilewright.ir.target_info import device_of
from tilewright.ir.views import consecutive, create_joined, create_split
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.cost import roofline
from tilewright.plan.cost.gemm_time import choose
from tilewright.plan.gpu.products import find_roles, problem_of
from tilewright.plan.lowbit.fuse_dequantization import drop
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.implicit_padding import is_implicitly_padded, surround
from tilewright.plan.model.nest import Nest, power_of_two
from tilewright.plan.model.traffic import element_bytes, tensor_bytes

#: What copies in the background move at a time, and the shortest rows that wgmma reads.
_CHUNK = 16
_ROW = 64


@dataclass(frozen=True)
class _Window:
    """How a product reads an image along its rows.

    Attributes:
        image: number of the operand.
        places: the parallel loop along a row.
        step: places of the image between neighbours of the result.
        taps: the reduced loop along a row.
        channels: the reduced loop over channels; None: an image has one.
    """

    image: int
    places: int
    step: int
    taps: int
    channels: int | None


@register
@dataclass(frozen=True)
class Im2colRows(Pass):
    """Let convolutions of few channels read im2col rows (of a window, side by side) where that is faster.

    Before:
    ```mlir
    #image = affine_map<(i, j, o, p, q, c) -> (i * 2 + p, j * 2 + q, c)>
    #filter = affine_map<(i, j, o, p, q, c) -> (p, q, c, o)>
    #result = affine_map<(i, j, o, p, q, c) -> (i, j, o)>
    #first = affine_map<(i, j, c) -> (c, i, j)>
    #last = affine_map<(i, j, c) -> (i, j, c)>
    ml_program.global private @w(#ml_program.extern<tensor<7x7x3x32xf16>>) : tensor<7x7x3x32xf16>
    func.func @main(%x: tensor<3x69x69xf16>) -> tensor<32x32x32xf32> {
      %w = ml_program.global_load_const @w : tensor<7x7x3x32xf16>
      %zero = arith.constant 0.0 : f32
      %d = tensor.empty() : tensor<69x69x3xf16>
      %t = linalg.generic {indexing_maps = [#first, #last], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%x : tensor<3x69x69xf16>) outs(%d : tensor<69x69x3xf16>) {
      ^bb0(%a: f16, %o: f16):
        linalg.yield %a : f16
      } -> tensor<69x69x3xf16>
      %e = tensor.empty() : tensor<32x32x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x32x32xf32>) -> tensor<32x32x32xf32>
      %y = linalg.generic {indexing_maps = [#image, #filter, #result],
          iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
          ins(%t, %w : tensor<69x69x3xf16>, tensor<7x7x3x32xf16>) outs(%f : tensor<32x32x32xf32>) {
      ^bb0(%a: f16, %b: f16, %o: f32):
        %u = arith.extf %a : f16 to f32
        %v = arith.extf %b : f16 to f32
        %m = arith.mulf %u, %v : f32
        %s = arith.addf %o, %m : f32
        linalg.yield %s : f32
      } -> tensor<32x32x32xf32>
      return %y : tensor<32x32x32xf32>
    }
    ```
    After:
    ```mlir
    %g = linalg.generic {indexing_maps = [#map, #map1],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%padded : tensor<3x69x70xf16>) outs(%e : tensor<69x32x8x3xf16>) {
    ...
    %y = linalg.generic {indexing_maps = [#map3, #map4, #map5],
        iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%rows, %filter : tensor<69x32x24xf16>, tensor<7x32x24xf16>) outs(%f : tensor<32x32x32xf32>) {
    ```
    """

    name: ClassVar[str] = "tile-im2col-rows"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit the products with weights."""
        gpu, weights = Gpu.of(device_of(op, self.name)), Weights()
        for block in blocks(op):
            for member in linalg_ops(block, weights):
                if member.kind is Kind.CONTRACTION and not member.dynamic and len(member.inputs) == 2:
                    window = _window_of(member, weights)
                    if window is not None:
                        _visit(member, window, gpu)


def _window_of(op: LinalgOp, weights: Weights) -> _Window | None:
    """How a product of an image and weights reads rows of the image; None where it is no convolution along them."""
    for number, access in enumerate(op.inputs):
        filters = op.inputs[1 - number]
        if access.pure or not filters.pure or not weights.only(filters.value) or weights.only(access.value):
            continue
        last = access.dims[-1]
        channels = last if last in op.reductions else None
        at = len(access.dims) - (1 if channels is None else 2)
        terms = index_terms(access.map.results[at]) if at >= 0 else None
        taps = [d for d in terms or () if d in op.reductions]
        places = [d for d in terms or () if d not in op.reductions]
        if terms is None or len(taps) != 1 or len(places) != 1 or terms[taps[0]] != 1 or terms[places[0]] < 1:
            return None
        own = {taps[0], channels} - {None}
        shared = any(own & uses for t, uses in enumerate(access.uses) if t not in (at, len(access.dims) - 1))
        if shared or index_constant(access.map.results[at]) or not own <= {d for d in filters.dims if d is not None}:
            return None
        return _Window(number, places[0], terms[places[0]], taps[0], channels)
    return None


def _visit(op: LinalgOp, window: _Window, gpu: Gpu) -> None:
    """Gather the im2col rows of one convolution, padded as is fastest."""
    now = _seconds(op, gpu, streamed=False)
    if now is None:
        return
    copied = _moved(op, window)
    now += roofline.copied(gpu.device, 2 * tensor_bytes(copied[0].results[0])) if copied else 0.0
    best: tuple[float, LinalgOp] | None = None
    for taps, channels in _paddings(op, window):
        new, gathered = _gathered(op, window, taps, channels, copied)
        image = op.inputs[window.image].value
        then = _seconds(new, gpu, streamed=True)
        moved = tensor_bytes(gathered) + tensor_bytes(image)
        seconds = None if then is None else then + roofline.copied(gpu.device, moved)
        if seconds is None or seconds >= (now if best is None else best[0]):
            drop(new.op)
            continue
        if best is not None:
            drop(best[1].op)
        best = seconds, new
    if best is not None:
        op.result.replace_all_uses_with(best[1].result)
        drop(op.op)


def _seconds(op: LinalgOp, gpu: Gpu, streamed: bool) -> float | None:
    """The predicted time of a product whose operands copies in the background move, or do not."""
    nest = Nest(op, [op], op.gathers)
    roles = find_roles(nest)
    problem = None if roles is None else problem_of(nest, roles)
    if problem is not None:  # what follows rounds sums to the type of the image
        problem = replace(problem, out_bytes=min(problem.out_bytes, problem.bytes))
    choice = choose(problem, gpu) if problem is not None and problem.streams == streamed else None
    return None if choice is None else choice.prediction.seconds


def _moved(op: LinalgOp, window: _Window) -> list[ir.Operation]:
    """What only moves the elements of the image, for this product alone: the last one first."""
    value, found = op.inputs[window.image].value, list[ir.Operation]()
    if is_implicitly_padded(value):
        if len(list(uses(value))) != 1:
            return found
        made = maker(value)
        assert made is not None
        value = made.operands[0]
    while (made := maker(value)) is not None and _only_moves(made) and len(list(uses(value))) == 1:
        found.append(made)
        value = made.operands[0]
    return found


def _only_moves(op: ir.Operation) -> bool:
    """Whether an operation gives the elements of a tensor in another order, or with other dimensions of size 1."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1 or len(body(op).operations) != 1:
        return False
    source, target = maps(op)
    plain = all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in source.results)
    return plain and target.is_permutation and body(op).operations[0].operands[0] == body(op).arguments[0]


def _paddings(op: LinalgOp, window: _Window) -> Iterator[tuple[int, int]]:
    """Window elements and channels that make whole pieces of memory: the fewest; and those that make whole rows."""
    width = element_bytes(op.inputs[window.image].value)
    taps, channels = op.extents[window.taps], 1 if window.channels is None else op.extents[window.channels]
    sizes = [
        (more, wide)
        for wide in range(channels, power_of_two(channels) + 1)
        for more in range(taps, taps + _CHUNK)
        if more * wide * width % _CHUNK == 0
    ]
    found = []
    for least in (0, _ROW):
        fitting = [size for size in sizes if prod(size) * width >= least]
        if fitting and (best := min(fitting, key=lambda size: (prod(size), size[1]))) not in found:
            found.append(best)
    yield from found


def _gathered(
    op: LinalgOp, window: _Window, taps: int, channels: int, copied: list[ir.Operation]
) -> tuple[LinalgOp, ir.Value]:
    """The product with the elements of a row in one dimension, in front of the old one; and the image that it reads."""
    old, access = op.op, op.inputs[window.image]
    kept = [d for d in range(op.rank) if d not in (window.taps, window.channels)]
    place = {d: ir.AffineDimExpr.get(number) for number, d in enumerate(kept)}
    last = ir.AffineDimExpr.get(len(kept))
    wide = len(access.dims) - (1 if window.channels is None else 2)
    with old.location, ir.InsertionPoint(old):
        image = _image(op, window, taps, channels, copied)
        rows = _joined(image)
        low, high = _border(access.value)
        outer = slice(0, wide)
        if any((*low[outer], *high[outer])):
            kind = ir.RankedTensorType(rows.type)
            lows, highs = [*low[outer], 0, 0], [*high[outer], 0, 0]
            shape = [a + n + b for a, n, b in zip(lows, kind.shape, highs, strict=True)]
            rows = surround(rows, ir.RankedTensorType.get(shape, kind.element_type), lows, highs, _zero(kind))
        rank = len(kept) + 1
        along = [_renumbered(e, place, op) for e in access.map.results[:wide]]
        reads = [(rows, ir.AffineMap.get(rank, 0, [*along, place[window.places], last]))]
        filters = op.inputs[1 - window.image]
        others = [place[d] for d in filters.dims if d in place]
        reads.append((_filters(op, window, taps, channels), ir.AffineMap.get(rank, 0, [*others, last])))
        reads = reads if window.image == 0 else reads[::-1]
        written = ir.AffineMap.get(rank, 0, [place[d] for d in op.output.dims if d in place])
        reduces = [*(kinds(old)[d] for d in kept), True]
        new = create_generic(reads, op.output.value, written, reduces, lambda e: create_repeated(old, e)).owner
    for name in (old.attributes[i].name for i in range(len(old.attributes))):
        if name.startswith("tile."):
            new.attributes[name] = old.attributes[name]
    return describe(new, op.position), image


def _renumbered(expr: ir.AffineExpr, place: dict[int, ir.AffineExpr], op: LinalgOp) -> ir.AffineExpr:
    """An index expression over the loops that are left."""
    zero = ir.AffineConstantExpr.get(0)
    inner = ir.AffineMap.get(len(place) + 1, 0, [place.get(d, zero) for d in range(op.rank)])
    return expr.compose(inner)


def _border(value: ir.Value) -> tuple[list[int], list[int]]:
    """How wide the padding of an image is that is not in memory."""
    made = maker(value)
    if made is None or not is_implicitly_padded(value):
        rank = ir.RankedTensorType(value.type).rank
        return [0] * rank, [0] * rank
    low, high = (list(ir.DenseI64ArrayAttr(made.attributes[name])) for name in ("static_low", "static_high"))
    return low, high


def _zero(kind: ir.RankedTensorType) -> ir.Value:
    element = kind.element_type
    number = ir.IntegerAttr.get(element, 0) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, 0.0)
    return create("arith.constant", [], element, {"value": number})


def _image(op: LinalgOp, window: _Window, taps: int, channels: int, copied: list[ir.Operation]) -> ir.Value:
    """The image with window elements and channels in dimensions of their own, zeros behind the last of each."""
    access = op.inputs[window.image]
    value, low = access.value, _border(access.value)[0]
    if is_implicitly_padded(value):
        made = maker(value)
        assert made is not None
        value = made.operands[0]
    kind = ir.RankedTensorType(value.type)
    wide = kind.rank - (1 if window.channels is None else 2)
    places, step = op.extents[window.places], window.step
    sides = [0] * kind.rank, [0] * kind.rank
    sides[0][wide] = low[wide]
    sides[1][wide] = max(step * (places - 1) + taps - low[wide] - kind.shape[wide], 0)
    rank = kind.rank + (2 if window.channels is None else 1)
    loops = [ir.AffineDimExpr.get(d) for d in range(rank)]
    reads = [*loops[:wide], loops[wide] * step + loops[wide + 1]]
    if window.channels is not None:
        sides[1][wide + 1] = channels - kind.shape[wide + 1]
        reads.append(loops[wide + 2])
    for copy in copied:
        value, sides, reads = _before(copy, sides, reads, rank)
    source = ir.RankedTensorType(value.type)
    if any(map(any, sides)):
        shape = [a + n + b for a, n, b in zip(sides[0], source.shape, sides[1], strict=True)]
        larger = ir.RankedTensorType.get(shape, source.element_type)
        value = surround(value, larger, *sides, _zero(source))
    made = ir.RankedTensorType.get([*kind.shape[:wide], places, taps, channels], kind.element_type)
    read, written = ir.AffineMap.get(rank, 0, reads), ir.AffineMap.get_identity(rank)

    def element(elements: list[ir.Value]) -> ir.Value:
        if taps == op.extents[window.taps]:
            return elements[0]
        return _within(elements[0], wide + 1, op.extents[window.taps])

    return create_generic([(value, read)], create("tensor.empty", [], made), written, [False] * rank, element)


def _before(
    copied: ir.Operation, sides: tuple[list[int], list[int]], reads: list[ir.AffineExpr], rank: int
) -> tuple[ir.Value, tuple[list[int], list[int]], list[ir.AffineExpr]]:
    """What a copy reads, with the padding and the indices of what it makes."""
    source, target = maps(copied)
    at = {ir.AffineDimExpr(e).position: number for number, e in enumerate(target.results)}
    order = [at[e.position] if isinstance(e, ir.AffineDimExpr) else None for e in source.results]
    moved = read_through(source, {d: reads[number] for d, number in at.items()}, rank)
    low, high = ([0 if d is None else own[d] for d in order] for own in sides)
    return copied.operands[0], (low, high), list(moved.results)


def _within(value: ir.Value, loop: int, extent: int) -> ir.Value:
    """An element, or zero behind the last element of a window: what lies there may be anything, also no number."""
    index, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    at = create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, loop)})
    end = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, extent)})
    inside = create(
        "arith.cmpi", [at, end], ir.IntegerType.get_signless(1), {"predicate": ir.IntegerAttr.get(i64, 2)}
    )  # slt
    element = value.type
    number = ir.IntegerAttr.get(element, 0) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, 0.0)
    zero = create("arith.constant", [], element, {"value": number})
    return create("arith.select", [inside, value, zero], element)


def _joined(value: ir.Value) -> ir.Value:
    """A tensor with its last two dimensions as one."""
    return create_joined(value, consecutive([1] * (ir.RankedTensorType(value.type).rank - 2) + [2]))


def _filters(op: LinalgOp, window: _Window, taps: int, channels: int) -> ir.Value:
    """The filters with window elements and channels last, as one dimension, zeros where the image has them."""
    filters = op.inputs[1 - window.image]
    own = [window.taps] if window.channels is None else [window.taps, window.channels]
    order = [number for number, d in enumerate(filters.dims) if d not in own] + [filters.dims.index(d) for d in own]
    transposed = create_transposed(filters.value, order)
    if window.channels is None:
        shape = ir.RankedTensorType(transposed.type).shape
        transposed = create_split(transposed, consecutive([1] * (len(shape) - 1) + [2]), [*shape, 1])
    kind = ir.RankedTensorType(transposed.type)
    whole = ir.RankedTensorType.get([*kind.shape[:-2], taps, channels], kind.element_type)
    if whole != kind:
        more = [a - b for a, b in zip(whole.shape, kind.shape, strict=True)]
        padded = surround(transposed, whole, [0] * kind.rank, more, _zero(kind))
        transposed = create_copy(padded, create("tensor.empty", [], whole))
    return _joined(transposed)
