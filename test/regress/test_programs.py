# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that random testing found (tools/fuzz programs), each as small as it could be made.

The CPU must give what the reference interpreter gives, and the interpreter what NumPy gives.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

import tilewright as tw

CONTINUE = helper.make_node("Identity", ["go"], ["on"])


def check(nodes: list, inputs: dict, constants: dict, *expected, tolerance: float = 1e-5) -> None:
    """Compile nodes (opset 22) whose last outputs are the results, for both targets; compare with what is expected."""
    inputs = {name: np.asarray(value) for name, value in inputs.items()}
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in inputs.items()],
        [helper.make_value_info(name, helper.make_tensor_type_proto(1, None)) for name in nodes[-1].output],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    for output, want in zip(graph.output, expected, strict=True):
        output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.asarray(want).dtype)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    for target in ("reference", "cpu"):
        for got, want in zip(tw.compile(model, target=target)(**inputs), expected, strict=True):
            assert got.shape == np.shape(want), target
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=target)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_gather_along_one_element(shape: tuple[int, int]) -> None:
    """The position along an axis of size 1 that is stored (an input's) was that along another loop."""
    x = np.arange(3, dtype=np.float32).reshape(shape)
    pads = np.array([2, 1, 0, 1])
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode="edge")
    check([node], {"x": x}, {"pads": pads}, np.pad(x, ((2, 0), (1, 1)), mode="edge"))


def test_a_size_of_an_empty_part_counts() -> None:
    """Concat left out parts without elements, also those that have a size along its axis."""
    nodes = [
        helper.make_node("Slice", ["x", "s", "e", "axes"], ["z"]),
        helper.make_node("Concat", ["z", "x"], ["y"], axis=1),
    ]
    x = np.zeros((0, 17), np.float32)
    check(nodes, {"x": x, "axes": [1]}, {"s": [-10], "e": [13]}, np.zeros((0, 23), np.float32))


@pytest.mark.parametrize("trips", [0, 2])
def test_a_loop_that_stacks_empty_tensors(trips: int) -> None:
    """A slice at offset 0 of a dimension of size 0 is no valid IR."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Neg", ["s"], ["n"]), helper.make_node("Identity", ["n"], ["z"]), CONTINUE],
        "body",
        [info("i", 7, ()), info("go", 9, ()), info("s", 1, (0, 3))],
        [info("on", 9, ()), info("n", 1, (0, 3)), info("z", 1, (0, 3))],
    )
    node = helper.make_node("Loop", ["count", "", "x"], ["last", "stack"], body=body)
    x = np.zeros((0, 3), np.float32)
    check([node], {"x": x, "count": np.array(trips)}, {}, x, np.zeros((trips, 0, 3), np.float32))


@pytest.mark.parametrize("test", [False, True])
def test_results_of_a_choice_are_read_by_a_kernel(test: bool) -> None:
    """The buffer of an If's result was typed as a view of any strides, which no kernel takes."""
    x = np.arange(28, dtype=np.float32).reshape(4, 7)
    y, where = x[:, 2:5] * 2, x[:, :3] > 9
    sides = []
    for node in (
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["a"]),
        helper.make_node("Neg", ["y"], ["b"]),
    ):
        out = helper.make_tensor_value_info(node.output[0], 1, y.shape)
        sides.append(helper.make_graph([node], "side", [], [out]))
    nodes = [
        helper.make_node("If", ["test"], ["z"], then_branch=sides[0], else_branch=sides[1]),
        helper.make_node("Where", ["where", "z", "y"], ["r"]),
    ]
    expected = np.where(where, x[:, 1:4] if test else -y, y)
    inputs = {"x": x, "y": y, "where": where, "test": np.array(test)}
    check(nodes, inputs, {"start": [1], "end": [4], "axis": [1]}, expected)


