# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The generated slice that code for GPUs is checked on: kinds of kernels times element types times ragged shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

TYPES = {
    "f32": (TensorProto.FLOAT, np.float32),
    "f64": (TensorProto.DOUBLE, np.float64),
    "f16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "i64": (TensorProto.INT64, np.int64),
    "i32": (TensorProto.INT32, np.int32),
    "i16": (TensorProto.INT16, np.int16),
    "i8": (TensorProto.INT8, np.int8),
    "u64": (TensorProto.UINT64, np.uint64),
    "u32": (TensorProto.UINT32, np.uint32),
    "u16": (TensorProto.UINT16, np.uint16),
    "u8": (TensorProto.UINT8, np.uint8),
    "i1": (TensorProto.BOOL, np.bool_),
    "f8e4m3": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    "f8e5m2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
}
FLOATS = ("f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2")
INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
#: Relative to the largest magnitude of the result.
TOLERANCE = {"f32": 2e-5, "f64": 1e-12, "f16": 4e-3, "bf16": 3e-2, "f8e4m3": 0.0, "f8e5m2": 0.0}


@dataclass(frozen=True)
class Case:
    """A model and its inputs."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[np.ndarray, ...]
    dtype: str


def numbers(dtype: str, shape: Sequence[int], seed: int) -> np.ndarray:
    """Small numbers; every seventh float of a large array is an extreme one: infinite, NaN, -0, subnormal."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(TYPES[dtype][1])
    if dtype == "i1":
        return generator.random(shape) < 0.5
    if dtype not in FLOATS:
        return generator.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(kind)
    return generator.standard_normal(shape).astype(kind)


def with_extremes(array: np.ndarray) -> np.ndarray:
    """The array with infinities, NaN, zeros of both signs and a subnormal spread over it."""
    flat = array.reshape(-1).copy()
    extremes = np.array([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-41]).astype(array.dtype)
    places = np.arange(0, flat.size, 7)
    flat[places] = np.resize(extremes, places.size)
    return flat.reshape(array.shape)


def model(nodes: Sequence[onnx.NodeProto], inputs: Sequence[np.ndarray]) -> onnx.ModelProto:
    """A model of inputs a, b, ... and output y."""
    infos = [
        helper.make_tensor_value_info(chr(ord("a") + i), helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for i, x in enumerate(inputs)
    ]
    graph = helper.make_graph(list(nodes), "case", infos, [onnx.ValueInfoProto(name="y")])
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), strict_mode=True
    )


SHAPES = ((1,), (7,), (64,), (3, 5), (1, 1, 1), (2, 33, 17), (4, 128), (129, 31))
PRODUCTS = ((1, 1, 1), (1, 17, 5), (3, 64, 1), (13, 7, 29), (16, 16, 16), (33, 65, 31), (70, 40, 130), (128, 64, 128))
ROWS = ((1, 1), (3, 17), (5, 128), (33, 100), (2, 1025))


def _case(name: str, nodes: Sequence[onnx.NodeProto], inputs: Sequence[np.ndarray], dtype: str) -> Case:
    return Case(name, model(nodes, inputs), tuple(inputs), dtype)


def _elementwise() -> Iterator[Case]:
    for dtype in ("f32", "f64", "f16", "bf16", *INTEGERS):
        for shape in SHAPES:
            a, b = numbers(dtype, shape, 1), numbers(dtype, shape, 2)
            nodes = [
                helper.make_node("Add", ["a", "b"], ["s"]),
                helper.make_node("Mul", ["s", "b"], ["p"]),
                helper.make_node("Max", ["p", "a"], ["y"]),
            ]
            if dtype == "bf16":  # ONNX's Max takes it from opset 13 on, its inference does not
                nodes[2] = helper.make_node("Sub", ["p", "a"], ["y"])
            yield _case(f"elementwise-{dtype}-{_size(shape)}", nodes, (a, b), dtype)
    for shape in SHAPES:
        a, b = numbers("i1", shape, 1), numbers("i1", shape, 2)
        nodes = [
            helper.make_node("And", ["a", "b"], ["s"]),
            helper.make_node("Not", ["b"], ["n"]),
            helper.make_node("Xor", ["s", "n"], ["y"]),
        ]
        yield _case(f"elementwise-i1-{_size(shape)}", nodes, (a, b), "i1")
        for dtype in ("f8e4m3", "f8e5m2"):  # there is no arithmetic on them: what is computed is wider
            nodes = [
                helper.make_node("Cast", ["a"], ["w"], to=TensorProto.FLOAT16),
                helper.make_node("Add", ["w", "w"], ["d"]),
                helper.make_node("Cast", ["d"], ["y"], to=TYPES[dtype][0]),
            ]
            yield _case(f"elementwise-{dtype}-{_size(shape)}", nodes, (numbers(dtype, shape, 1),), dtype)


