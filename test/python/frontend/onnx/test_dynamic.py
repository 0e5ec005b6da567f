# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on tensors whose sizes are known at run time only, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support import check_numbers, feeds, import_onnx, interpret, node_model

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend.builder.dims import Dim, maximum, minimum
from tilewright.mlir import ir
from tilewright.reference.errors import InterpreterError

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def cut_model(op, inputs, sizes, *, outputs=1, opset=17, known=(), **attributes):
    """A model that cuts its inputs to sizes which are inputs too, so that no size is known, and applies an operator.

    Inputs in `known` are initializers and stay whole.
    """
    nodes, graph_inputs, weights, names, arrays = [], [], [], [], {}
    for i, (x, size) in enumerate(zip(inputs, sizes, strict=True)):
        name = f"x{i}"
        if i in known:
            weights.append(numpy_helper.from_array(x, name))
        else:
            arrays[name] = x
        if size is not None:
            arrays[f"n{i}"] = ints(*size)
            weights.append(numpy_helper.from_array(ints(*[0] * x.ndim), f"zero{i}"))
            nodes.append(helper.make_node("Slice", [name, f"zero{i}", f"n{i}"], [f"cut{i}"], name=f"cut_{i}"))
            name = f"cut{i}"
        names.append(name)
    for name, x in arrays.items():
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        graph_inputs.append(helper.make_tensor_value_info(name, kind, x.shape))
    results = [f"y{i}" for i in range(outputs)]
    nodes.append(helper.make_node(op, names, results, name="the_node", **attributes))
    graph = helper.make_graph(
        nodes, op, graph_inputs, [helper.make_empty_tensor_value_info(n) for n in results], weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model), arrays


def cut(op, inputs, sizes, **options):
    model, arrays = cut_model(op, inputs, sizes, **options)
    imported = check_numbers(model, arrays)
    return imported


# Sizes --------------------------------------------------------------------------------------------------------------


def test_sizes_know_themselves():
    with ir.Context(), ir.Location.unknown():
        block = ir.Module.create().body
        kind = ir.IndexType.get()
        with ir.InsertionPoint(block):
            attributes = {"value": ir.IntegerAttr.get(kind, 5)}
            a, b = (
                ir.Operation.create("arith.constant", results=[kind], attributes=attributes).result for _ in range(2)
            )
            n, m = Dim(a), Dim(b)
            assert n + 2 - n == 2
            assert (32 * n) // n == 32
            assert n * m == m * n
            assert (n * m * 4 + 8 * m) // (2 * n + 4) == 2 * m and (n * n - m * m) // (n + m) == n - m
            assert n + 0 is n and 1 * n is n and (n + 1) - 1 == n
            assert (n * 6 + m * 3) // 3 == 2 * n + m
            assert n != 1 and not n == 1 and n != 0 and n != n + 1 and n < n + 1 and n >= 0
            assert maximum(n, 0) is n and minimum(n, n + 3) is n and maximum(3, 5) == 5
            assert (n * 4) % 4 == 0
            assert len({n, n + 0, m}) == 2
            # Floors of the same quotient are the same size: strided convolutions with other windows and borders.
            assert (n - 1) // 2 + 1 == (n + 1) // 2 and (n + 4) // 4 - (n + 8) // 4 == -1 and (2 * n + 5) // 2 == n + 2
            assert ((n - 1) // 2 + 1 + 2 - 3) // 2 + 1 == ((n + 1) // 2 - 1) // 2 + 1 and (n - 1) // 2 + 1 >= 0
            for question in (lambda: n == 3, lambda: n < m, lambda: bool(n), lambda: int(n), lambda: n == m):
                with pytest.raises(UnsupportedError, match="known at run time only"):
                    question()


# Builder functions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes", [((2, 3, 4), (2, 3, 4)), ((1, 3, 1), (2, 1, 4)), ((2, 3, 4), (1, 1, 4)), ((0, 3, 1), (1, 1, 4))]
)
def test_elementwise_broadcasts_sizes_that_turn_out_to_be_one(sizes):
    cut("Add", [X, X * 2], sizes)
    cut("Less", [X, X[::-1].copy()], sizes)


