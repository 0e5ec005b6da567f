# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kernels compute, as ops: the bodies of `coremesh.compute`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import create, create_fill, create_generic, create_number
from tilewright.ir.views import create_joined
from tilewright.mlir import ir
from tilewright.plan.mesh.attention import Divide, Exponentials, Peak, Scores, Weighted
from tilewright.plan.mesh.collectives.regions import Region, copied
from tilewright.plan.mesh.kernels import AsRow, Combine, Cut, Fill, MatMul, PutAt, Store, VecMat
from tilewright.plan.mesh.writer import Kernel
from tilewright.sim.coremesh.combinations import identity, op_of
from tilewright.sim.coremesh.program import Compute
from tilewright.sim.coremesh_ir.write import element_type


def body(compute: Compute, tiles: list[ir.Value]) -> Sequence[ir.Value]:
    """Make the ops of a kernel at the current insertion point.

    Args:
        compute: runs a `Kernel`.
        tiles: what it reads, as tensors.

    Returns:
        what it writes.
    """
    made = _ops(compute.run, tiles)
    return [made] if isinstance(made, ir.Value) else made


@singledispatch
def _ops(kernel: Kernel, tiles: list[ir.Value]) -> ir.Value | list[ir.Value]:
    raise NotImplementedError(f"{type(kernel).__name__} has no ops")


@_ops.register
def _(kernel: Region, tiles: list[ir.Value]) -> list[ir.Value]:
    return copied(kernel.op, tiles)


@_ops.register
def _(kernel: MatMul, tiles: list[ir.Value]) -> ir.Value:
    m, n, k = (ir.AffineExpr.get_dim(loop) for loop in range(3))
    columns = [n, k] if kernel.transposed else [k, n]
    result = [_shape(tiles[0])[0], _shape(tiles[1])[0 if kernel.transposed else 1]]
    total = tiles[2] if len(tiles) > 2 else _zeros(result, kernel.dtype)
    return _product(tiles, [[m, k], columns], total, [m, n], [False, False, True])


@_ops.register
def _(kernel: VecMat, tiles: list[ir.Value]) -> ir.Value:
    (*rows, _), (_, columns) = map(_shape, tiles)
    if not rows:
        n, k = (ir.AffineExpr.get_dim(loop) for loop in range(2))
        return _product(tiles, [[k], [k, n]], _zeros([columns], kernel.dtype), [n], [False, True])
    if kernel.by_columns(rows[0], columns):
        return _ops(MatMul(kernel.dtype), tiles)
    m, n, one, k = (ir.AffineExpr.get_dim(loop) for loop in range(4))
    total = _zeros([*rows, columns, 1], kernel.dtype)  # of each vector a column, over which vector calls run
    made = _product(tiles, [[m, k], [k, n]], total, [m, n, one], [False, False, False, True])
    return create_joined(made, [[0], [1, 2]])


@_ops.register
def _(kernel: Fill, tiles: list[ir.Value]) -> ir.Value:
    return _filled(kernel.shape, kernel.dtype, kernel.value)


@_ops.register
def _(kernel: Store, tiles: list[ir.Value]) -> ir.Value:
    joined = _joined(tiles, len(_shape(tiles[0])) - 1)
    if kernel.dtype is None:
        return joined
    return _converted(joined, ir.RankedTensorType.get(_shape(joined), element_type(kernel.dtype)))


@_ops.register
def _(kernel: Cut, tiles: list[ir.Value]) -> ir.Value:
    return _part(_joined(tiles, kernel.dimension), kernel.dimension, kernel.first, kernel.count)


@_ops.register
def _(kernel: AsRow, tiles: list[ir.Value]) -> ir.Value:
    shape = _shape(tiles[0])
    groups = [[0, 1], *([dim + 1] for dim in range(1, len(shape)))] if shape else []
    kind = ir.RankedTensorType.get([1, *shape], ir.RankedTensorType(tiles[0].type).element_type)
    number = ir.IntegerType.get_signless(64)
    attributes = {
        "reassociation": ir.ArrayAttr.get(
            [ir.ArrayAttr.get([ir.IntegerAttr.get(number, dim) for dim in group]) for group in groups]
        ),
        "static_output_shape": ir.DenseI64ArrayAttr.get([1, *shape]),
    }
    return create("tensor.expand_shape", [tiles[0]], kind, attributes)


