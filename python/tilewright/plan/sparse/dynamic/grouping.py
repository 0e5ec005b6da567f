# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mixtures of experts as grouped products: tokens are multiplied by the experts that got them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.devices.device import Device
from tilewright.ir.generics import create, is_zeros, maker, walk
from tilewright.ir.structure import Weights
from tilewright.ir.target_info import device_of, options_of
from tilewright.mlir import ir
from tilewright.passes import remark
from tilewright.plan.sparse.dynamic import grouped
from tilewright.plan.sparse.dynamic.cost import experts_tile, given_share
from tilewright.plan.sparse.dynamic.counted import is_below
from tilewright.plan.sparse.dynamic.experts import Experts, Stage, find_experts
from tilewright.plan.sparse.dynamic.grouped import Groups
from tilewright.plan.sparse.dynamic.lower_dynamic import empty, index_of
from tilewright.plan.sparse.forms.making import choice, filled, kernel, launch
from tilewright.plan.sparse.sink_users import sink_users

#: The share of pairs of an expert and a token up to which groups are multiplied.
_DENSE_ABOVE = 0.7
#: Rows and columns of a thread block.
_ON_GPUS = (32, 64)

#: Makes one product of all experts: of sizes, the stage, the lists, rows and weight, and whether rows are tokens'.
Product = Callable[[Groups, Stage, Sequence[ir.Value], ir.Value, ir.Value, bool], ir.Value]


def group_experts(op: ir.Operation) -> None:
    """Group experts, sum by sum."""
    device = device_of(op, "tile-group-experts")
    if device.kind not in ("cpu", "gpu") or options_of(op).precision != "f32":
        return
    weights = Weights()
    for total in walk(op, "linalg.generic"):
        experts = find_experts(total, weights)
        if experts is not None:
            remark(total, "tokens are multiplied by the experts that got them; the weights are held in two layouts")
            with ir.InsertionPoint(total), total.location:
                _group(experts, device)


def _group(experts: Experts, device: Device) -> None:
    count, tokens = experts.sizes
    on_cpu = device.kind == "cpu"
    sizes = experts_tile(max(stage.sizes[1] for stage in experts.stages), device) if on_cpu else _ON_GPUS
    g = Groups(count, tokens, *sizes)
    live, counts = index_of(experts.gate, [1, 1], 1 if experts.by_expert else 0)
    above = given_share(experts.total, "dense_above")
    few = is_below(counts, count * tokens, _DENSE_ABOVE if above is None else above)
    weights = [_panels(stage, g) if on_cpu else stage.weight for stage in experts.stages]
    make = _packed_product if on_cpu else _gathered_product
    total = experts.total
    result = choice(few, lambda: _sparse(experts, g, (live, counts), weights, make), lambda: _dense(experts))
    total.results[0].replace_all_uses_with(result)
    for op in reversed(experts.operations):
        op.erase()
    made = maker(result)
    assert made is not None
    sink_users(made)


def _sparse(
    experts: Experts, g: Groups, lists: Sequence[ir.Value], weights: Sequence[ir.Value], make: Product
) -> ir.Value:
    """The grouped products."""
    i32 = ir.IntegerType.get_signless(32)
    places = [empty([g.pairs], i32), empty([2, g.experts + 1], i32)]
    routes = launch(kernel(grouped.route_text(g, experts.by_expert), "route_tokens"), [1], lists, places)
    value = experts.tokens
    for number, stage in enumerate(experts.stages):
        value = make(g, stage, routes, value, weights[number], number == 0)
    start = experts.total.operands[len(experts.total.operands) - 1]
    return (_token_sums if make is _packed_product else _column_sums)(g, routes, value, start)