def test_a_part_that_begins_at_the_end() -> None:
    """A slice at offset 2 of 2 elements is no valid IR, also where its size is only known to be 0 at run time."""
    nodes = [
        helper.make_node("Split", ["x", "sizes"], ["a", "b"]),
        helper.make_node("Slice", ["a", "from", "to"], ["c"]),
        helper.make_node("Concat", ["b", "c", "x"], ["y"], axis=0),
    ]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(nodes, {"x": x, "sizes": [2, 0]}, {"from": [2], "to": [9]}, x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_the_extremum_of_a_row_with_nan(kind: str, dtype: type) -> None:
    """NaN equals nothing, so that the position was one outside the axis."""
    x = np.array([[1, np.nan, 3], [np.nan, np.nan, np.nan], [3, 2, np.nan], [1, 1, 1]], dtype)
    for last, expected in enumerate(([1, 0, 2, 0], [1, 2, 2, 2])):
        node = helper.make_node(kind, ["x"], ["y"], axis=1, keepdims=0, select_last_index=last)
        check([node], {"x": x}, {}, np.array(expected, np.int64))


def test_a_scalar_gets_a_shape_at_run_time() -> None:
    """A tensor without dimensions cannot be cast to one with a dimension of unknown size."""
    x = np.float32(3)
    check([helper.make_node("Reshape", ["x", "shape"], ["y"])], {"x": x, "shape": [1, 1]}, {}, x.reshape(1, 1))


def test_a_result_in_a_part_of_a_tensor_is_read() -> None:
    """One step of a recurrence wrote its state into a slice; the kernel that read it wanted a tensor of its own."""
    choose = np.random.default_rng(0)
    shapes = {"x": (1, 1, 1), "w": (2, 8, 1), "r": (2, 8, 2), "b": (2, 16), "h": (2, 1, 2)}
    inputs = {name: choose.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    attributes = {"direction": "bidirectional", "hidden_size": 2}
    node = helper.make_node("LSTM", ["x", "w", "r", "b", "lengths", "h"], ["y", "last"], **attributes)
    wide = {name: value.astype(np.float32) for name, value in inputs.items()}
    states = [_lstm_step(*(wide[name][d] for name in "wrbh"), wide["x"][0]) for d in range(2)]
    expected = np.stack(states).astype(np.float16)
    check([node], inputs, {"lengths": np.array([1], np.int32)}, expected[None], expected, tolerance=2e-2)


def _lstm_step(w, r, b, h, x):
    """The first hidden state, from the cell state 0."""
    i, o, _, c = np.split(x @ w.T + h @ r.T + b[:8] + b[8:], 4, axis=1)
    return np.tanh(np.tanh(c) / (1 + np.exp(-i))) / (1 + np.exp(-o))


def test_a_loop_state_without_elements_in_another_shape() -> None:
    """Reshape looked for blocks of equal size in two shapes of no elements, of a value that a loop had made."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Neg", ["s"], ["n"]), CONTINUE],
        "body",
        [info("i", 7, []), info("go", 9, []), info("s", 1, [4, 0, 2])],
        [info("on", 9, []), info("n", 1, [4, 0, 2])],
    )
    nodes = [
        helper.make_node("Loop", ["trips", "", "x"], ["t"], body=body),
        helper.make_node("Reshape", ["t", "to"], ["y"], allowzero=1),
    ]
    empty = np.empty((4, 0, 2), np.float32)
    constants = {"trips": np.array(3), "to": np.array([0, 0, 0])}
    check(nodes, {"x": empty}, constants, np.empty((0, 0, 0), np.float32))


def test_gather_from_one_element() -> None:
    """A table without dimensions was loaded along its dimension 0."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axes"], ["row"]),
        helper.make_node("GatherND", ["row", "at"], ["y"]),
    ]
    check(nodes, {"x": np.float32(3)}, {"axes": [0], "at": np.zeros((3, 1), np.int64)}, np.full(3, 3, np.float32))


def test_a_part_of_one_element_by_run_time_pads() -> None:
    """A dimension of size 1 that is not stored was cut to a size known at run time only."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axes"], ["row"]),
        helper.make_node("Pad", ["row", "pads"], ["y"], mode="reflect"),
    ]
    inputs = {"x": np.float32(3), "pads": np.array([0, 2])}
    check(nodes, inputs, {"axes": np.array([0])}, np.full(3, 3, np.float32))


@pytest.mark.parametrize("most", [None, 0])
def test_suppression_that_keeps_nothing(most: int | None) -> None:
    """Rows of a result that has none were written behind a test: the compilation ended with an error of MLIR."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 2, 2]]], np.float32)
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", *["most"] * (most is not None)], ["y"])
    constants = {} if most is None else {"most": np.array([most])}
    scores = np.array([[[3, 1], [2, 4]]], np.float32)
    check([node], {"boxes": boxes, "scores": scores}, constants, np.zeros((0, 3), np.int64))
