# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators on every element type that ONNX allows them, beside onnx's reference evaluator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support import check_numbers, feeds, interpret, node_model, normalize

from tilewright.frontend import import_onnx
from tilewright.frontend.builder.dtypes import highest, is_float, lowest, wrapped

OPSET = 25
UNARY = "Abs Neg Sign Relu Exp Log Sqrt Sigmoid Tanh Erf Floor Ceil Round Reciprocal Softplus HardSwish LeakyRelu Elu"
UNARY += " Sin Cos Not BitwiseNot Identity IsNaN IsInf"
BINARY = "Add Sub Mul Div Max Min Mod Pow PRelu BitShift BitwiseAnd BitwiseOr BitwiseXor And Or Xor"
BINARY += " Equal Less LessOrEqual Greater GreaterOrEqual"
RTOL = {"float64": 1e-6, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
_RANDOM = np.random.default_rng(5)


def allowed(op: str) -> list[np.dtype]:
    """The element types of an operator's first input, strings excepted."""
    schema = onnx.defs.get_schema(op, OPSET)
    names = next(t for t in schema.type_constraints if t.type_param_str == schema.inputs[0].type_str).allowed_type_strs
    kinds = [getattr(onnx.TensorProto, n[len("tensor(") : -1].upper(), None) for n in names if n.startswith("tensor(")]
    return [onnx.helper.tensor_dtype_to_np_dtype(k) for k in kinds if k not in (None, onnx.TensorProto.STRING)]


def cases(ops: str) -> list:
    return [pytest.param(op, dtype, id=f"{op}-{dtype.name}") for op in ops.split() for dtype in allowed(op)]


def draw(dtype: np.dtype, shape: tuple[int, ...], low: float = -4, high: float = 4) -> np.ndarray:
    """Random elements: numbers between the bounds, but none below a type's least."""
    if dtype == np.bool_:
        return _RANDOM.random(shape) > 0.5
    if dtype.kind == "c":
        return (draw(np.dtype("f8"), shape) + 1j * draw(np.dtype("f8"), shape)).astype(dtype)
    numbers = _RANDOM.uniform(low, high, shape)
    if not is_float(dtype):
        return np.clip(np.rint(numbers), lowest(dtype), highest(dtype)).astype(np.int64).astype(dtype)
    return numbers.astype(np.float32).astype(dtype)


def check(model: onnx.ModelProto, arrays: dict[str, np.ndarray], rtol: float) -> None:
    """Values and types beside the evaluator's."""
    (want,) = ReferenceEvaluator(model).run(None, arrays)
    imported = import_onnx(model)
    for _ in range(2):
        (got,) = interpret(imported, arrays)
        assert got.dtype == model_dtype(model) and got.shape == want.shape
        wide = [v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (got, np.asarray(want))]
        np.testing.assert_allclose(wide[0], wide[1], rtol=rtol, atol=rtol)
        normalize(imported)


def model_dtype(model: onnx.ModelProto) -> np.dtype:
    return onnx.helper.tensor_dtype_to_np_dtype(model.graph.output[0].type.tensor_type.elem_type)


@pytest.mark.parametrize("op,dtype", cases(UNARY))
def test_unary(op, dtype):
    positive = op in ("Log", "Sqrt", "Reciprocal")
    x = draw(dtype, (3, 5), low=0.5 if positive else -4)
    check(node_model(op, [x], opset=OPSET), {"x0": x}, RTOL.get(dtype.name, 0))


@pytest.mark.parametrize("op,dtype", cases(BINARY))
def test_binary(op, dtype):
    x, y = draw(dtype, (3, 1, 5)), draw(dtype, (2, 5), low=1)
    attributes = {"BitShift": {"direction": "LEFT"}, "Mod": {"fmod": int(is_float(dtype))}}.get(op, {})
    if op == "Pow":
        x = draw(dtype, (3, 1, 5), low=1)
    check(node_model(op, [x, y], opset=OPSET, **attributes), {"x0": x, "x1": y}, RTOL.get(dtype.name, 0))


@pytest.mark.parametrize("dtype", allowed("Where"), ids=lambda d: d.name)
def test_where(dtype):
    c, x, y = draw(np.dtype(np.bool_), (4,)), draw(dtype, (3, 4)), draw(dtype, (3, 1))
    check(node_model("Where", [c, x, y], opset=OPSET), {"x0": c, "x1": x, "x2": y}, 0)


@pytest.mark.parametrize("dtype", allowed("Clip"), ids=lambda d: d.name)
def test_clip(dtype):
    x, low, high = draw(dtype, (6,), -9, 9), draw(dtype, (), 1, 1), draw(dtype, (), 3, 3)
    check(node_model("Clip", [x, low, high], opset=OPSET), {"x0": x, "x1": low, "x2": high}, 0)
    check(node_model("Clip", [x, None, high], opset=OPSET), {"x0": x, "x2": high}, 0)


@pytest.mark.parametrize("base", ["int32", "int64", "float32", "float16"])
@pytest.mark.parametrize("exponent", ["int32", "int64", "uint8", "float32", "float64"])
def test_powers_of_two_types(base, exponent):
    x = np.array([1, 2, 3, 5, 2, 0]).astype(base)
    y = np.array([7, 5, 0, 3, 9, 2]).astype(exponent)
    check(node_model("Pow", [x, y], opset=OPSET), {"x0": x, "x1": y}, 1e-3)


@pytest.mark.parametrize("known", [(), (0, 1)])
def test_powers_of_integers(known):
    """Negative exponents, wrapping, and exponents beyond all that fits."""
    x = np.array([2, 1, -1, -1, 3, -3, 0, 2, -1, 2], np.int64)
    y = np.array([-1, -5, -3, -2, 40, 41, 0, 64, 1001, 62], np.int64)
    want = np.array([0, 1, -1, 1, wrapped(3**40, x.dtype), wrapped((-3) ** 41, x.dtype), 1, 0, -1, 2**62])
    (got,) = interpret(import_onnx(node_model("Pow", [x, y], known=known)), {} if known else {"x0": x, "x1": y})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("known", [(), (0, 1)])
@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_no_division_of_integers_traps(op, known):
    least = np.iinfo(np.int32).min
    x, y = np.array([7, -7, least, 0], np.int32), np.array([0, 0, -1, -5], np.int32)
    model = node_model(op, [x, y], opset=OPSET, known=known)
    (got,) = interpret(import_onnx(model), {} if known else {"x0": x, "x1": y})
    np.testing.assert_array_equal(got, [0, 0, least if op == "Div" else 0, 0])


@pytest.mark.parametrize("dtype", [np.uint8, np.int32], ids=["uint8", "int32"])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("known", [(), (0, 1)])
def test_shifts_beyond_the_width(dtype, direction, known):
    width = 8 * np.dtype(dtype).itemsize
    x = np.array([3, 200, 1, 9, 7]).astype(dtype)
    y = np.array([0, 1, width - 1, width, 100]).astype(dtype)
    exact = [int(v) << int(s) if direction == "LEFT" else int(v) >> int(s) for v, s in zip(x, y, strict=True)]
    model = node_model("BitShift", [x, y], direction=direction, known=known)
    (got,) = interpret(import_onnx(model), {} if known else {"x0": x, "x1": y})
    np.testing.assert_array_equal(got, [wrapped(v, np.dtype(dtype)) for v in exact])


def test_narrow_floats_are_rounded_once():
    """x * sigmoid(x) of bfloat16, whose steps would each lose bits."""
    x = np.linspace(-4, 4, 257).astype(ml_dtypes.bfloat16)
    (got,) = interpret(import_onnx(node_model("HardSwish", [x], opset=22)), {"x0": x})
    wide = x.astype(np.float32)
    want = wide * np.clip(wide * np.float32(1 / 6) + np.float32(0.5), 0, 1)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.uint64, np.bool_, np.float16, ml_dtypes.bfloat16, np.complex64, ml_dtypes.int4], ids=str
)
@pytest.mark.parametrize("count", [1, 3, 300])
def test_known_tensors_of_every_type(dtype, count):
    """Scalars, constants and weights."""
    x, y = draw(np.dtype(dtype), (count,)), draw(np.dtype(dtype), (2, count))
    condition = np.array([[True], [False]])
    model = node_model("Where", [condition, x, y], known=[1], opset=OPSET)
    (got,) = interpret(import_onnx(model), {"x0": condition, "x2": y})
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, np.where(condition, x, y))


def test_largest_unsigned_numbers():
    x = np.array([2**64 - 1, 2**63, 5], np.uint64)
    y = np.array([3, 2**63 - 1, 7], np.uint64)
    for op in ("Div", "Less", "Max", "Mod"):
        model = node_model(op, [x, y], known=[1])
        check_numbers(model, feeds(model, [x, y]))
