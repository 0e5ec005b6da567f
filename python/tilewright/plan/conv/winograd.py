# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-winograd`: windows of three by three with fewer multiplications, where the cost model says that it pays.

Winograd's minimal filtering (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, sections
3 and 4) in its tile form F(m x m, 3 x 3): `n x n` points of the image (`n = m + 2`) are transformed, multiplied with
filters transformed at compile time, channels are summed up for each of the `n * n` points apart (as many matrix
products), and a second transform makes `m x m` points of the result. Sums in another order and with other factors: the
result differs from the direct one by a few roundings, which is why a user must ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.devices import facts
from tilewright.ir.generics import body, create, create_fill, create_generic, create_number, maker
from tilewright.ir.split_dims import spread, widened
from tilewright.ir.structure import Access, Kind, LinalgOp, Weights, blocks, describe, index_terms, linalg_ops
from tilewright.ir.target_info import device_of, options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, located, option, register

Matrix = Sequence[Sequence[float]]
Grid = list[list[ir.Value]]

#: Part of the peak rate of multiply-adds that products reach in a nest of their own.
_EFFICIENCY = 0.85
#: How many times faster the transformed convolution must be by prediction.
_MARGIN = 1.1


@dataclass(frozen=True)
class Form:
    """F(m, 3): transforms of the image, of the filter and of the result, each applied to rows and to columns."""

    image: Matrix
    filter: Matrix
    result: Matrix

    @property
    def made(self) -> int:
        """Points of the result per tile and dimension."""
        return len(self.result)

    @property
    def read(self) -> int:
        """Points of the image per tile and dimension."""
        return len(self.image)


F2 = Form(
    image=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    filter=((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    result=((1, 1, 1, 0), (0, 1, -1, -1)),
)
"""F(2, 3): interpolation at 0, 1, -1 and infinity."""

F4 = Form(
    image=(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    filter=(
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
    result=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
)
"""F(4, 3): interpolation at 0, 1, -1, 2, -2 and infinity. Its factors make errors of rounding some times larger."""
FORMS = {2: F2, 4: F4}


@dataclass(frozen=True)
class Window:
    """A sum over a window of three by three: which loops play which part, and dimensions of its operands."""

    op: LinalgOp
    image: Access
    filter: Access
    #: the two dimensions of the image that the window moves along, with the loops of position and offset
    moves: tuple[tuple[int, int, int], tuple[int, int, int]]

    @property
    def offsets(self) -> tuple[int, ...]:
        """Loops inside the window."""
        return tuple(move[2] for move in self.moves)

    @property
    def places(self) -> tuple[int, ...]:
        """Loops over the places of the window."""
        return tuple(move[1] for move in self.moves)

    @property
    def depth(self) -> int:
        """Products that are summed up per point of the window."""
        return prod(self.op.extents[d] for d in self.op.reductions if d not in self.offsets)


def window_of(op: LinalgOp, weights: Weights) -> Window | None:
    """The parts of a convolution with constant filters of three by three and steps of one."""
    if op.kind is not Kind.CONTRACTION or len(op.inputs) != 2 or not _plain(op):
        return None
    constant = [weights.only(access.value) for access in op.inputs]
    if sum(constant) != 1:
        return None
    image, taps = op.inputs[constant.index(False)], op.inputs[constant.index(True)]
    moves = _moves(op, image)
    if moves is None or not taps.pure or None in taps.dims or None in op.output.dims:
        return None
    window = Window(op, image, taps, moves)
    if not set(window.offsets) <= set(taps.dims) or set(window.places) & set(taps.dims):
        return None
    return window if taps.dims.index(window.offsets[0]) < taps.dims.index(window.offsets[1]) else None


def _plain(op: LinalgOp) -> bool:
    """Whether the body is acc + a * b in f32 that starts from zeros."""
    block, start = body(op.op), maker(op.output.value)
    if len(block.operations) != 3 or start is None or start.name != "linalg.fill":
        return False
    if not all(ir.RankedTensorType(value.type).has_static_shape for value in op.op.operands):
        return False
    zero = maker(start.operands[0])
    if zero is None or zero.name != "arith.constant" or ir.FloatAttr(zero.attributes["value"]).value != 0:
        return False
    return all(isinstance(argument.type, ir.F32Type) for argument in block.arguments)


def _moves(op: LinalgOp, image: Access) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
    """The dimensions of an image along which a window of three moves by one, if there are two and no others."""
    found = []
    for at, (expr, dim) in enumerate(zip(image.map.results, image.dims, strict=True)):
        if dim is not None:
            continue
        terms = index_terms(expr)
        if terms is None or len(terms) != 2 or set(terms.values()) != {1}:
            return None
        place, offset = sorted(terms, key=lambda d: d in op.reductions)
        if place in op.reductions or offset not in op.reductions or op.extents[offset] != 3:
            return None
        found.append((at, place, offset))
    return (found[0], found[1]) if len(found) == 2 else None


# --- bodies ------------------------------------------------------------------------------------------------------


def _combined(factors: Sequence[float], values: Sequence[ir.Value]) -> ir.Value:
    """The sum of `factors` times `values`, without multiplications by one and by zero."""
    f32, total = ir.F32Type.get(), None
    for factor, value in sorted(zip(factors, values, strict=True), key=lambda pair: -pair[0]):
        if factor == 0:
            continue
        if abs(factor) != 1:
            scale = create_number(abs(factor), f32)
            value = create("arith.mulf", [value, scale], f32)
        if total is None:
            total = value if factor > 0 else create("arith.negf", [value], f32)
        else:
            total = create("arith.addf" if factor > 0 else "arith.subf", [total, value], f32)
    assert total is not None
    return total


def _transformed(matrix: Matrix, grid: Grid) -> Grid:
    """matrix x grid x matrix transposed."""
    columns = [[_combined(row, [line[j] for line in grid]) for j in range(len(grid[0]))] for row in matrix]
    return [[_combined(row, line) for row in matrix] for line in columns]


def _chosen(grid: Grid, loops: tuple[int, int]) -> ir.Value:
    """The element of `grid` that the indices of two loops name. Tiles cover both loops, so that each choice folds."""
    index, bit = ir.IndexType.get(), ir.IntegerType.get_signless(1)

    def is_at(loop: int, number: int) -> ir.Value:
        at = create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), loop)})
        value = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, number)})
        equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
        return create("arith.cmpi", [at, value], bit, {"predicate": equal})

    def pick(values: Sequence[ir.Value], loop: int) -> ir.Value:
        result = values[0]
        for number, value in enumerate(values[1:], 1):
            result = create("arith.select", [is_at(loop, number), value, result], value.type)
        return result

    return pick([pick(line, loops[1]) for line in grid], loops[0])