def _token_sums(g: Groups, routes: Sequence[ir.Value], rows: ir.Value, start: ir.Value) -> ir.Value:
    """For CPUs: token by token."""
    i32, n = ir.IntegerType.get_signless(32), ir.RankedTensorType(rows.type).shape[1]
    places = [empty([g.tokens + 2], i32), empty([g.pairs], i32)]
    lists = launch(kernel(grouped.rows_of_tokens_text(g), "list_rows_of_tokens"), [1], routes, places)
    adds = not is_zeros(start)
    result = start if adds else empty([g.tokens, n], ir.F32Type.get())
    name = kernel(grouped.token_sums_text(g, n, adds), "add_up_experts")
    return launch(name, [-(-g.tokens // grouped.TOKENS)], [*lists, rows], [result])[0]


def _column_sums(g: Groups, routes: Sequence[ir.Value], rows: ir.Value, start: ir.Value) -> ir.Value:
    """For GPUs: columns by themselves."""
    n = ir.RankedTensorType(rows.type).shape[1]
    if is_zeros(start):
        start = filled(empty([g.tokens, n], ir.F32Type.get()))
    tasks = [-(-n // grouped.ADDED)]
    return launch(kernel(grouped.combine_text(g, n), "add_up_experts"), tasks, [*routes, rows], [start])[0]


def _packed_product(
    g: Groups, stage: Stage, routes: Sequence[ir.Value], rows: ir.Value, weight: ir.Value, gathers: bool
) -> ir.Value:
    """For CPUs: rows of tokens are put in order, the weight is in panels."""
    f32, (k, n) = ir.F32Type.get(), stage.sizes
    if gathers:
        name = kernel(grouped.gather_text(g, k), "gather_tokens")
        (rows,) = launch(name, [g.experts], [*routes, rows], [empty([g.room, k], f32)])
    operands = _operands(stage)
    name = kernel(grouped.product_text(g, stage, operands), "product_of_experts")
    inputs, tasks = [*routes, rows, weight, *operands], [g.experts, -(-n // g.width)]
    return launch(name, tasks, inputs, [empty([g.room, n], f32)])[0]


def _gathered_product(
    g: Groups, stage: Stage, routes: Sequence[ir.Value], rows: ir.Value, weight: ir.Value, gathers: bool
) -> ir.Value:
    """For GPUs: loads gather rows."""
    operands, n = _operands(stage), stage.sizes[1]
    name = kernel(grouped.gathered_product_text(g, stage, operands, gathers), "product_of_experts")
    tasks = [g.experts, -(-g.tokens // g.rows), -(-n // g.width)]
    return launch(name, tasks, [*routes, rows, weight, *operands], [empty([g.room, n], ir.F32Type.get())])[0]


def _operands(stage: Stage) -> list[ir.Value]:
    """What the steps after a product read beside it, each once."""
    found: list[ir.Value] = []
    for follower in stage.followers:
        for at in range(len(follower.roles)):
            if at != follower.chained and follower.op.operands[at] not in found:
                found.append(follower.op.operands[at])
    return found


def _dense(experts: Experts) -> ir.Value:
    """All that was there, in the order it stood in."""
    new: dict[ir.Value, ir.Value] = {}
    for op in experts.operations:
        copy = op.clone()
        for at, operand in enumerate(copy.operands):
            copy.operands[at] = new.get(operand, operand)
        new[op.results[0]] = copy.results[0]
    return new[experts.total.results[0]]


def _panels(stage: Stage, g: Groups) -> ir.Value:
    """A weight in panels [experts, panels, k, width], packed at compile time."""
    k, n = stage.sizes
    f32 = ir.F32Type.get()
    place = empty([g.experts, -(-n // g.width), k, g.width], f32)
    zero = create("arith.constant", [], f32, {"value": ir.FloatAttr.get(f32, 0.0)})
    order, dim = ([0, 1, 2], 1) if stage.transposed else ([0, 2, 1], 2)
    return ir.Operation.create(
        "linalg.pack",
        results=[place.type],
        operands=[stage.weight, place, zero],
        attributes={
            "outer_dims_perm": ir.DenseI64ArrayAttr.get(order),
            "inner_dims_pos": ir.DenseI64ArrayAttr.get([dim]),
            "static_inner_tiles": ir.DenseI64ArrayAttr.get([g.width]),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0]),
        },
    ).result