def _extremes() -> Iterator[Case]:
    for dtype in ("f32", "f16"):
        for op in ("Relu", "Exp", "Sqrt", "Tanh", "Sigmoid", "Abs", "Neg", "Floor", "Reciprocal"):
            a = with_extremes(numbers(dtype, (3, 37), 3))
            yield _case(f"extremes-{op}-{dtype}", [helper.make_node(op, ["a"], ["y"])], (a,), dtype)
        for op in ("Min", "Max", "Add", "Mul", "Div"):
            a, b = with_extremes(numbers(dtype, (3, 37), 3)), with_extremes(numbers(dtype, (37,), 4))
            yield _case(f"extremes-{op}-{dtype}", [helper.make_node(op, ["a", "b"], ["y"])], (a, b), dtype)


def _broadcast() -> Iterator[Case]:
    for dtype in ("f32", "i64"):
        for left, right in (((5, 1), (1, 9)), ((2, 1, 4), (3, 1)), ((1,), (6, 7)), ((4, 1, 1, 3), (2, 5, 1))):
            inputs = numbers(dtype, left, 1), numbers(dtype, right, 2)
            name = f"broadcast-{dtype}-{_size(left)}-{_size(right)}"
            yield _case(name, [helper.make_node("Add", ["a", "b"], ["y"])], inputs, dtype)


def _products() -> Iterator[Case]:
    for dtype in ("f32", "f64", "f16", "bf16"):
        for m, n, k in PRODUCTS:
            inputs = numbers(dtype, (m, k), 1), numbers(dtype, (k, n), 2)
            name = f"product-{dtype}-{m}x{n}x{k}"
            yield _case(name, [helper.make_node("MatMul", ["a", "b"], ["y"])], inputs, dtype)
    for dtype in ("f32", "f16"):
        inputs = numbers(dtype, (3, 2, 9, 20), 1), numbers(dtype, (2, 20, 11), 2)
        yield _case(f"product-batched-{dtype}", [helper.make_node("MatMul", ["a", "b"], ["y"])], inputs, dtype)
        inputs = numbers(dtype, (20, 9), 1), numbers(dtype, (11, 20), 2), numbers(dtype, (11,), 3)
        gemm = helper.make_node("Gemm", ["a", "b", "c"], ["y"], transA=1, transB=1, alpha=0.5)
        yield _case(f"product-transposed-{dtype}", [gemm], inputs, dtype)
    for left, right in (("i8", "i8"), ("u8", "i8")):
        inputs = numbers(left, (19, 40), 1), numbers(right, (40, 23), 2)
        node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
        yield _case(f"product-{left}-{right}", [node], inputs, "i32")
    for dtype in ("f8e4m3", "f8e5m2"):
        for m, n, k in PRODUCTS[3:]:
            scale = helper.make_node("Constant", [], ["s"], value_float=0.5)
            wide = [helper.make_node("DequantizeLinear", [x, "s"], [x * 2]) for x in "ab"]
            node = helper.make_node("MatMul", ["aa", "bb"], ["y"])
            inputs = numbers(dtype, (m, k), 1), numbers(dtype, (k, n), 2)
            yield _case(f"product-{dtype}-{m}x{n}x{k}", [scale, *wide, node], inputs, "f32")
    for dtype in ("i32", "i64", "u32", "u64"):
        inputs = numbers(dtype, (13, 29), 1), numbers(dtype, (29, 7), 2)
        yield _case(f"product-{dtype}", [helper.make_node("MatMul", ["a", "b"], ["y"])], inputs, dtype)