@_ops.register
def _(kernel: PutAt, tiles: list[ir.Value]) -> ir.Value:
    new, old, first, number = tiles
    rank, i1 = len(_shape(old)), ir.IntegerType.get_signless(1)
    dims = [ir.AffineExpr.get_dim(loop) for loop in range(rank)]
    one = ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_constant(0)])
    behind, same = ir.AffineMap.get(rank, 0, dims[1:]), ir.AffineMap.get_identity(rank)
    equal = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}

    def step(elements: list[ir.Value]) -> ir.Value:
        start = elements[2]
        here = create("arith.addi", [start, create_number(kernel.offset, start.type)], start.type)
        is_here = create("arith.cmpi", [here, elements[3]], i1, equal)
        return create("arith.select", [is_here, *elements[:2]], elements[0].type)

    reads = [(new, behind), (old, same), (first, one), (number, one)]
    return create_generic(reads, create("tensor.empty", [], old.type), same, [False] * rank, step)


@_ops.register
def _(kernel: Combine, tiles: list[ir.Value]) -> ir.Value:
    tile = _part(tiles[0], kernel.dimension, 0, kernel.count)
    shape, rank = _shape(tile), len(_shape(tile))
    del shape[kernel.dimension]
    kind = ir.RankedTensorType(tile.type).element_type
    floating = isinstance(kind, ir.FloatType)
    start = _filled(shape, of_mlir(str(kind)), identity(kernel.how, of_mlir(str(kind))))
    kept = [ir.AffineExpr.get_dim(loop) for loop in range(rank) if loop != kernel.dimension]
    written, same = ir.AffineMap.get(rank, 0, kept), ir.AffineMap.get_identity(rank)

    def step(elements: list[ir.Value]) -> ir.Value:
        return create(op_of(kernel.how, floating), elements[::-1], kind)

    return create_generic([(tile, same)], start, written, [loop == kernel.dimension for loop in range(rank)], step)


@_ops.register
def _(kernel: Scores, tiles: list[ir.Value]) -> ir.Value:
    at, n = (ir.AffineExpr.get_dim(loop) for loop in range(2))
    keys = _joined(tiles[1:], 0)
    total = _zeros([_shape(keys)[0]], np.dtype(np.float32))
    total = _product([keys, tiles[0]], [[at, n], [n]], total, [at], [False, True])
    scaled = create("tensor.empty", [], total.type)

    def scale(elements: list[ir.Value]) -> ir.Value:
        kind = elements[0].type
        return create("arith.mulf", [elements[0], create_number(kernel.scale, kind)], kind)

    same = ir.AffineMap.get_identity(1)
    return create_generic([(total, same)], scaled, same, [False], scale)


@_ops.register
def _(kernel: Weighted, tiles: list[ir.Value]) -> ir.Value:
    n, at = (ir.AffineExpr.get_dim(loop) for loop in range(2))
    values = _joined(tiles[1:], 0)
    total = _zeros([_shape(values)[1]], np.dtype(np.float32))
    return _product([tiles[0], values], [[at], [at, n]], total, [n], [False, True])


@_ops.register
def _(kernel: Peak, tiles: list[ir.Value]) -> ir.Value:
    start = _filled([1], np.dtype(np.float32), -np.inf)
    return _reduced("arith.maximumf", _pointwise("arith.addf", *tiles), start)


@_ops.register
def _(kernel: Exponentials, tiles: list[ir.Value]) -> list[ir.Value]:
    masked = _pointwise("arith.addf", *tiles[:2])
    weights = _pointwise("math.exp", _pointwise("arith.subf", masked, _repeated(tiles[2], masked)))
    return [weights, _reduced("arith.addf", weights, _zeros([1], np.dtype(np.float32)))]


@_ops.register
def _(kernel: Divide, tiles: list[ir.Value]) -> ir.Value:
    return _pointwise("arith.divf", tiles[0], _repeated(tiles[1], tiles[0]))


