# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scattering operators beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, compare, feeds, interpret, node_model

from models._graph import Graph
from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx
from tilewright.reference.errors import InterpreterError

_RANDOM = np.random.default_rng(6)


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize("op", ["ScatterElements", "Scatter"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(op, axis):
    extent = (4, 5)[axis]
    indices = np.argsort(_RANDOM.random((4, 5)), axis)[:2, :3] % extent - extent * (axis == 1)
    run(op, random(4, 5), indices, random(2, 3), axis=axis, opset=10 if op == "Scatter" else 18)


@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
def test_scatter_elements_reduces_duplicates(reduction):
    indices = _RANDOM.integers(0, 4, (6, 5))
    run("ScatterElements", random(4, 5), indices, random(6, 5), reduction=reduction, opset=18)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("depth", [1, 2])
def test_scatter_nd(reduction, depth):
    indices = np.array([[0, 1], [2, 2], [3, 0]])[:, :depth]
    run("ScatterND", random(4, 3, 2), indices, random(3, *(4, 3, 2)[depth:]), reduction=reduction, opset=18)


def at_one_place(shape, axis, **attributes):
    """A model that scatters to a place along `axis` that a run brings, broadcast to all elements of a slice."""
    g = Graph("place", 18)
    slice_ = [1 if d == axis % len(shape) else n for d, n in enumerate(shape)]
    x, updates = g.input("x", np.float32, shape), g.input("updates", np.float32, slice_)
    place = g.input("place", np.int64, [1])
    places = g.op("Expand", g.op("Reshape", place, g.const([1] * len(shape))), g.const(slice_))
    g.output(g.op("ScatterElements", x, places, updates, axis=axis, **attributes), "y", np.float32, shape)
    return g.model()


@pytest.mark.parametrize("shape", [[3, 5, 2], [1, 4, 1], [7, 1, 1]])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_place_is_a_slice(shape, axis):
    """No element is searched for: a slice is written. Places may count from the end; wrong ones stop the run."""
    model = at_one_place(shape, axis)
    assert "tensor.insert_slice" in str(import_onnx(model, many_threads=True).module)
    updates = random(*(1 if d == axis % 3 else n for d, n in enumerate(shape)))
    for place in (0, shape[axis] - 1, -shape[axis]):
        check_numbers(model, {"x": random(*shape), "updates": updates, "place": np.array([place])})
    for place in (shape[axis], -shape[axis] - 1):
        with pytest.raises(InterpreterError, match="an index lies outside of the data"):
            interpret(import_onnx(model), {"x": random(*shape), "updates": updates, "place": np.array([place])})


@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
def test_one_place_is_reduced(reduction):
    model = at_one_place([3, 5, 2], 1, reduction=reduction)
    check_numbers(model, {"x": random(3, 5, 2), "updates": random(3, 1, 2), "place": np.array([-2])})


@pytest.mark.parametrize("many_threads", [False, True])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_one_row(reduction, many_threads):
    """ScatterND of one index is a slice, too."""
    inputs = [random(4, 3, 2), np.array([[2]]), random(1, 3, 2)]
    model = node_model("ScatterND", inputs, reduction=reduction, opset=18)
    expected = inputs[0].copy()
    expected[2] = inputs[2][0] + (expected[2] if reduction == "add" else 0)
    imported = import_onnx(model, many_threads=many_threads)
    assert "tensor.insert_slice" in str(imported.module)
    compare(interpret(imported, feeds(model, inputs)), [expected], 1e-6, 0)


def test_scatter_of_bool_is_logical():
    x, indices, updates = np.array([True, False]), np.array([0, 0, 1]), np.array([True, True, False])
    model = node_model("ScatterElements", [x, indices, updates], reduction="add", opset=18)
    (got,) = interpret(import_onnx(model), feeds(model, [x, indices, updates]))
    assert got.tolist() == [True, False]


def test_an_index_out_of_range_stops_the_run():
    inputs = [random(3), np.array([3]), random(1)]
    model = node_model("ScatterElements", inputs, opset=18)
    with pytest.raises(InterpreterError, match="an index lies outside of the data"):
        interpret(import_onnx(model), feeds(model, inputs))


def test_scatter_refuses_ranks_that_differ():
    with pytest.raises(UserError, match="data has 1 dimensions, indices 2"):
        import_onnx(_unchecked([random(3), np.array([[1]]), random(1)]))


def test_scatter_refuses_what_reaches_beyond_the_data():
    with pytest.raises(UserError, match="updates: sizes"):
        import_onnx(_unchecked([random(3), np.array([1]), random(2)]))
    with pytest.raises(UserError, match="reach beyond data"):
        import_onnx(_unchecked([random(3, 2), np.zeros((1, 3), np.int64), random(1, 3)]))


def _unchecked(inputs):
    from onnx import helper

    infos = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for i, x in enumerate(inputs)
    ]
    node = helper.make_node("ScatterElements", [i.name for i in infos], ["y"], name="the_node")
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", 1, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [1, -2])
def test_tensor_scatter(mode, axis):
    cache, update = random(2, 3, 5, 4), random(2, 3, 5, 4)
    start = np.array([1, 0] if mode == "linear" else [4, 2])
    length = 2
    update = update[:, :length] if axis == 1 else update[:, :, :length]
    start = start % (3 if axis == 1 else 5)
    inputs = [cache, update, start]
    model = node_model("TensorScatter", inputs, opset=24, axis=axis, mode=mode)
    expected = cache.copy()
    for batch in range(2):
        for t in range(length):
            place = (start[batch] + t) % cache.shape[axis]
            np.moveaxis(expected[batch], axis - 1 if axis > 0 else axis, 0)[place] = np.moveaxis(
                update[batch], axis - 1 if axis > 0 else axis, 0
            )[t]
    compare(interpret(import_onnx(model), feeds(model, inputs)), [expected], 0, 0)