def _reductions() -> Iterator[Case]:
    for dtype in ("f32", "f64", "f16", "bf16", "i32", "i64", "u32", "u64", "i8", "u8"):
        for shape in ROWS:
            for op in ("ReduceMax",) if dtype in ("i8", "u8") else ("ReduceSum", "ReduceMax"):
                node = helper.make_node(op, ["a", "axes"], ["y"], keepdims=0)
                for axis in (0, 1):
                    axes = helper.make_node("Constant", [], ["axes"], value_ints=[axis])
                    name = f"{op}-{dtype}-{_size(shape)}-{axis}"
                    yield _case(name, [axes, node], (numbers(dtype, shape, 1),), dtype)


def _rows() -> Iterator[Case]:
    for dtype in ("f32", "f16", "bf16"):
        for shape in ROWS:
            a = numbers(dtype, shape, 1)
            yield _case(f"softmax-{dtype}-{_size(shape)}", [helper.make_node("Softmax", ["a"], ["y"])], (a,), dtype)
            weights = numbers(dtype, shape[-1:], 2), numbers(dtype, shape[-1:], 3)
            node = helper.make_node("LayerNormalization", ["a", "b", "c"], ["y"])
            yield _case(f"layernorm-{dtype}-{_size(shape)}", [node], (a, *weights), dtype)


def _movements() -> Iterator[Case]:
    for dtype in ("f32", "f64", "f16", "bf16", *INTEGERS, "i1"):
        a = numbers(dtype, (3, 5, 7), 1)
        transpose = helper.make_node("Transpose", ["a"], ["y"], perm=[2, 0, 1])
        yield _case(f"transpose-{dtype}", [transpose], (a,), dtype)
        concat = helper.make_node("Concat", ["a", "b"], ["y"], axis=1)
        yield _case(f"concat-{dtype}", [concat], (a, numbers(dtype, (3, 4, 7), 2)), dtype)
        rows = np.array([[2, 0], [1, 1]])
        yield _case(f"gather-{dtype}", [helper.make_node("Gather", ["a", "b"], ["y"], axis=1)], (a, rows), dtype)
    for dtype in ("f8e4m3", "f8e5m2"):
        transpose = helper.make_node("Transpose", ["a"], ["y"], perm=[2, 0, 1])
        yield _case(f"transpose-{dtype}", [transpose], (numbers(dtype, (3, 5, 7), 1),), dtype)
    for shape in ((3, 0), (0,)):
        a = numbers("f32", shape, 1)
        yield _case(f"empty-{_size(shape)}", [helper.make_node("Relu", ["a"], ["y"])], (a,), "f32")