def _part(tile: ir.Value, dimension: int, first: int, count: int) -> ir.Value:
    """Some of the elements along a dimension."""
    kind, shape = ir.RankedTensorType(tile.type), _shape(tile)
    if shape[dimension] == count:
        return tile
    shape[dimension] = count
    numbers = ir.DenseI64ArrayAttr.get
    attributes = {
        "static_offsets": numbers([first if dim == dimension else 0 for dim in range(len(shape))]),
        "static_sizes": numbers(shape),
        "static_strides": numbers([1] * len(shape)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    }
    return create("tensor.extract_slice", [tile], ir.RankedTensorType.get(shape, kind.element_type), attributes)


def _joined(tiles: Sequence[ir.Value], dimension: int) -> ir.Value:
    """Tiles one behind the other."""
    if len(tiles) == 1:
        return tiles[0]
    shape, kind = _shape(tiles[0]), ir.RankedTensorType(tiles[0].type).element_type
    shape[dimension] = sum(_shape(tile)[dimension] for tile in tiles)
    along = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dimension)
    return create("tensor.concat", list(tiles), ir.RankedTensorType.get(shape, kind), {"dim": along})


def _pointwise(name: str, *tiles: ir.Value) -> ir.Value:
    return create(name, list(tiles), tiles[0].type)


def _repeated(number: ir.Value, like: ir.Value) -> ir.Value:
    """A tensor [1] as one of many equal elements."""
    loop, zero = ir.AffineMap.get_identity(1), ir.AffineMap.get(1, 0, [ir.AffineExpr.get_constant(0)])
    place = create("tensor.empty", [], like.type)
    return create_generic([(number, zero)], place, loop, [False], lambda elements: elements[0])


def _reduced(name: str, tile: ir.Value, start: ir.Value) -> ir.Value:
    """All elements of [n], in order, combined into [1]."""
    written, reads = (ir.AffineMap.get(2, 0, [ir.AffineExpr.get_dim(loop)]) for loop in (0, 1))

    def step(elements: list[ir.Value]) -> ir.Value:
        return create(name, elements[::-1], elements[0].type)

    return create_generic([(tile, reads)], start, written, [False, True], step)


def _product(
    tiles: Sequence[ir.Value],
    reads: Sequence[Sequence[ir.AffineExpr]],
    total: ir.Value,
    written: Sequence[ir.AffineExpr],
    reduces: Sequence[bool],
) -> ir.Value:
    """Products of the first two tiles, added to `total`: elements are converted to its type first."""
    kind = ir.RankedTensorType(total.type).element_type
    multiply, add = ("arith.mulf", "arith.addf") if isinstance(kind, ir.FloatType) else ("arith.muli", "arith.addi")

    def step(elements: list[ir.Value]) -> ir.Value:
        left, right = (_converted(element, kind) for element in elements[:2])
        return create(add, [elements[2], create(multiply, [left, right], kind)], kind)

    loops = len(reduces)
    maps = [ir.AffineMap.get(loops, 0, list(exprs)) for exprs in (*reads, written)]
    return create_generic(list(zip(tiles[:2], maps, strict=False)), total, maps[-1], reduces, step)


def _converted(value: ir.Value, to: ir.Type) -> ir.Value:
    """A float or a signed integer in another type of its kind."""
    if value.type == to:
        return value
    old, new = (_element(kind) for kind in (value.type, to))
    floating = isinstance(old, ir.FloatType)
    if floating != isinstance(new, ir.FloatType):
        return create("arith.sitofp" if not floating else "arith.fptosi", [value], to)
    wider = new.width > old.width
    if floating:
        return create("arith.extf" if wider else "arith.truncf", [value], to)
    return create("arith.extsi" if wider else "arith.trunci", [value], to)


def _element(kind: ir.Type) -> ir.Type:
    return ir.RankedTensorType(kind).element_type if isinstance(kind, ir.RankedTensorType) else kind


def _zeros(shape: Sequence[int], dtype: np.dtype) -> ir.Value:
    return _filled(shape, dtype, 0)


def _filled(shape: Sequence[int], dtype: np.dtype, value: float) -> ir.Value:
    kind = element_type(dtype)
    place = create("tensor.empty", [], ir.RankedTensorType.get(list(shape), kind))
    return create_fill(create_number(value, kind), place)


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)
