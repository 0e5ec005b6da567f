# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshape by a shape computed from the input's, of which an entry turns out to be 0, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from support import interpret

import tilewright as tw
from tilewright.frontend import import_onnx

N = "n"  # the first size of the input


def model_of(entries: list[int | str], dims: list[int | str], **attributes: int) -> onnx.ModelProto:
    """x [dims] reshaped to the entries."""
    constants = {f"c{i}": e for i, e in enumerate(entries) if e != N} | {"zero": 0}
    parts = [N if e == N else f"c{i}" for i, e in enumerate(entries)]
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "zero"], [N], axis=0),
        helper.make_node("Concat", parts, ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"], **attributes),
    ]
    x, y = (helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", dims), ("y", None)))
    weights = [numpy_helper.from_array(np.array([e], np.int64), name) for name, e in constants.items()]
    graph = helper.make_graph(nodes, "reshape", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def theirs(model: onnx.ModelProto, x: np.ndarray) -> tuple[int, ...]:
    return np.asarray(onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]).shape


CASES = [
    ([-1, N], [N, 4]),
    ([-1, N, 2], [N, 4]),
    ([2, -1, N], [N, 4, 2]),
    ([N, -1, 2], [N, 4]),
    ([-1, 2], [N, 4]),
]


@pytest.mark.parametrize(("entries", "dims"), CASES[:3])
def test_a_zero_copies_the_size_of_the_input(entries, dims) -> None:
    """Code for all sizes says that it does not serve this, and code of their own does as ONNX says."""
    model = model_of(entries, dims)
    compiled = tw.compile(model)
    for n in (3, 0):
        x = np.zeros((n, *dims[1:]), np.float32)
        assert compiled(x)["y"].shape == theirs(model, x)
    with pytest.raises(tw.UserError, match="copies the input's size .*compile with sizes='each' or shapes="):
        compiled.general(x)
    assert compiled.sizes == [{N: 0}]


@pytest.mark.parametrize(("entries", "dims"), [*CASES, ([2, N, 2], [N, 4])])
def test_some_elements(entries, dims) -> None:
    model = model_of(entries, dims)
    x = np.arange(np.prod([6, *dims[1:]]), dtype=np.float32).reshape(6, *dims[1:])
    (y,) = interpret(import_onnx(model, symbolic=True), {"x": x})
    assert y.shape == theirs(model, x) and np.array_equal(y.ravel(), x.ravel())


def test_a_zero_that_is_copied_as_0_needs_no_check() -> None:
    """The batch in its own place: an empty one keeps all sizes, where ONNX Runtime refuses -1 beside 0."""
    (y,) = interpret(import_onnx(model_of([N, -1, 2], [N, 4]), symbolic=True), {"x": np.zeros((0, 4), np.float32)})
    assert y.shape == (0, 2, 2)


def test_fixed_sizes_refuse_it() -> None:
    model = model_of([N, -1], [0, 4])
    with pytest.raises(tw.UserError, match="beside a size of 0, -1 may be any size; state it"):
        import_onnx(model)
