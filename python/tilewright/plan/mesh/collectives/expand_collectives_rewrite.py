# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-expand-collectives` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.core.errors import TilewrightError, UnsupportedError
from tilewright.dialects.coremesh import Layout
from tilewright.ir.generics import constant_of, create, uses
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.plan.mesh.collectives.bodies import body
from tilewright.plan.mesh.collectives.laid_caches import append_anywhere, append_row
from tilewright.plan.mesh.collectives.laid_collectives import move, multicast, reduce_dimension, shift, widen
from tilewright.plan.mesh.collectives.laid_deals import steps
from tilewright.plan.mesh.collectives.layouts import KINDS, Laid, deal, laid
from tilewright.plan.mesh.collectives.regions import block_gemm_program
from tilewright.plan.mesh.kv_cache import Policy
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.moves.reshape_grid import Reshape, reshape_grid
from tilewright.plan.mesh.multicast_product import all_gather_product, summa
from tilewright.plan.mesh.product import Product, Skew
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.terms import X, Y
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.plan.mesh.writer import Axis
from tilewright.sim.coremesh.combinations import NAMES
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh_ir.write import write_program

Expansion = Callable[[ir.Operation], Program]


#: Of caches, in the dialect's order.
POLICIES: tuple[Policy, ...] = ("concat", "shift", "round_robin")