def _convolutions() -> Iterator[Case]:
    for dtype in ("f32", "f16"):
        for channels, filters, size, window, more in (
            (1, 1, 5, 3, {}),
            (3, 8, 9, 3, {"pads": [1, 1, 1, 1]}),
            (4, 6, 11, 3, {"strides": [2, 2], "group": 2}),
            (8, 16, 7, 1, {}),
        ):
            a = numbers(dtype, (2, channels, size, size + 1), 1)
            groups = int(str(more.get("group", 1)))
            b = numbers(dtype, (filters, channels // groups, window, window), 2)
            name = f"conv-{dtype}-{channels}-{filters}-{size}-{window}"
            yield _case(name, [helper.make_node("Conv", ["a", "b"], ["y"], **more)], (a, b), dtype)
    for dtype in ("f32", "f64", "f16", "bf16", "i8", "u8"):
        a = numbers(dtype, (2, 3, 8, 9), 1)
        pool = helper.make_node("MaxPool", ["a"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        yield _case(f"maxpool-{dtype}", [pool], (a,), dtype)
    for dtype in ("f32", "f64", "f16", "bf16"):
        a = numbers(dtype, (2, 3, 8, 9), 1)
        yield _case(f"average-{dtype}", [helper.make_node("GlobalAveragePool", ["a"], ["y"])], (a,), dtype)
        pool = helper.make_node("AveragePool", ["a"], ["y"], kernel_shape=[2, 3], pads=[1, 0, 0, 2])
        yield _case(f"averages-{dtype}", [pool], (a,), dtype)


#: Images, filters and windows that reach over the border: channels, filters, sizes, window, attributes.
BORDERS: tuple[tuple[int, int, tuple[int, ...], tuple[int, ...], dict[str, object]], ...] = (
    (16, 24, (9, 11), (3, 3), {"pads": [1, 1, 1, 1]}),
    (64, 64, (14, 14), (3, 3), {"pads": [1, 1, 1, 1]}),
    (32, 40, (13, 9), (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    (16, 8, (10, 12), (3, 3), {"pads": [4, 3, 4, 5], "dilations": [4, 4]}),
    (24, 24, (7, 17), (5, 3), {"pads": [2, 1, 2, 1], "group": 24}),
    (16, 32, (8, 9), (3, 3), {"pads": [0, 2, 1, 0], "group": 4}),
    (8, 16, (33,), (5,), {"pads": [4, 0]}),
    (16, 16, (4, 5, 6), (3, 3, 3), {"pads": [1, 1, 1, 1, 1, 1]}),
    (3, 16, (20, 21), (7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    (128, 32, (3, 3), (3, 3), {"pads": [2, 2, 2, 2]}),
)


def _borders() -> Iterator[Case]:
    """Zeros around images are not in memory; the image has another reader, or is computed."""
    for dtype in ("f32", "f16", "bf16", "f64"):
        for number, (channels, filters, size, window, more) in enumerate(BORDERS):
            if dtype == "f64" and number % 3:
                continue
            a = numbers(dtype, (1 + number % 2, channels, *size), 1)
            b = numbers(dtype, (filters, channels // int(str(more.get("group", 1))), *window), 2)
            nodes = [helper.make_node("Conv", ["c" if number % 3 else "a", "b"], ["y"], **more)]
            if number % 3:
                nodes.insert(0, helper.make_node("Relu", ["a"], ["c"]))
            yield _case(f"border-{dtype}-{number}", nodes, (a, b), dtype)
    a, b = numbers("u8", (1, 16, 9, 10), 1), numbers("i8", (8, 16, 3, 3), 2)
    zero = helper.make_node("Constant", [], ["z"], value=helper.make_tensor("z", TensorProto.UINT8, [], [3]))
    for points in ([], ["z"]):
        node = helper.make_node("ConvInteger", ["a", "b", *points], ["y"], pads=[1, 1, 1, 1])
        yield _case(f"border-integer-{len(points)}", [zero, node] if points else [node], (a, b), "i32")


def _casts() -> Iterator[Case]:
    names = ("f32", "f16", "bf16", "f64", "i32", "i8", "u8", "i1", "f8e4m3", "f8e5m2", "u32", "i64")
    for source in names:
        for target in names:
            if source != target:
                node = helper.make_node("Cast", ["a"], ["y"], to=TYPES[target][0])
                yield _case(f"cast-{source}-{target}", [node], (abs(numbers(source, (5, 9), 1)),), target)


KINDS: dict[str, Callable[[], Iterator[Case]]] = {
    "elementwise": _elementwise,
    "extremes": _extremes,
    "broadcast": _broadcast,
    "products": _products,
    "reductions": _reductions,
    "rows": _rows,
    "movements": _movements,
    "convolutions": _convolutions,
    "borders": _borders,
    "casts": _casts,
}


def _size(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def cases(kinds: Sequence[str] = tuple(KINDS)) -> list[Case]:
    """All cases of some kinds."""
    return [case for kind in kinds for case in KINDS[kind]()]


def worst(ours: np.ndarray, theirs: np.ndarray, dtype: str) -> str | None:
    """What is wrong with a result; None where it is as near as its type allows."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
    if dtype not in FLOATS:
        return None if np.array_equal(ours, theirs) else f"{np.sum(ours != theirs)} elements differ"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return f"{np.sum(~(same | finite))} elements that are not finite differ"
    scale = np.abs(b[finite]).max(initial=1e-30)
    error = np.abs(a[finite] - b[finite]).max(initial=0.0) / scale
    return None if error <= TOLERANCE[dtype] else f"differs by {error:.2e} of the largest element"
