# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one execution of a body does on one core, counted op by op.

A product of M x K x N is M * K * N multiply-adds in K * N vector calls: one multiply-add over a column of the result
per element of the right operand (WaferLLM, OSDI 2025, section 5.4). Other ops count the elements that they make, in one
vector call each; a reduction has a call per step. What copies or fills a tile makes its elements. Ops in loops and
branches make single elements, one after the other. Operations on f64 are counted besides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from tilewright.ir.constants import trip_count
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.program import Node
from tilewright.reference.registry import HANDLERS
from tilewright.reference.upstream import views
from tilewright.reference.upstream.linalg_ops import Structure, read_structure, structured
from tilewright.sim.coremesh.program import Cost

#: Ops that give memory another shape.
_VIEWS = frozenset({"tensor.expand_shape", "tensor.collapse_shape", "tensor.cast"})
#: These, and what costs where it is written.
_FREE = _VIEWS | {"arith.constant", "tensor.empty", "coremesh.yield"}
#: Loops and branches, whose ops compute single elements.
_CONTROL = frozenset({"scf.for", "scf.while", "scf.if"})
#: Ops on numbers that only move them.
_MOVES = frozenset({"arith.constant", "arith.select", "arith.bitcast"})
_SUMS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}


def cost_of(node: Node) -> Cost:
    """The cost of a `coremesh.compute`, read by the reference interpreter's reader."""
    costs = [_cost(inner) for inner in node.body.nodes]
    costs += [_copied(number, node) for number in node.body.nodes[-1].operands]
    macs = [cost for cost in costs if cost.macs]
    bits = macs or [cost for cost in costs if cost.elements] or [Cost()]
    return Cost(
        sum(cost.macs for cost in costs),
        sum(cost.vector_calls for cost in costs),
        sum(cost.elements for cost in costs),
        max(cost.dtype_bits for cost in bits),
        sum(cost.single for cost in costs),
        sum(cost.doubles for cost in costs),
    )


def _copied(number: int, node: Node) -> Cost:
    """A yielded value that no op of the body makes: it is copied, or filled in."""
    ending = node.body.nodes[-1]
    type_ = ending.op.operands[ending.operands.index(number)].type
    makers = {result: inner for inner in node.body.nodes for result in inner.results}
    while number in makers and makers[number].name in _VIEWS:
        number = makers[number].operands[0]
    made = number in makers and makers[number].name not in _FREE
    return Cost() if made else _elements(type_)


def _elements(type_: ir.Type) -> Cost:
    return Cost(vector_calls=1, elements=prod(types.shape_of(type_)), dtype_bits=_bits(type_))


def _bits(type_: ir.Type) -> int:
    return types.dtype_of(type_).itemsize * 8


def _cost(node: Node) -> Cost:
    if node.name in _FREE or not node.results:
        return Cost()
    if HANDLERS.get(node.name) is structured:
        return _structured(node, read_structure(node))
    if node.name in _CONTROL:
        return Cost(single=_steps(node, _makes_one), doubles=_steps(node, _is_double))
    return replace(_elements(node.result_type()), doubles=_is_double(node) * prod(types.shape_of(node.result_type())))


def _makes_one(node: Node) -> bool:
    """Whether an op makes a single element."""
    return node.name not in _FREE and bool(node.results)


def _is_double(node: Node) -> bool:
    """Whether an op computes with f64."""
    if node.name.partition(".")[0] not in ("arith", "math") or node.name in _MOVES:
        return False
    return has_doubles(node.op)


def has_doubles(op: ir.Operation) -> bool:
    """Whether an op reads or makes f64, as single numbers or in tensors."""
    kinds = [value.type for value in (*op.operands, *op.results)]
    elements = [
        ir.RankedTensorType(kind).element_type if isinstance(kind, ir.RankedTensorType) else kind for kind in kinds
    ]
    return any(isinstance(element, ir.F64Type) for element in elements)


def _steps(node: Node, counts: Callable[[Node], bool]) -> int:
    """One step for each op that counts, as often as loops run; of which only a run knows, once."""
    if node.name not in _CONTROL:
        return int(counts(node))
    parts = [sum(_steps(inner, counts) for inner in block.nodes) for block in node.regions if block is not None]
    once = max(parts) if node.name == "scf.if" else sum(parts)
    times = trip_count(node.op) if node.name == "scf.for" else 1
    return once * (1 if times is None else times)


def _structured(node: Node, shape: Structure) -> Cost:
    shapes = [types.shape_of(operand.type) for operand in node.op.operands]
    sizes = views.loop_sizes(shape.maps, shapes, shape.loops)
    if 0 in sizes:
        return Cost()
    if _multiplies(shape):
        calls = prod(sizes) // _vector(shape, sizes)
        return Cost(prod(sizes), calls, 0, _bits(node.operand_type(0)), doubles=_doubles(shape, sizes))
    steps = prod(sizes[loop] for loop in shape.reduction) if shape.parallel else 1
    work = sum(inner.name.startswith(("arith.", "math.")) for inner in shape.defined.values() if _is_work(inner))
    bits, doubles = _bits(node.result_type()), _doubles(shape, sizes)
    made = Cost(vector_calls=steps, elements=prod(sizes), dtype_bits=bits, doubles=doubles)
    return replace(made, vector_calls=made.vector_calls * max(work, 1), elements=made.elements * max(work, 1))


def _doubles(shape: Structure, sizes: list[int]) -> int:
    """Operations on f64, at each point of the loops."""
    return prod(sizes) * sum(map(_is_double, shape.defined.values()))


def _is_work(node: Node) -> bool:
    return node.name != "arith.constant"


def _multiplies(shape: Structure) -> bool:
    """Whether a body adds products to its output."""
    if not shape.reduction or len(shape.yields) != 1:
        return False
    total = shape.defined.get(shape.yields[0])
    if total is None or total.name not in _SUMS or shape.out_arguments[0] not in total.operands:
        return False
    terms = [shape.defined.get(number) for number in total.operands]
    return any(term is not None and term.name == _SUMS[total.name] for term in terms)


def _vector(shape: Structure, sizes: list[int]) -> int:
    """Length of a vector call: a column of the result, or all of it where it has one dimension."""
    output = shape.maps[-1]
    if not output:
        return prod(sizes)
    row = output[max(0, len(output) - 2)]
    return sizes[row.value] if row.kind == "dim" else 1