def _transform(matrix: Matrix, loops: tuple[int, int]) -> Callable[[list[ir.Value]], ir.Value]:
    """A body that transforms the square of its inputs and yields the element that `loops` name."""
    side = len(matrix[0])

    def compute(elements: list[ir.Value]) -> ir.Value:
        grid = [elements[i * side : (i + 1) * side] for i in range(side)]
        return _chosen(_transformed(matrix, grid), loops)

    return compute


# --- the operations ----------------------------------------------------------------------------------------------


def _empty(shape: Sequence[int]) -> ir.Value:
    return create("tensor.empty", [], ir.RankedTensorType.get(list(shape), ir.F32Type.get()))


def _dim(d: int) -> ir.AffineExpr:
    return ir.AffineDimExpr.get(d)


def _square(value: ir.Value, rank: int, side: int, at: Callable[[int, int], list[ir.AffineExpr]]) -> list:
    """Reads of a tensor at the points of a square."""
    return [(value, ir.AffineMap.get(rank, 0, at(i, j))) for i in range(side) for j in range(side)]


def _points(value: ir.Value, access: Access, special: dict[int, int], matrix: Matrix, step: int) -> ir.Value:
    """The transform of squares of a tensor: [row, column, dimensions of the tensor...].

    Args:
        value: the tensor.
        access: how the convolution reads it.
        special: dimensions that the square lies in, with their sizes in the result; size 0: no dimension of the result.
        matrix: the transform.
        step: from square to square.
    """
    shape = list(ir.RankedTensorType(access.value.type).shape)
    kept = [t for t in range(len(shape)) if special.get(t, 1)]
    sizes = [len(matrix), len(matrix), *(special.get(t, shape[t]) for t in kept)]
    rank = len(sizes)
    loop = {t: 2 + number for number, t in enumerate(kept)}
    first, second = sorted(special)

    def at(i: int, j: int) -> list[ir.AffineExpr]:
        offset = {first: i, second: j}
        constant = ir.AffineConstantExpr.get
        return [
            _dim(loop[t])
            if t not in special
            else _dim(loop[t]) * step + offset[t]
            if t in loop
            else constant(offset[t])
            for t in range(len(shape))
        ]

    reads = _square(value, rank, len(matrix[0]), at)
    same = ir.AffineMap.get_identity(rank)
    return create_generic(reads, _empty(sizes), same, [False] * rank, _transform(matrix, (0, 1)))


