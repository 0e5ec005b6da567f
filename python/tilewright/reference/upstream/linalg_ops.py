# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `linalg` dialect: every structured op is `linalg.generic`, its named forms included.

The body is evaluated once, over arrays that cover the iteration space (views.py). A reduction whose body combines the
output with something that does not read it is evaluated first and combined afterwards with a NumPy reduction, and
as a matrix product where that something is a product (contraction.py). Any other reduction body (an arg-max, say)
runs once per point of the reduced loops, vectorised over the parallel ones. A body with branches runs point by point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.mlir._mlir_libs import _mlirDialectsLinalg as linalg
from tilewright.reference.affine import evaluate, plain_dim, read_map
from tilewright.reference.errors import InterpreterError
from tilewright.reference.machine import execute
from tilewright.reference.program import Node
from tilewright.reference.registry import handles, terminators
from tilewright.reference.upstream import views
from tilewright.reference.upstream.contraction import contract, reduce_with

terminators("linalg.yield")

COMBINERS = frozenset(
    f"arith.{name}"
    for name in "addf mulf maximumf minimumf maxnumf minnumf addi muli maxsi minsi maxui minui andi ori xori".split()
)
_PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}


@dataclass
class Structure:
    """What never changes about a structured op."""

    maps: list[views.Map]
    loops: int
    inputs: int
    parallel: list[int]
    reduction: list[int]
    defined: dict[int, Node]  # node that defines each value of the body
    effects: list[Node]  # nodes that are run for what they do (`cf.assert`)
    branches: bool  # some node has regions
    yields: tuple[int, ...]
    out_arguments: tuple[int, ...]
    ahead: int = 0  # loops around, over copies of all there is: those of the op, and its indices, come behind them


def read_structure(node: Node) -> Structure:
    """Return the structure of a linalg op."""
    attributes = linalg.get_indexing_maps(node.op)
    if attributes is None:
        raise InterpreterError(f"{node.name} has no indexing maps")
    affine_maps = [attribute.value for attribute in attributes]
    maps = [read_map(map_) for map_ in affine_maps]
    loops = affine_maps[0].n_dims if affine_maps else 0
    outputs = len(node.op.operands) - _inputs(node)
    used = {d for map_ in maps[len(maps) - outputs :] for d in _dims(map_)}
    *nodes, ending = node.body.nodes
    return Structure(
        maps=maps,
        loops=loops,
        inputs=_inputs(node),
        parallel=sorted(used),
        reduction=[d for d in range(loops) if d not in used],
        defined={number: inner for inner in nodes for number in inner.results},
        effects=[inner for inner in nodes if not inner.results],
        branches=any(any(inner.regions) for inner in nodes),
        yields=ending.operands,
        out_arguments=node.body.arguments[len(node.body.arguments) - outputs :],
    )


def _inputs(node: Node) -> int:
    segments = node.attribute("operandSegmentSizes")
    if segments is not None:
        return segments[0]
    return len(node.operands) - 1  # linalg.transpose, broadcast: one input, one init


def _dims(terms: Sequence[Any]) -> set[int]:
    out: set[int] = set()
    for term in terms:
        out |= {term.value} if term.kind == "dim" else _dims(term.parts)
    return out


@dataclass
class Body:
    """Evaluates values of a body on demand; ``point`` fixes the reduced loops where they run one by one."""

    frame: Any
    node: Node
    structure: Structure
    sizes: list[int]
    values: dict[int, Any]
    point: dict[int, int] = field(default_factory=dict)

    def value(self, number: int) -> Any:
        """Return the value numbered ``number``, as a scalar or an array over the loops."""
        if number not in self.values:
            inner = self.structure.defined.get(number)
            if inner is None:
                return self.frame.values[number]
            self._evaluate(inner)
        return self.values[number]

    def _evaluate(self, inner: Node) -> None:
        if inner.name == "linalg.index":
            results = self._index(inner.op.attributes["dim"].value + self.structure.ahead)
        else:
            operands = [self.value(number) for number in inner.operands]
            if inner.name == "tensor.extract":
                operands[1:1] = [self._index(loop) for loop in range(self.structure.ahead)]
            results = execute(self.frame, inner, operands)
        for number, value in zip(inner.results, [results] if len(inner.results) == 1 else results, strict=True):
            self.values[number] = value

    def _index(self, d: int) -> Any:
        return np.int64(self.point[d]) if d in self.point else views.loop_index(d, self.sizes)

    def reads_output(self, number: int) -> bool:
        """True when a value depends on an output argument."""
        if number in self.structure.out_arguments:
            return True
        inner = self.structure.defined.get(number)
        return inner is not None and any(self.reads_output(operand) for operand in inner.operands)