def test_elementwise_with_static_shapes():
    cut("Mul", [X, X[0, 0]], [(1, 3, 4), None])
    cut("Mul", [X, np.array(3, np.float32)], [(1, 3, 4), None], known=[1])
    cut("Where", [X > 0, X, X[:, :1]], [(2, 3, 4), (2, 1, 4), None])
    cut("Cast", [X], [(2, 3, 2)], to=onnx.TensorProto.INT32)


def test_sizes_that_do_not_broadcast_stop_the_run():
    model, arrays = cut_model("Add", [X, X], [(2, 3, 4), (2, 2, 4)])
    with pytest.raises(InterpreterError, match="the_node.*another size"):
        interpret(import_onnx(model), arrays)


def test_products():
    rng = np.random.default_rng(1)
    w = rng.standard_normal((4, 5)).astype(np.float32)
    cut("MatMul", [X, w], [(2, 3, 3), (3, 5)])
    cut("MatMul", [X, w], [(1, 2, 4), None])
    cut("Gemm", [X[0], w, w[0]], [(2, 4), None, None], alpha=0.5)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceLogSumExp", "ReduceL2", "ReduceProd"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_reductions(op, keepdims):
    cut(op, [X, ints(-1, 0)], [(2, 2, 3), None], known=[1], keepdims=keepdims, opset=18)
    cut(op, [X, ints(-1, 0)], [(2, 2, 3), None], keepdims=keepdims, opset=18)
    cut(op, [X, ints(1)], [(2, 2, 3), None], keepdims=keepdims, opset=18)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg_extrema(op):
    tied = np.round(X)
    cut(op, [tied], [(2, 3, 4)], axis=1)
    cut(op, [tied], [(2, 3, 4)], axis=-1, keepdims=0, select_last_index=1)


def test_softmax_and_layer_normalization():
    cut("Softmax", [X], [(2, 2, 3)], axis=1)
    cut("LayerNormalization", [X, X[0, 0]], [(2, 2, 4), None], axis=-1)


def test_views():
    cut("Transpose", [X], [(2, 2, 3)], perm=[2, 0, 1])
    cut("Unsqueeze", [X, ints(0, 2)], [(2, 2, 3), None])
    cut("Unsqueeze", [X, ints(0, 2)], [(2, 2, 3), None], known=[1])
    cut("Squeeze", [X, ints(1)], [(2, 1, 3), None])
    cut("Squeeze", [X, ints(1)], [(2, 1, 3), None], known=[1])
    cut("Flatten", [X], [(2, 2, 3)], axis=2)


@pytest.mark.parametrize("shape", [(0, -1), (6, 2), (-1,), (2, 0, 1, 2)])
@pytest.mark.parametrize("known", [(), (1,)])
def test_reshape(shape, known):
    cut("Reshape", [X, ints(*shape)], [(2, 3, 2), None], known=known)


def test_a_reshape_that_does_not_fit_stops_the_run():
    model, arrays = cut_model("Reshape", [X, ints(5, 2)], [(2, 3, 2), None])
    with pytest.raises(InterpreterError, match="the_node: the elements do not fit"):
        interpret(import_onnx(model), arrays)


def test_movement():
    cut("Concat", [X, X, X], [(2, 3, 1), None, (2, 3, 3)], axis=2)
    cut("Concat", [X, X], [(0, 2, 3), (2, 2, 3)], axis=0)
    cut("Split", [X], [(2, 3, 3)], axis=2, outputs=2, opset=18, num_outputs=2)
    cut("Split", [X, ints(1, 0, 2)], [(2, 3, 4), None], axis=1, outputs=3)
    cut("Tile", [X, ints(2, 1, 3)], [(1, 3, 2), None])
    cut("Tile", [X, ints(2, 1, 3)], [(1, 3, 2), None], known=[1])
    cut("Expand", [X, ints(2, 3, 1)], [(1, 3, 4), None])
    cut("Expand", [X, ints(2, 3, 1)], [(1, 3, 4), None], known=[1])