def rewrite(window: Window, form: Form) -> None:
    """Replaces a convolution by three steps, the last of which makes the result in tiles."""
    op = window.op
    counts = {place: ceil(op.extents[place] / form.made) for place in window.places}
    with op.op.location, ir.InsertionPoint(op.op):
        sizes = {at: counts[place] * form.made + 2 for at, place, _ in window.moves}
        places = {at: counts[place] for at, place, _ in window.moves}
        taps = {t: 0 for t, d in enumerate(window.filter.dims) if d in window.offsets}
        image = widened(window.image.value, sizes)
        image = _points(image, window.image, places, form.image, form.made)
        filters = _points(window.filter.value, window.filter, taps, form.filter, 1)
        made = _result(window, _products(window, image, filters, counts), counts, form)
    spread(made, op.op, _groups(window))


def _groups(window: Window) -> list[list[int]]:
    """For each dimension of the result those of the result in tiles: places are (tile, point of the tile)."""
    groups, at = [], 0
    for d in window.op.output.dims:
        size = 2 if d in window.places else 1
        groups.append(list(range(at, at + size)))
        at += size
    return groups


def _products(window: Window, image: ir.Value, filters: ir.Value, counts: dict[int, int]) -> ir.Value:
    """Sums over channels, for each point of the transformed tiles apart."""
    op = window.op
    loops = [d for d in range(op.rank) if d not in window.offsets]
    number = {d: 2 + at for at, d in enumerate(loops)}
    rank = 2 + len(loops)
    place = {at: d for at, d, _ in window.moves}
    left = [place[t] if t in place else d for t, d in enumerate(window.image.dims)]
    right = [d for d in window.filter.dims if d not in window.offsets]

    def mapped(dims: Sequence[int | None]) -> ir.AffineMap:
        exprs = [ir.AffineConstantExpr.get(0) if d is None else _dim(number[d]) for d in dims]
        return ir.AffineMap.get(rank, 0, [_dim(0), _dim(1), *exprs])

    side = ir.RankedTensorType(image.type).shape[0]
    sizes = [counts.get(d, op.extents[d]) for d in op.output.dims if d is not None]
    zero = create_number(0.0, ir.F32Type.get())
    start = create_fill(zero, _empty([side, side, *sizes]))
    reduces = [False, False, *(d in op.reductions for d in loops)]

    def step(e: list[ir.Value]) -> ir.Value:
        return create("arith.addf", [e[2], create("arith.mulf", e[:2], e[0].type)], e[0].type)

    return create_generic(
        [(image, mapped(left)), (filters, mapped(right))], start, mapped(op.output.dims), reduces, step
    )


def _result(window: Window, product: ir.Value, counts: dict[int, int], form: Form) -> ir.Operation:
    """The second transform: dimensions of places are (tile, point of the tile)."""
    sizes: list[int] = []
    tile: dict[int, int] = {}
    inside: list[int] = []
    dims = [d for d in window.op.output.dims if d is not None]
    for d in dims:
        tile[d] = len(sizes)
        sizes.append(counts.get(d, window.op.extents[d]))
        if d in counts:
            inside.append(len(sizes))
            sizes.append(form.made)
    rank = len(sizes)

    def at(i: int, j: int) -> list[ir.AffineExpr]:
        return [*map(ir.AffineConstantExpr.get, (i, j)), *(_dim(tile[d]) for d in dims)]

    reads = _square(product, rank, form.read, at)
    same = ir.AffineMap.get_identity(rank)
    order = (inside[0], inside[1])
    if dims.index(window.places[0]) > dims.index(window.places[1]):
        order = (inside[1], inside[0])
    made = maker(create_generic(reads, _empty(sizes), same, [False] * rank, _transform(form.result, order)))
    assert made is not None
    return made


#: Points of the result per tile and dimension that the choices of accuracy allow.
TILES = {"winograd": (2,), "winograd4": (2, 4)}