def structured(frame: Any, node: Node, *operands: Any) -> Any:
    """Run a structured op on tensors (returns new ones) or memrefs (writes them)."""
    shape = node.once("structure", lambda: read_structure(node))
    arrays = [np.asarray(operand) for operand in operands]
    sizes = views.loop_sizes(shape.maps, [array.shape for array in arrays], shape.loops)
    seen = [views.over_loops(array, map_, sizes) for array, map_ in zip(arrays, shape.maps, strict=True)]
    outputs = arrays[shape.inputs :]
    if shape.branches:
        results = _point_by_point(frame, node, shape, sizes, seen[: shape.inputs], outputs)
    else:
        results = _at_once(frame, node, shape, sizes, seen, outputs)
    if not node.results:
        for target, result in zip(outputs, results, strict=True):
            target[...] = result
        return None
    return results[0] if len(results) == 1 else results


def _at_once(
    frame: Any, node: Node, shape: Structure, sizes: list[int], seen: list[np.ndarray], outputs: list[np.ndarray]
) -> list[np.ndarray]:
    """Evaluate the body over arrays."""
    body = Body(frame, node, shape, sizes, dict(zip(node.body.arguments, seen, strict=True)))
    for effect in shape.effects:
        execute(frame, effect, [body.value(number) for number in effect.operands])
    values = _results(body, seen[shape.inputs :])
    maps = shape.maps[shape.inputs :]
    return [_store(*each, sizes, shape) for each in zip(values, outputs, maps, strict=True)]


def _point_by_point(
    frame: Any, node: Node, shape: Structure, sizes: list[int], inputs: list[np.ndarray], outputs: list[np.ndarray]
) -> list[np.ndarray]:
    """Run a body with branches or loops for one point after the other."""
    results = [np.array(output) for output in outputs]
    maps = shape.maps[shape.inputs :]
    before = frame.point
    for point in np.ndindex(*sizes):
        frame.point = point
        given = [array[tuple(p if n > 1 else 0 for p, n in zip(point, array.shape, strict=True))] for array in inputs]
        slots = [tuple(int(evaluate(term, point)) for term in map_) for map_ in maps]
        values = frame.run(node.body, [*given, *(out[slot] for out, slot in zip(results, slots, strict=True))])
        for out, slot, value in zip(results, slots, values, strict=True):
            out[slot] = value
    frame.point = before
    return results


@handles("linalg.index")
def index(frame: Any, node: Node) -> Any:
    """The loop counter, where a body runs point by point."""
    return np.int64(frame.point[node.op.attributes["dim"].value])


def _results(body: Body, initial: list[np.ndarray]) -> list[Any]:
    """Return the final value of each output over the parallel loops (size 1 along reduced ones)."""
    structure = body.structure
    if not structure.reduction:
        return [body.value(number) for number in structure.yields]
    steps = [_reduction(body, number, argument) for number, argument in _yielded(structure)]
    if any(step is None for step in steps):
        return _one_by_one(body, initial)
    return [_combine(body, step, init) for step, init in zip(steps, initial, strict=True)]


def _yielded(structure: Structure) -> list[tuple[int, int]]:
    return list(zip(structure.yields, structure.out_arguments, strict=True))


def _reduction(body: Body, number: int, argument: int) -> tuple[Node, int] | None:
    """Return (combiner, what it combines with the output), or None when the body has another form."""
    combiner = body.structure.defined.get(number)
    if combiner is None or combiner.name not in COMBINERS or argument not in combiner.operands:
        return None
    other = combiner.operands[1 - combiner.operands.index(argument)]
    return None if body.reads_output(other) else (combiner, other)


