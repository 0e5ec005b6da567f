# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantization beside ONNX Runtime, and beside onnx's reference evaluator for the types that it lacks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support import check_numbers, feeds, interpret, node_model, normalize

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

INTS = ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2"]
FLOATS = ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"]
F32 = np.float32

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
_RANDOM = np.random.default_rng(7)


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def number_of(dtype: np.dtype) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(dtype)


def real(*shape: int, scale: float = 3) -> np.ndarray:
    return (_RANDOM.standard_normal(shape) * scale).astype(F32)


def integers(dtype: str, *shape: int) -> np.ndarray:
    info = ml_dtypes.iinfo(dtype_of(dtype))
    return _RANDOM.integers(int(info.min), int(info.max) + 1, shape).astype(dtype_of(dtype))


def scales(*shape: int) -> np.ndarray:
    return _RANDOM.uniform(0.01, 0.3, shape).astype(F32)


def check(op: str, inputs: list, rtol: float = 0, known: tuple = (), opset: int = 25, outputs: int = 1, **attributes):
    """One node beside the evaluator; unknown and, where said, known inputs."""
    model = node_model(op, inputs, opset=opset, outputs=outputs, known=known, **attributes)
    arrays = feeds(model, inputs)
    want = ReferenceEvaluator(model).run(None, arrays)
    imported = import_onnx(model)
    for _ in range(2):
        for mine, theirs in zip(interpret(imported, arrays), want, strict=True):
            assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
            np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=rtol)
        normalize(imported)


def beside_runtime(op: str, inputs: list, known: tuple = (), opset: int = 21, **attributes):
    inputs = [np.asarray(v) for v in inputs]
    model = node_model(op, inputs, opset=opset, known=known, **attributes)
    check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize("name", [*INTS, *FLOATS])
def test_quantize(name):
    dtype = dtype_of(name)
    zero = np.array(3 if "uint" in name else 0).astype(dtype) if name in INTS else None
    attributes = {} if zero is not None else {"output_dtype": number_of(dtype)}
    check("QuantizeLinear", [real(4, 6, scale=60), np.array(0.5, F32), zero], **attributes)
    check("QuantizeLinear", [real(3, 4, 5), scales(4), None], output_dtype=number_of(dtype), axis=1)


@pytest.mark.parametrize("name", [*INTS, *FLOATS, "int32"])
@pytest.mark.parametrize("scale", ["float32", "float16"])
def test_dequantize(name, scale):
    x = integers(name, 3, 4, 5) if "int" in name else real(3, 4, 5).astype(dtype_of(name))
    zero = integers(name, 4) if name in INTS else None
    rtol = 1e-6 if scale == "float32" else 1e-3
    check("DequantizeLinear", [x, scales(4).astype(scale), zero], rtol, axis=-2)
    check("DequantizeLinear", [x, scales()[()].astype(scale), None], rtol, known=(1,))


@pytest.mark.parametrize("axis,shape", [(0, (2, 5)), (1, (4, 2))])
def test_blocks(axis, shape):
    x, block = real(4, 5), [2, 3][axis]
    zero = integers("uint8", *shape)
    check("QuantizeLinear", [x, scales(*shape), zero], axis=axis, block_size=block)
    check("DequantizeLinear", [integers("uint8", 4, 5), scales(*shape), zero], 1e-6, axis=axis, block_size=block)


@pytest.mark.parametrize("x", ["float32", "float16", "bfloat16", "int32"])
def test_quantize_from(x):
    values = (_RANDOM.integers(-40, 40, (3, 4)) * 0.25).astype(dtype_of(x))
    scale = np.array(0.5).astype("float32" if x == "int32" else dtype_of(x))
    check("QuantizeLinear", [values, scale, np.array(2, np.int8)])
    check("QuantizeLinear", [values, np.array(0.5, F32), np.array(2, np.int8)], precision=onnx.TensorProto.FLOAT)


def test_rounding_is_to_even_and_saturates():
    x = np.array([0.5, 1.5, 2.5, -0.5, 1e9, -1e9, np.inf, -np.inf], F32)
    model = node_model("QuantizeLinear", [x, np.array(1, F32), np.array(-5, np.int8)], opset=21)
    (got,) = interpret(import_onnx(model), feeds(model, [x, np.array(1, F32), np.array(-5, np.int8)]))
    np.testing.assert_array_equal(got, [-5, -3, -3, -5, 127, -128, 127, -128])


@pytest.mark.parametrize("saturate", [0, 1])
def test_saturation_of_floats(saturate):
    x = np.array([1e4, -1e4, np.inf, 3.0], F32)
    check("QuantizeLinear", [x, np.array(1, F32), np.zeros((), ml_dtypes.float8_e4m3fn)], saturate=saturate)