@pytest.mark.parametrize("known", [(), (1, 2, 3, 4)])
@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([0, 1], [2, 3], [0, 1], [1, 1]),
        ([1], [9223372036854775807], [2], [2]),
        ([-1], [-4], [1], [-1]),
        ([-1], [-9223372036854775808], [-1], [-2]),
        ([1], [1], [0], [1]),
        ([50], [-50], [1], [-1]),
        ([-9], [-9], [1], [-1]),
    ],
)
def test_slice(starts, ends, axes, steps, known):
    cut("Slice", [X, *map(lambda v: ints(*v), (starts, ends, axes, steps))], [(2, 3, 3), *[None] * 4], known=known)


@pytest.mark.parametrize("known", [(), (1,)])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(mode, known):
    cut("Pad", [X, ints(0, 1, 2, 1, 0, -1)], [(2, 3, 4), None], known=known, mode=mode, opset=19)


def test_pad_with_a_value_and_axes():
    cut("Pad", [X, ints(1, 2), np.array(7, np.float32), ints(-1)], [(2, 3, 2), None, None, None], opset=18)
    cut("Pad", [X, ints(1, -2), np.array(7, np.float32), ints(0)], [(2, 3, 2), None, None, None], opset=18)


def test_gathers():
    index = ints(0, -1, 1)
    cut("Gather", [X, index], [(2, 3, 4), None], axis=1)
    cut("Gather", [X, index], [(2, 3, 4), (2,)], axis=0)
    cut("Gather", [X, index], [(2, 3, 4), None], axis=2, known=[1])
    cut("GatherElements", [X, ints(0, -1, 1, 1).reshape(1, 1, 4)], [(2, 3, 4), None], axis=1)
    cut("GatherElements", [X, ints(0, -1, 1, 1).reshape(1, 2, 2)], [(2, 2, 3), (1, 2, 2)], axis=2)
    cut("GatherND", [X, ints(0, 1, 1, -1).reshape(2, 2)], [(2, 3, 4), None])
    cut("GatherND", [X, ints(2, 1, 0, -1).reshape(2, 1, 2)], [(2, 3, 4), None], batch_dims=1)


def test_constants_and_triangles():
    cut("Shape", [X], [(2, 1, 3)])
    cut("Shape", [X], [(2, 1, 3)], start=-2)
    cut("Size", [X], [(2, 1, 3)])
    cut("EyeLike", [X[0]], [(2, 3)], k=1)
    cut("Trilu", [X, np.array(1, np.int64)], [(2, 2, 3), None])
    cut("Trilu", [X], [(2, 2, 3)], upper=0)


def test_center_crop_pad():
    cut("CenterCropPad", [X, ints(5, 1)], [(2, 2, 3), None], axes=[1, 2], opset=18)


def test_tensors_that_turn_out_to_be_empty():
    cut("Tile", [X, ints(2, 1, 3)], [(0, 3, 2), None])
    cut("Gather", [X, ints()], [(2, 0, 4), None], axis=1)
    cut("GatherElements", [X, np.zeros((2, 3, 4), np.int64)], [(2, 0, 1), (2, 0, 1)], axis=1)
    cut("Pad", [X, ints(1, 0, 1, -1, 1, -1)], [(0, 3, 1), None])
    cut("MatMul", [X, X.transpose(0, 2, 1).copy()], [(2, 3, 0), (2, 0, 3)])
    cut("Softmax", [X], [(2, 0, 4)], axis=1)


# Parameters that are inputs -----------------------------------------------------------------------------------------


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


def test_ranges():
    for kind, bounds in (
        (np.int64, (2, 14, 3)),
        (np.int32, (5, -4, -2)),
        (np.float32, (1, 3, 0.5)),
        (np.int16, (3, 3, 1)),
    ):
        run("Range", *(np.array(v, kind) for v in bounds))