def _combine(body: Body, step: tuple[Node, int], init: np.ndarray) -> np.ndarray:
    combiner, other = step
    structure, sizes = body.structure, body.sizes
    if any(sizes[d] == 0 for d in structure.reduction):
        return init
    product = body.structure.defined.get(other)
    if product is not None and product.name == _PRODUCTS.get(combiner.name):
        x, y = (_over(body.value(operand), sizes) for operand in product.operands)
        return contract(x, y, sizes, structure.reduction, init)
    return reduce_with(combiner.name, _over(body.value(other), sizes), sizes, structure.reduction, init)


def _over(value: Any, sizes: list[int]) -> np.ndarray:
    """Give a scalar the rank of the iteration space."""
    array = np.asarray(value)
    return array if array.ndim == len(sizes) else array.reshape((1,) * len(sizes))


def _one_by_one(body: Body, initial: list[np.ndarray]) -> list[np.ndarray]:
    """Run the body for each point of the reduced loops in order, over all parallel points at once."""
    structure, current = body.structure, [np.array(init) for init in initial]
    space = [body.sizes[d] for d in structure.reduction]
    arguments = body.node.body.arguments[: structure.inputs]
    parallel = [1 if d in structure.reduction else n for d, n in enumerate(body.sizes)]
    for position in np.ndindex(*space):
        point = dict(zip(structure.reduction, map(int, position), strict=True))
        values = {number: _at(body.values[number], point) for number in arguments}
        values.update(zip(structure.out_arguments, current, strict=True))
        inner = Body(body.frame, body.node, structure, body.sizes, values, point)
        current = [np.broadcast_to(inner.value(number), parallel) for number in structure.yields]
    return current


def _at(array: np.ndarray, point: dict[int, int]) -> np.ndarray:
    """Fix the loops of ``point``, keeping them with size 1."""
    index = [slice(None)] * array.ndim
    for d, i in point.items():
        if array.shape[d] > 1:
            index[d] = slice(i, i + 1)
    return array[tuple(index)]


def _store(value: Any, output: np.ndarray, map_: views.Map, sizes: list[int], structure: Structure) -> np.ndarray:
    """Arrange a result over the loops as the output's map says."""
    extent = [1 if d in structure.reduction else n for d, n in enumerate(sizes)]
    full = np.broadcast_to(np.asarray(value).astype(output.dtype, copy=False), extent)
    dims = [plain_dim(term) for term in map_]
    if None not in dims and sorted(d for d in dims if d is not None) == structure.parallel:
        order = [d for d in dims if d is not None] + structure.reduction
        return full.transpose(order).reshape(output.shape)
    out = np.array(output)
    out[views.index_arrays(out, map_, extent)] = full
    return out


for _name in (
    "generic fill copy elementwise map reduce transpose broadcast matmul batch_matmul batch_reduce_matmul contract "
    "matvec vecmat dot batch_matvec batch_vecmat mmt4d batch_mmt4d quantized_matmul quantized_batch_matmul "
    "add sub mul div div_unsigned max min exp log abs ceil floor negf reciprocal round sqrt rsqrt square tanh erf "
    "powf select conv_1d conv_2d conv_3d conv_1d_nwc_wcf conv_1d_ncw_fcw conv_2d_nhwc_hwcf "
    "conv_2d_nhwc_fhwc conv_2d_nchw_fchw conv_2d_ngchw_fgchw conv_2d_ngchw_gfchw conv_2d_nhwgc_gfhwc "
    "conv_3d_ndhwc_dhwcf conv_3d_ncdhw_fcdhw depthwise_conv_1d_nwc_wc depthwise_conv_1d_ncw_cw "
    "depthwise_conv_1d_nwc_wcm depthwise_conv_2d_nhwc_hwc depthwise_conv_2d_nhwc_hwcm depthwise_conv_2d_nchw_chw "
    "pooling_nhwc_sum pooling_nhwc_max pooling_nhwc_min pooling_nchw_sum pooling_nchw_max pooling_nwc_sum "
    "pooling_nwc_max pooling_ncw_sum pooling_ncw_max pooling_ndhwc_sum pooling_ndhwc_max"
).split():
    handles(f"linalg.{_name}")(structured)
