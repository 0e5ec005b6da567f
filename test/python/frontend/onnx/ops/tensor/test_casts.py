# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cast between every two types of numbers, by ONNX's rules; CastLike and BitCast."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import onnx
import pytest
from support import interpret, node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

FLOATS = "float64 float32 float16 bfloat16".split()
EIGHTS = "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz".split()
INTS = "int64 int32 int16 int8 int4 int2 uint64 uint32 uint16 uint8 uint4 uint2".split()
OTHERS = "bool float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn".split()
TYPES = [*FLOATS, *EIGHTS, *INTS, *OTHERS]

SPECIAL = [0.0, -0.0, 0.3, -0.5, 1.5, 2.5, -3.7, 7.0, 100.0, -128.0, 250.0, 449.0, 60000.0, -70000.0, 1e-7]
EXTREME = [3e9, -3e9, 1e19, -1e19, 1e30, np.inf, -np.inf, np.nan, 3.4e38, 1e300]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def values(name: str) -> np.ndarray:
    """Numbers of a type: small, extreme, and all codes of those with few."""
    dtype = dtype_of(name)
    if dtype.itemsize == 1 and name not in ("int8", "uint8", "bool"):
        count = {"4": 16, "2": 4}.get(name[-1], 256) if "int" in name else {"4": 16, "6": 64}.get(name[5], 256)
        return np.arange(count, dtype=np.uint8).view(dtype)
    if name in INTS:
        info = np.iinfo(dtype)
        near = [info.min, info.max, 0, 1, 2, 3, 5, 7, 100, info.max // 3, info.max - 1, info.min // 2]
        return np.array([*near, *np.random.default_rng(1).integers(info.min, info.max, 40, dtype)], dtype)
    if name == "bool":
        return np.array([False, True])
    return np.array([*SPECIAL, *EXTREME], np.float64).astype(dtype)


def cast(x: np.ndarray, dtype: np.dtype, known: bool = False, **attributes: object) -> np.ndarray:
    """One Cast, imported and interpreted; of a known tensor it is folded."""
    number = onnx.helper.np_dtype_to_tensor_dtype(dtype)
    model = node_model("Cast", [x], to=number, opset=25, known=[0] if known else [], **attributes)
    (result,) = interpret(import_onnx(model), {} if known else {"x0": x})
    assert result.dtype == dtype and result.shape == x.shape
    return result


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Equal values; NaN is equal to NaN."""
    a, b = (v.astype(np.longdouble) if v.dtype.kind != "b" else v for v in (got, want))
    np.testing.assert_array_equal(a, b)


def exactly(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounded to nearest even from the exact value, by enumeration of the type's numbers."""
    codes = np.arange(1 << 8 * dtype.itemsize, dtype=np.uint16).astype(f"u{dtype.itemsize}").view(dtype)
    table = codes.astype(np.float32).astype(np.longdouble)
    order = [i for i in np.argsort(table, kind="stable") if np.isfinite(table[i])]
    out = []
    for value in x.astype(np.longdouble):
        distance = np.abs(table[order] - value)
        nearest = [i for i, d in zip(order, distance, strict=True) if d == distance.min()]
        even = [i for i in nearest if int(codes.view(f"u{dtype.itemsize}")[i]) % 2 == 0]
        out.append(codes[(even or nearest)[0]])
    return np.array(out, dtype)


@pytest.mark.parametrize("source", TYPES)
def test_folding_and_code_agree(source):
    x = values(source)
    for target in TYPES:
        if target != source:
            same(cast(x, dtype_of(target)), cast(x, dtype_of(target), known=True))


@pytest.mark.parametrize("source,target", list(itertools.product([*FLOATS, *EIGHTS, *OTHERS[1:]], FLOATS)))
def test_between_floats(source, target):
    x = values(source)
    want = x.astype(np.float32).astype(dtype_of(target)) if x.dtype.itemsize < 4 else x.astype(dtype_of(target))
    same(cast(x, dtype_of(target)), want)


@pytest.mark.parametrize("source,target", list(itertools.product(INTS, [*INTS, "bool"])))
def test_between_integers_low_bits_are_kept(source, target):
    x, dtype = values(source), dtype_of(target)
    exact = [int(v) for v in x]
    if target == "bool":
        want = np.array([v != 0 for v in exact])
    else:
        info = ml_dtypes.iinfo(dtype)
        count = int(info.max) - int(info.min) + 1
        want = np.array([(v - int(info.min)) % count + int(info.min) for v in exact], np.object_).astype(dtype)
    same(cast(x, dtype), want)


@pytest.mark.parametrize("source", ["float64", "float32", "bfloat16", "float16"])
def test_floats_to_integers_truncate_and_are_defined(source):
    x = np.array([0.9, -0.9, -3.7, 100.4, np.nan, np.inf, -np.inf, 3e9, -3e9, 1e19], np.float64).astype(
        dtype_of(source)
    )
    exact = x.astype(np.float64)

    def whole(limit: float) -> np.ndarray:
        return np.where(np.abs(exact) < limit, np.trunc(exact), -limit).astype(np.int64)

    same(cast(x, np.dtype(np.int64)), whole(2.0**63))
    same(cast(x, np.dtype(np.int32)), whole(2.0**31))
    same(cast(x, np.dtype(np.int8)), whole(2.0**31).astype(np.int8))
    same(cast(x, np.dtype(np.uint32)), whole(2.0**63).astype(np.uint32))
    got = cast(x, np.dtype(np.uint64))
    assert int(got[3]) == 100 and (source == "float16" or int(got[-1]) == int(exact[-1]))


@pytest.mark.parametrize("source", ["float32", "float16", "bool"])
def test_to_bool_and_back(source):
    x = values(source)
    same(cast(x, np.dtype(np.bool_)), x != 0)
    same(cast(np.array([True, False]), dtype_of(source)), np.array([1, 0]).astype(dtype_of(source)))


@pytest.mark.parametrize("target", EIGHTS)
@pytest.mark.parametrize("source", ["float32", "float16", "float64"])
def test_saturation_of_8_bit_floats(source, target):
    dtype, x = dtype_of(target), values(source)
    largest = float(ml_dtypes.finfo(dtype).max)
    same(cast(x, dtype), np.clip(x.astype(np.float64), -largest, largest).astype(np.float32).astype(dtype))
    got = cast(x, dtype, saturate=0)
    same(got, x.astype(np.float32).astype(dtype))
    assert np.isnan(got[len(SPECIAL) + 5].astype(np.float32)) == (target != "float8_e5m2")


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_to_powers_of_two(mode, saturate):
    x = np.array([1.0, 1.2, 1.5, 3.0, 5e-39, 1e-45, 3.4e38, np.inf, np.nan, 0.0, 0.7, 6.0], np.float32)
    dtype = dtype_of("float8_e8m0fnu")
    want = onnx.numpy_helper.to_float8e8m0(x, bool(saturate), mode)
    same(cast(x, dtype, saturate=saturate, round_mode=mode), want)
    same(cast(x, dtype, known=True, saturate=saturate, round_mode=mode), want)


def test_no_conversion_rounds_twice():
    """Just above the middle of two bfloat16 numbers, by less than a float32, or a float64, can hold."""
    dtype = dtype_of("bfloat16")
    middle = 1.0 + 2.0**-8
    x = np.array([middle, middle + 2.0**-40, middle - 2.0**-40, -middle - 2.0**-40])
    same(cast(x, dtype), np.array([1.0, 1.0 + 2.0**-7, 1.0, -1.0 - 2.0**-7], dtype))
    whole = np.array([2**62 + 2**54, 2**62 + 2**54 + 1, -(2**62) - 2**54 - 1, 2**24 + 2**16 + 1], np.int64)
    want = np.array([2.0**62, 2.0**62 + 2.0**55, -(2.0**62) - 2.0**55, 2.0**24 + 2.0**17], np.float32).astype(dtype)
    same(cast(whole, dtype), want)
    same(cast(whole, dtype, known=True), want)
    same(cast(np.array([2**63 + 2**55 + 1], np.uint64), dtype), np.array([2.0**63 + 2.0**56], np.float32).astype(dtype))
    eighth = dtype_of("float8_e4m3fn")
    x = np.array([1.0625 + 1e-12, 1.0625, 1.0625 - 1e-12, 17.0 + 1e-9])
    same(cast(x, eighth), exactly(x, eighth))


def test_cast_like():
    x, like = np.array([1.5, 300.0, -1.0], np.float32), np.zeros(2, dtype_of("float8_e4m3fn"))
    model = node_model("CastLike", [x, like], opset=23)
    same(
        interpret(import_onnx(model), {"x0": x, "x1": like})[0],
        np.array([1.5, 288.0, -1.0], np.float32).astype(like.dtype),
    )


@pytest.mark.parametrize(
    "source,target",
    [
        ("float32", "int32"),
        ("int64", "float64"),
        ("uint16", "bfloat16"),
        ("float16", "int16"),
        ("uint8", "float8_e4m3fn"),
        ("float8_e5m2", "int8"),
        ("int8", "uint8"),
        ("uint4", "float4_e2m1fn"),
        ("float4_e2m1fn", "int4"),
        ("int4", "uint4"),
        ("bool", "uint8"),
        ("complex64", "int64"),
        ("float64", "complex64"),
    ],
)
@pytest.mark.parametrize("known", [(), (0,)])
def test_bit_cast(source, target, known):
    x = values(source) if source != "complex64" else np.array([1 + 2j, -0.5j, 3], np.complex64)
    dtype = dtype_of(target)
    model = node_model("BitCast", [x], to=onnx.helper.np_dtype_to_tensor_dtype(dtype), opset=26, known=known)
    (got,) = interpret(import_onnx(model), {} if known else {"x0": x})
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


def test_what_is_refused():
    x = np.ones(2, np.float32)
    with pytest.raises(UserError, match="32 bits, int64 has 64"):
        import_onnx(node_model("BitCast", [x], to=onnx.TensorProto.INT64, opset=26))