def _collectives(op: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name in EXPANSIONS:
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def _expand(op: ir.Operation) -> None:
    program = EXPANSIONS[op.name](op)
    names = list(dict.fromkeys(place.name for place in program.inputs))
    with ir.InsertionPoint(op), op.location:
        given = op.operands if op.name != "coremesh.kv_append" or len(names) < 3 else _with_length(op)
        made = write_program(program, dict(zip(names, given, strict=False)), body)
    (result,) = made.values()
    _give_layout(result, op.results[0].type)
    for user, number in uses(op.results[0]):
        user.operands[number] = result
    op.erase()


def _one_by_one(op: ir.Operation) -> list[ir.Operation]:
    """A relayout to or from blocks of several sizes as several, of which each has a program; any other op is one."""
    if op.name != "coremesh.relayout":
        return [op]
    source, result = laid(op.operands[0]), laid(op.results[0])
    if not any(split is not None and deal(split) for split in (*source.splits, *result.splits)):
        return [op]
    made, kind = [], ir.RankedTensorType(op.results[0].type)
    with ir.InsertionPoint(op), op.location:
        for splits in steps(source, result)[:-1]:
            layout = Layout(source.height, source.width, splits).attribute()
            between = ir.RankedTensorType.get(kind.shape, kind.element_type, layout)
            op.operands[0] = create("coremesh.relayout", [op.operands[0]], between)
            made.append(op.operands[0].owner)
    return [*made, op]


def _give_layout(result: ir.Value, kind: ir.Type) -> None:
    """Programs are written without layouts: of the tensor that is collected, yielded and returned."""
    block = result.owner.operation.regions[0].blocks[0]
    block.operations[len(block.operations) - 1].operands[0].set_type(kind)
    result.set_type(kind)


def _gemm(op: ir.Operation) -> Program:
    left, right, result = (laid(value) for value in (*op.operands, *op.results))
    product = _product(left, right.shape[1], result, _skew(left, 1), _skew(right, 0))
    m, k, n = product.tile
    _check_blocks("left operand", left, (m, k * product.held_a))
    _check_blocks("right operand", right, (k * product.held_b, n))
    _check_blocks("result", result, (m, n))
    algorithm = ("meshgemm", "cannon", "summa", "allgather")[ir.IntegerAttr(op.attributes["algorithm"]).value]
    if algorithm == "summa":
        return summa(product)
    if algorithm == "allgather":
        return all_gather_product(product)
    return shifted_product(product, "cannon" if algorithm == "cannon" else "meshgemm")


def _gemm_t(op: ir.Operation) -> Program:
    left, right, result = (laid(value) for value in (*op.operands, *op.results))
    product = _product(left, right.shape[0], result)
    rows, part, depth = product.tile[0], -(-right.shape[0] // product.blocks), -(-left.shape[1] // left.width)
    _check_blocks("left operand", left, (rows, depth))
    _check_blocks("right operand", right, (part * product.held_b, depth))
    _check_blocks("result", result, (rows, part * product.held_a))
    return transposed_product(product)


def _product(left: Laid, n: int, result: Laid, skew_a: Skew = "host", skew_b: Skew = "host") -> Product:
    m, k = left.shape
    kinds = (left.dtype, result.dtype, result.dtype)
    return Product(m, k, n, left.height, left.width, *kinds, skew_a, skew_b)


def _skew(operand: Laid, dimension: int) -> Skew:
    """Who aligns the summed dimension of an operand: the host, if its layout says that it is aligned."""
    split = operand.splits[dimension]
    return "host" if split is not None and split.skew else "run"


def _check_blocks(what: str, value: Laid, needed: tuple[int, ...]) -> None:
    """That blocks are those of the algorithm: cut into lcm(height, width) pieces, they may need to be larger."""
    for split, have, want in zip(value.splits, value.tile, needed, strict=True):
        if split is not None and not split.skew and have != want:
            raise UnsupportedError(
                f"The {what}, {list(value.shape)}, has blocks of {have} elements along {split.axis}; on {value.height} "
                f"x {value.width} cores its algorithm needs blocks of {want}. Write `block {want}` in its layout."
            )


def _gemv(op: ir.Operation) -> Program:
    left, right, result = (laid(value) for value in (*op.operands, *op.results))
    scheme = _scheme(op)
    kinds, grid = (left.dtype, result.dtype, result.dtype), (left.height, left.width)
    parts = [-(-size // right.length(right.axis_of(at))) for at, size in enumerate(right.shape)]
    rows = left.shape[:-1]
    vectors, results = (*rows, parts[0]), (*rows, parts[1])
    for name, value, needed in (
        ("vector", left, vectors),
        ("matrix", right, tuple(parts)),
        ("result", result, results),
    ):
        _check_blocks(name, value, needed)
    axis, count = left.axis_of(len(rows)), rows[0] if rows else None
    schemes = (scheme, scheme)
    return matrix_vector(MatrixVector(right.shape, *grid, axis, *kinds, schemes=schemes, order=right.order, rows=count))


def _reduce(op: ir.Operation) -> Program:
    source, result = laid(op.operands[0]), laid(op.results[0])
    how = NAMES[ir.IntegerAttr(op.attributes["combine"]).value]
    return reduce_dimension(source, result, ir.IntegerAttr(op.attributes["dim"]).value, how, _scheme(op))


def _scheme(op: ir.Operation) -> Scheme:
    kind = KINDS[ir.IntegerAttr(op.attributes["algorithm"]).value]
    levels = ir.IntegerAttr(op.attributes["k"]).value if "k" in op.attributes else 2
    groups = tuple(ir.DenseI64ArrayAttr(op.attributes["groups"])) if "groups" in op.attributes else ()
    return Scheme(kind, levels, groups)


def _multicast(op: ir.Operation) -> Program:
    return multicast(laid(op.operands[0]), laid(op.results[0]), _axis(op))


def _shift(op: ir.Operation) -> Program:
    by = ir.IntegerAttr(op.attributes["by"]).value
    return shift(laid(op.operands[0]), laid(op.results[0]), _axis(op), by)


def _halo(op: ir.Operation) -> Program:
    dim, begin, step, size = (ir.IntegerAttr(op.attributes[name]).value for name in ("dim", "from", "step", "size"))
    return widen(laid(op.operands[0]), dim, begin, step, size, op.attributes["fill"].value)


def _relayout(op: ir.Operation) -> Program:
    return move(laid(op.operands[0]), laid(op.results[0]))


def _kv_append(op: ir.Operation) -> Program:
    row, cache, count = op.operands
    length = constant_of(count)
    policy = POLICIES[ir.IntegerAttr(op.attributes["policy"]).value]
    if length is None:
        return append_anywhere(laid(row), laid(cache), policy)
    return append_row(laid(row), laid(cache), policy, int(length))


def _with_length(op: ir.Operation) -> list[ir.Value]:
    """The operands of a `kv_append`, with a length that a run brings on all cores; it fails where there is no room."""
    row, cache, count = op.operands
    kind, i32 = ir.RankedTensorType(cache.type), ir.IntegerType.get_signless(32)
    room = create("arith.constant", [], count.type, {"value": ir.IntegerAttr.get(count.type, kind.shape[0])})
    below = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 6)}  # unsigned: not negative, too
    is_room = create("arith.cmpi", [count, room], ir.IntegerType.get_signless(1), below)
    told = f"a cache of {kind.shape[0]} tokens that holds as many cannot take another: make its type larger"
    ir.Operation.create("cf.assert", operands=[is_room], attributes={"msg": ir.StringAttr.get(told)})
    listed = create(
        "tensor.from_elements", [create("arith.index_cast", [count], i32)], ir.RankedTensorType.get([1], i32)
    )
    grid = laid(cache)
    layout = Layout(grid.height, grid.width, (None,)).attribute()
    everywhere = create("coremesh.distribute", [listed], ir.RankedTensorType.get([1], i32, layout))
    return [row, cache, everywhere]


def _axis(op: ir.Operation) -> Axis:
    return "x" if ir.IntegerAttr(op.attributes["axis"]).value else "y"


def _reshape_grid(op: ir.Operation) -> Program:
    source, result = laid(op.operands[0]), laid(op.results[0])
    if not all(value.order == "linear" and not value.at and value.blocks() == [Y, X] for value in (source, result)):
        raise UnsupportedError(
            "reshape_grid has a program for matrices in plain blocks, [y, x], as cores stand. Use such layouts there."
        )
    m, n = source.shape
    for name, value in (("source", source), ("result", result)):
        _check_blocks(name, value, (-(-m // value.height), -(-n // value.width)))
    grids = ((source.height, source.width), (result.height, result.width))
    return reshape_grid(Reshape(m, n, *grids, source.dtype))


EXPANSIONS: dict[str, Expansion] = {
    "coremesh.gemm": _gemm,
    "coremesh.gemm_t": _gemm_t,
    "coremesh.block_gemm": block_gemm_program,
    "coremesh.gemv": _gemv,
    "coremesh.reduce": _reduce,
    "coremesh.allreduce": _reduce,
    "coremesh.multicast": _multicast,
    "coremesh.shift": _shift,
    "coremesh.halo": _halo,
    "coremesh.kv_append": _kv_append,
    "coremesh.relayout": _relayout,
    "coremesh.reshape_grid": _reshape_grid,
}


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit all collectives."""
    for found in _collectives(op):
        try:
            for one in _one_by_one(found):
                _expand(one)
        except TilewrightError as error:
            raise located(error, found) from error