@pytest.mark.parametrize("name", ["int8", "uint8"])
@pytest.mark.parametrize("known", [(), (1, 2)])
def test_both_ways_beside_runtime(name, known):
    zero = integers(name, 4)
    beside_runtime("QuantizeLinear", [real(3, 4, 5, scale=20), scales(4), zero], known, axis=1)
    beside_runtime("DequantizeLinear", [integers(name, 3, 4, 5), scales(4), zero], known, axis=1)
    beside_runtime("QuantizeLinear", [real(7, scale=20), scales()[()], zero[0]], known, opset=10)


def test_outputs_of_quantized_types_have_them():
    imported = import_onnx(node_model("QuantizeLinear", [real(2), np.array(1, F32)], opset=21, output_dtype=22))
    assert imported.outputs[0].dtype == ml_dtypes.int4


@pytest.mark.parametrize("values", [real(5, 6), np.abs(real(9)), -np.abs(real(2, 3)), np.zeros((4,), F32)])
def test_dynamic_quantize(values):
    check("DynamicQuantizeLinear", [values], 1e-6, outputs=3)


@pytest.mark.parametrize("left", ["uint8", "int8"])
@pytest.mark.parametrize("right", ["uint8", "int8"])
def test_matmul_integer(left, right):
    x, y = integers(left, 2, 3, 8), integers(right, 8, 5)
    check("MatMulInteger", [x, y], opset=10)
    check("MatMulInteger", [x, y, integers(left)[()], integers(right, 5)], opset=10)


@pytest.mark.parametrize("rows", [False, True])
def test_qlinear_matmul(rows):
    x, y, n = integers("uint8", 4, 8), integers("int8", 8, 5), (4,) if rows else ()
    row = [scales(*n), integers("uint8", *n)] if rows else [scales()[()], np.array(7, np.uint8)]
    column = [scales(5), integers("int8", 5)] if rows else [scales()[()], np.array(-3, np.int8)]
    if rows:
        row = [v.reshape(4, 1) for v in row]
    out = [np.array(5.5, F32), np.array(100, np.uint8)]
    model = node_model("QLinearMatMul", [x, *row, y, *column, *out], opset=21)
    close_integers(model, [x, *row, y, *column, *out])