def test_shapes_from_inputs():
    run("ConstantOfShape", ints(2, 0, 3))
    run("ConstantOfShape", ints(2, 3), value=helper.make_tensor("", onnx.TensorProto.INT8, [1], [3]))
    run("Expand", X[:, :1], ints(5, 2, 3, 4))
    run("Trilu", X, np.array(-1, np.int64))


def test_a_declared_shape_makes_the_result_static():
    model = node_model("Reshape", [X, ints(4, 6)])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y0", onnx.TensorProto.FLOAT, [4, 6]))
    imported = check_numbers(model, {"x0": X, "x1": ints(4, -1)})
    assert imported.outputs[0].shape == (4, 6)
    assert "?" not in str(imported.module)
    with pytest.raises(InterpreterError, match="the_Reshape: dimension 0 of the result is not 4"):
        interpret(import_onnx(model), {"x0": X, "x1": ints(6, 4)})


def test_shape_arithmetic_stays_known():
    """The shape of a cut tensor, joined with -1, gives static sizes back where they were static."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "n", "zero"], ["cut"]),
        helper.make_node("Shape", ["cut"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "one"], ["batch"]),
        helper.make_node("Concat", ["batch", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["cut", "target"], ["y"]),
    ]
    values = {"zero": ints(0), "one": ints(1), "rest": ints(-1)}
    graph = helper.make_graph(
        nodes,
        "shapes",
        [
            helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape),
            helper.make_tensor_value_info("n", onnx.TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["a", "b"])],
        [numpy_helper.from_array(v, k) for k, v in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    imported = check_numbers(model, {"x": X, "n": ints(1)})
    assert imported.outputs[0].shape == (-1, 12)


def test_what_would_give_an_unknown_rank_is_refused():
    model, _ = cut_model("Reshape", [X, ints(2, 12)], [(2, 3, 4), (2,)])
    with pytest.raises(UnsupportedError, match="number of elements of the shape is known at run time only"):
        import_onnx(model)


def test_contradictions_known_at_compile_time_are_errors():
    model, _ = cut_model("Concat", [X, X[:, :2]], [None, None], axis=2)
    with pytest.raises(UserError, match="do not fit"):
        import_onnx(model)


@pytest.mark.parametrize(("op", "factor"), [("ReduceProd", 1), ("ReduceSum", 0), ("ReduceMax", 0)])
def test_reduced_sizes_and_sizes_of_32_bits_stay_sizes(op, factor):
    """What tf2onnx writes: sizes are cast to int32, picked, reduced, cast back, and a reshape takes them."""
    sizes = {"ReduceProd": 2 * 3, "ReduceSum": 2 + 3, "ReduceMax": 3}[op]
    nodes = [
        helper.make_node("Shape", ["x"], ["long"]),
        helper.make_node("Cast", ["long"], ["shape"], to=onnx.TensorProto.INT32),
        helper.make_node("Gather", ["shape", "outer"], ["picked"], axis=0),
        helper.make_node(op, ["picked"], ["reduced"], keepdims=1),
        helper.make_node("Concat", ["reduced", "last"], ["target"], axis=0),
        helper.make_node("Cast", ["target"], ["wanted"], to=onnx.TensorProto.INT64),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]) if factor else helper.make_node("Neg", ["wanted"], ["y"]),
    ]
    values = {"outer": ints(0, 1), "last": np.array([4], np.int32)}
    kind = onnx.TensorProto.FLOAT if factor else onnx.TensorProto.INT64
    graph = helper.make_graph(
        nodes,
        "shapes",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["a", "b", 4])],
        [helper.make_tensor_value_info("y", kind, ["c", 4] if factor else [2])],
        [numpy_helper.from_array(v, k) for k, v in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=8)
    imported = import_onnx(model, symbolic=True)
    text = str(imported.module)
    assert "tensor.extract " not in text
    assert "linalg.generic" not in text or not factor
    (y,) = interpret(imported, {"x": X})
    np.testing.assert_array_equal(y, X.reshape(sizes, 4) if factor else [-sizes, -4])