@register
@dataclass(frozen=True)
class Winograd(Pass):
    """Replace convolutions of three by three by transforms and products with fewer multiplications.

    Only where the filters are constant, the window moves by one, and the cost model says that it is faster. The
    transforms are elementwise operations on the points of a tile that choose their result by index, and what follows
    the convolution point by point runs over tiles, too: fusion lets all of it meet. A result that tiles do not cover
    evenly is the beginning of one that they do.

    Before:
    ```mlir
    #x = affine_map<(h, w, k, r, s, c) -> (h + r, w + s, c)>
    #f = affine_map<(h, w, k, r, s, c) -> (r, s, c, k)>
    #y = affine_map<(h, w, k, r, s, c) -> (h, w, k)>
    func.func @main(%x: tensor<58x58x64xf32>) -> tensor<56x56x64xf32> {
      %zero = arith.constant 0.0 : f32
      %f = ml_program.global_load_const @f : tensor<3x3x64x64xf32>
      %e = tensor.empty() : tensor<56x56x64xf32>
      %i = linalg.fill ins(%zero : f32) outs(%e : tensor<56x56x64xf32>) -> tensor<56x56x64xf32>
      %y = linalg.generic {indexing_maps = [#x, #f, #y],
          iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
          ins(%x, %f : tensor<58x58x64xf32>, tensor<3x3x64x64xf32>) outs(%i : tensor<56x56x64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %p = arith.mulf %a, %b : f32
        %t = arith.addf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<56x56x64xf32>
      return %y : tensor<56x56x64xf32>
    }
    ml_program.global private @f(#ml_program.extern : tensor<3x3x64x64xf32>) : tensor<3x3x64x64xf32>
    ```
    After:
    ```mlir
    %image = linalg.generic ... ins(%x, %x, ... outs(... : tensor<4x4x28x28x64xf32>) {
    ...
    %filters = linalg.generic ... ins(%f, %f, ... outs(... : tensor<4x4x64x64xf32>) {
    ...
    %products = linalg.generic ... ins(%image, %filters : tensor<4x4x28x28x64xf32>, tensor<4x4x64x64xf32>)
        outs(... : tensor<4x4x28x28x64xf32>) {
    ...
    %result = linalg.generic ... ins(%products, %products, ... outs(... : tensor<28x2x28x2x64xf32>) {
    ...
    %y = tensor.collapse_shape %result [[0, 1], [2, 3], [4]] : tensor<28x2x28x2x64xf32> into tensor<56x56x64xf32>
    ```
    """

    name: ClassVar[str] = "tile-winograd"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith")

    tiles: tuple[int, ...] = option((2,), "points of the result per tile and dimension: 2, 4, or both to choose from")
    asked: bool = option(False, "only where tile.options ask for it: accuracy winograd or winograd4, which says tiles")
    peak: float = device_option(92.0, facts.f32_peak, "f32 multiply-adds of a core per nanosecond")
    l2_bytes: int = device_option(1048576, facts.task_bytes, "bytes of the L2 cache of a core")
    l2_rate: float = device_option(246.0, facts.task_rate, "bytes per nanosecond that a core moves to and from L2")
    l3_rate: float = device_option(120.0, facts.last_rate, "the same for the largest cache")
    memory_rate: float = device_option(
        41.0, facts.memory_rate, "the same for memory, where filters come from that do not stay in L2"
    )

    def run(self, op: ir.Operation) -> None:
        """Rewrite each convolution for which it pays."""
        if self.asked:
            tiles = TILES.get(options_of(op).accuracy, ())
            if not tiles:
                return
            device_of(op, self.name).units.peak_of("f32")  # times are not predicted without it
            return replace(self, asked=False, tiles=tiles).run(op)
        unknown = [m for m in self.tiles if m not in FORMS]
        if unknown:
            raise located(UserError(f"tile-winograd has no tiles of {unknown[0]}: choose from {sorted(FORMS)}"), op)
        weights = Weights()
        for block in list(blocks(op)):
            windows = [found for found in linalg_ops(block, weights) if window_of(found, weights) is not None]
            for found in windows:
                # Described anew: it may read the result of one that was replaced.
                window = window_of(describe(found.op, found.position), Weights())
                form = self._best(window) if window is not None else None
                if window is not None and form is not None:
                    rewrite(window, form)

    def _best(self, window: Window) -> Form | None:
        """The form that is predicted to be the fastest, if it is faster than the direct sum."""
        limit = self._direct_time(window) / _MARGIN
        forms = [FORMS[m] for m in self.tiles]
        best = min(forms, key=lambda form: self._time(window, form), default=None)
        return best if best is not None and self._time(window, best) < limit else None

    def _direct_time(self, window: Window) -> float:
        filters = 4 * prod(window.op.extents[d] for d in window.filter.dims if d is not None)
        return self._products(window.op.points, filters)

    def _time(self, window: Window, form: Form) -> float:
        """Nanoseconds: products, and moving what is transformed."""
        op = window.op
        own = set(window.filter.dims)
        outputs = prod(op.extents[d] for d in op.parallel if d in own)
        tiles = prod(
            ceil(op.extents[d] / form.made) if d in window.places else op.extents[d]
            for d in op.parallel
            if d not in own
        )
        points = tiles * form.read**2
        filters = 4 * form.read**2 * window.depth * outputs
        near = filters <= self.l2_bytes // 2
        moved = 2 * 4 * points * (window.depth + outputs) / (self.l2_rate if near else self.l3_rate)
        return moved + self._products(points * window.depth * outputs, filters)

    def _products(self, count: int, filters: int) -> float:
        """Nanoseconds of `count` multiply-adds, and of reading filters that do not stay in L2."""
        near = filters <= self.l2_bytes // 2
        return count / (self.peak * _EFFICIENCY) + (0 if near else filters / self.memory_rate)