def close_integers(model: onnx.ModelProto, inputs: list) -> None:
    """Beside the evaluator, which rounds after it adds the zero point: halves may differ by one."""
    arrays = feeds(model, inputs)
    (want,) = ReferenceEvaluator(model).run(None, arrays)
    (got,) = interpret(import_onnx(model), arrays)
    assert got.dtype == want.dtype and got.shape == want.shape
    difference = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert difference.max() <= 1 and (difference > 0).mean() < 0.05


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1, 1, 1]}, {"strides": [2, 2], "group": 2}])
def test_convolutions(attributes):
    x = integers("uint8", 1, 4, 7, 6)
    w = integers("uint8", 6, 4 // attributes.get("group", 1), 3, 3)
    zero = np.array(9, np.uint8)
    beside_runtime("ConvInteger", [x, w, zero, np.array(3, np.uint8)], opset=10, **attributes)
    scale = [scales()[()], scales(6), np.array(40, F32)]
    bias = _RANDOM.integers(-500, 500, 6).astype(np.int32)
    inputs = [x, scale[0], zero, w, scale[1], integers("uint8", 6), scale[2], np.array(90, np.uint8), bias]
    close_integers(node_model("QLinearConv", inputs, opset=21, **attributes), inputs)


@pytest.mark.parametrize(
    "inputs,attributes,message",
    [
        ([real(2, 3), scales(4)], {"axis": 1}, "4 elements for 3 along the axis"),
        ([real(2, 3), scales(2, 2)], {"axis": 1}, "block_size must be given"),
        ([real(2, 3), scales(2, 3)], {"axis": 1, "block_size": 2}, "3 blocks of 2 for 3 elements"),
        ([real(2, 3), scales()[()], np.array(1, np.int8)], {"output_dtype": 2}, "zero point is of type int8"),
    ],
)
def test_what_is_wrong(inputs, attributes, message):
    with pytest.raises(UserError, match=message):
        import_onnx(node_model("QuantizeLinear", inputs, opset=21, **attributes))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("depth", [64, 72])  # whole blocks, and a last one that is half of one
@pytest.mark.parametrize("zero", [None, "bytes", "floats"])
def test_product_with_weights_of_few_bits(bits, depth, zero):
    """ONNX Runtime's own operator, by the definition: some of its kernels round activations."""
    columns, block = 24, 16
    blocks, each = -(-depth // block), 8 // bits
    steps = _RANDOM.integers(0, 1 << bits, (columns, blocks * block)).astype(np.uint8)
    scale = scales(columns, blocks)
    zeros = _RANDOM.integers(0, 1 << bits, (columns, -(-blocks // each) * each)).astype(np.uint8)
    points = zeros[:, :blocks] if zero else np.full((columns, blocks), 1 << bits - 1)

    def packed(rows):
        parts = rows.reshape(len(rows), -1, each).astype(int)
        return (parts << np.arange(each) * bits).sum(-1).astype(np.uint8)

    given = {None: None, "bytes": packed(zeros).flatten(), "floats": points.astype(F32).flatten()}[zero]
    x, bias = real(3, depth), real(columns)
    inputs = [x, packed(steps).reshape(columns, blocks, -1), scale.flatten(), given, None, bias]
    attributes = dict(K=depth, N=columns, bits=bits, block_size=block)
    known = tuple(n for n in (1, 2, 3) if inputs[n] is not None)
    model = node_model("MatMulNBits", inputs, known=known, domain="com.microsoft", opset=21, **attributes)
    wide = (steps - points.astype(float).repeat(block, 1)) * scale.repeat(block, 1)
    imported = import_onnx(model)
    (found,) = interpret(imported, feeds(model, inputs))
    np.testing.assert_allclose(found, x @ wide[:, :depth].T + bias, rtol=1e-4, atol=1e-3)
    normalize(imported)


def test_weights_of_few_bits_that_do_not_fit():
    inputs = [real(3, 64), np.zeros((8, 2, 16), np.uint8), scales(15)]
    attributes = dict(K=64, N=8, bits=4, block_size=32)
    model = node_model("MatMulNBits", inputs, known=(1, 2), domain="com.microsoft", opset=21, **attributes)
    with pytest.raises(UserError, match="15 scales; its sizes .* want 16"):
        import_onnx(model)


SAYS = {
    "per row": (
        "DequantizeLinear",
        [integers("int8", 16, 32), scales(16)],
        {"axis": 0},
        "i8, scales = f32, group = [1, ?]",
    ),
    "blocks": (
        "DequantizeLinear",
        [integers("uint4", 64, 24), scales(2, 24), integers("uint4", 2, 24)],
        {"axis": 0, "block_size": 32},
        "i4, unsigned, scales = f32, zero_points = i4, group = [32, 1]",
    ),
    "float8": (
        "DequantizeLinear",
        [real(24, 24).astype(dtype_of("float8_e5m2")), F32(0.5)],
        {},
        "f8E5M2, scales = f32",
    ),
    "quantize": (
        "QuantizeLinear",
        [real(3, 40), scales(40), integers("int8", 40)],
        {"axis": 1},
        "i8, scales = f32, zero_points = i8, group = [?, 1]",
    ),
    "half": ("QuantizeLinear", [real(3, 40).astype(np.float16), np.float16(0.5)], {}, "i8, unsigned, scales = f16"),
    "dynamic": ("DynamicQuantizeLinear", [real(3, 40)], {}, "i8, unsigned, scales = f32, zero_points = i8"),
    "integers": (
        "MatMulInteger",
        [integers("uint8", 4, 64), integers("int8", 64, 8), np.uint8(3)],
        {},
        "i8, unsigned, zero_points = i8",
    ),
    "convolution": (
        "ConvInteger",
        [integers("uint8", 1, 3, 9, 9), integers("int8", 16, 3, 3, 3), np.uint8(3), integers("int8", 16)],
        {},
        "i8, zero_points = i8, group = [1, ?, ?, ?]",
    ),
}


@pytest.mark.parametrize("name", SAYS)
def test_types_say_the_format(name: str):
    op, inputs, attributes, format = SAYS[name]
    model = node_model(op, inputs, opset=25, outputs=3 if name == "dynamic" else 1, **attributes)
    text = str(import_onnx(model).module)
    assert f"#sparse_tile.tesa<dense : format<{format}>>" in text
    assert ("sparse_tile.quantize" if "Quantize" in op and "De" not in op else "sparse_tile.dequantize") in text


def test_weights_of_few_bits_say_their_format():
    inputs = [real(3, 64), np.zeros((8, 2, 16), np.uint8), scales(16)]
    model = node_model(
        "MatMulNBits", inputs, known=(1, 2), domain="com.microsoft", opset=21, K=64, N=8, bits=4, block_size=32
    )
    assert "dense : format<i4, scales = f32, group = [1, 32]>" in str(import_onnx(model).module)


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_what_no_format_says_is_computed(op: str):
    """Codes of 16 bits."""
    x = real(3, 40) if op == "QuantizeLinear" else integers("int16", 3, 40)
    text = str(import_onnx(node_model(op, [x, F32(0.5), np.int16(3)], opset=25)).module)
    assert "sparse_tile" not in text
