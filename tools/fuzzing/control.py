# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More operators of random programs: choices, loops, and results whose sizes depend on data."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from onnx import TensorProto, helper

from .families import NUMBERS, numpy_type
from .graphs import BOOL, FLOATS, SIGNED, Graph, Value

_UNARY = ("Neg", "Abs", "Identity")


def _step(g: Graph, x: str, y: str, result: str) -> list:
    """Nodes from x and y, both of one shape, to a result of it."""
    kind = g.choose.choice(("Add", "Sub", "Max", "Min"))
    return [
        helper.make_node(g.choose.choice(_UNARY), [x], [f"{result}_a"]),
        helper.make_node(kind, [f"{result}_a", y], [result]),
    ]


def branch(g: Graph) -> None:
    """If: by an input, or by a constant."""
    x = g.pick((*FLOATS, *SIGNED))
    y = g.like(x, x.shape)
    test = g.new(BOOL, ())
    at = len(g.nodes)
    bodies = {}
    for side in ("then", "else"):
        name = f"b{at}_{side}"
        out = helper.make_tensor_value_info(name, x.dtype, x.shape)
        bodies[f"{side}_branch"] = helper.make_graph(_step(g, x.name, y.name, name), side, [], [out])
    node = helper.make_node("If", [test.name], [f"v{len(g.values)}_{at}_0"], **bodies)
    g.use(x, y)
    exact = x.exact and y.exact and x.dtype in SIGNED
    g.add(node, {node.output[0]: (x.dtype, x.shape)}, exact)


def loop(g: Graph) -> None:
    """Loop with a state, a value from outside, and the states stacked."""
    x = g.pick((*FLOATS, *SIGNED))
    y = g.like(x, x.shape)
    trips, at = g.choose.choice((0, 1, 3)), len(g.nodes)
    info = helper.make_tensor_value_info
    inputs = [info(f"i{at}", TensorProto.INT64, ()), info(f"go{at}", BOOL, ()), info(f"s{at}", x.dtype, x.shape)]
    nodes = [*_step(g, f"s{at}", y.name, f"n{at}"), helper.make_node("Identity", [f"n{at}"], [f"z{at}"])]
    nodes.append(helper.make_node("Identity", [f"go{at}"], [f"on{at}"]))
    outputs = [info(f"on{at}", BOOL, ()), info(f"n{at}", x.dtype, x.shape), info(f"z{at}", x.dtype, x.shape)]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    count = g.parameter(np.array(trips, np.int64))
    names = [f"v{len(g.values)}_{at}_{i}" for i in range(2)]
    node = helper.make_node("Loop", [count.name, "", x.name], names, body=body)
    g.use(y)
    exact = x.exact and y.exact and x.dtype in SIGNED
    g.add(node, {names[0]: (x.dtype, x.shape), names[1]: (x.dtype, (trips, *x.shape))}, exact)


def scan(g: Graph) -> None:
    """Scan over an axis, forward or backward, with a state and what each step gives."""
    x = g.pick((*FLOATS, *SIGNED), lambda v: v.rank > 0 and 0 not in v.shape, low=1)
    axis, back, at = g.choose.randrange(x.rank), g.choose.randint(0, 1), len(g.nodes)
    row = (*x.shape[:axis], *x.shape[axis + 1 :])
    start = g.new(x.dtype, row)
    info = helper.make_tensor_value_info
    inputs = [info(f"s{at}", x.dtype, row), info(f"r{at}", x.dtype, row)]
    nodes = [*_step(g, f"s{at}", f"r{at}", f"n{at}"), helper.make_node("Neg", [f"n{at}"], [f"z{at}"])]
    outputs = [info(f"n{at}", x.dtype, row), info(f"z{at}", x.dtype, row)]
    names = [f"v{len(g.values)}_{at}_{i}" for i in range(2)]
    place = g.choose.randrange(x.rank)
    more = {"scan_input_axes": [axis], "scan_input_directions": [back], "scan_output_axes": [place]}
    more["scan_output_directions"] = [g.choose.randint(0, 1)]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    node = helper.make_node("Scan", [start.name, x.name], names, body=body, num_scan_inputs=1, **more)
    g.use(x, start)
    stacked = (*row[:place], x.shape[axis], *row[place:])
    g.add(node, {names[0]: (x.dtype, row), names[1]: (x.dtype, stacked)}, x.exact and x.dtype in SIGNED)


def steps(g: Graph) -> None:
    """Range."""
    dtype = g.choose.choice((TensorProto.FLOAT, TensorProto.DOUBLE, *SIGNED[1:]))
    start, delta, count = g.choose.randint(-4, 4), g.choose.choice((1, 2, -1, -3)), g.choose.choice((0, 1, 5, 16))
    kind = numpy_type(dtype)
    ends = [g.parameter(np.array(n, kind)) for n in (start, start + delta * count, delta)]
    name = g.open("Range", ends)
    g.close(_tail(g, name), dtype, 1)


def places(g: Graph) -> None:
    """NonZero, and what stands there."""
    x = g.pick((*NUMBERS, BOOL), lambda v: v.exact, low=1)
    found = g.open("NonZero", [x])
    if g.choose.random() < 0.5:
        g.close(found, TensorProto.INT64, 2)
        return
    rows = g.open("Transpose", [found], perm=[1, 0])
    g.close(_tail(g, g.open("GatherND", [x, rows]), x), x.dtype, 1)


def compress(g: Graph) -> None:
    """Compress along an axis or of all elements, then a function or sum of what is left."""
    x = g.pick((*FLOATS, *SIGNED), lambda v: 0 not in v.shape, low=1)
    if g.choose.random() < 0.5:
        axis = g.axis(x)
        keep = g.new(BOOL, (x.shape[axis],))
        g.close(_tail(g, g.open("Compress", [x, keep], axis=axis), x), x.dtype, x.rank)
    else:
        keep = g.new(BOOL, (g.choose.randint(1, min(8, prod(x.shape))),))
        g.close(_tail(g, g.open("Compress", [x, keep]), x), x.dtype, 1)


def unique(g: Graph) -> None:
    """The different elements, sorted or as they come."""
    x = g.pick((*FLOATS[:2], *SIGNED), lambda v: v.exact and 0 not in v.shape)
    if x.rank and g.choose.random() < 0.4:
        g.close(g.open("Unique", [x], axis=g.axis(x), sorted=g.choose.randint(0, 1)), x.dtype, x.rank)
    else:
        g.close(g.open("Unique", [x], sorted=g.choose.randint(0, 1)), x.dtype, 1)


def _tail(g: Graph, name: str, x: Value | None = None) -> str:
    """Now and then a function of a result of open sizes."""
    if x is not None and x.dtype not in (*FLOATS, *SIGNED):
        return name
    for _ in range(g.choose.randint(0, 2)):
        kind = g.choose.choice((*_UNARY, "Add"))
        name = g.open(kind, [name, name] if kind == "Add" else [name])
    return name


CONTROL: tuple[Callable[[Graph], None], ...] = (branch, loop, scan, steps, places, compress, unique)
