# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of bytes and of float8 on GPUs: all signs, zero points, scales, orders of the operands, numbers of rows."""

from __future__ import annotations

import re
import shutil
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

ARCHS = ("sm_80", "sm_90a")
RNG = np.random.default_rng(41)
N, K = 96, 144


def extremes(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Random bytes with a row and a column of extremes."""
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max + 1, shape).astype(dtype)
    x[0], x[:, 0] = info.max, info.min
    return x


def graph(nodes: list[Any], given: dict[str, np.ndarray], held: dict[str, Any], output: Any) -> onnx.ModelProto:
    """A model of inputs `given` and weights `held`."""
    kinds = {name: helper.np_dtype_to_tensor_dtype(x.dtype) for name, x in given.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], x.shape) for name, x in given.items()]
    parts = [numpy_helper.from_array(np.asarray(x), name) for name, x in held.items()]
    made = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", *output)], parts)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def integers(m: int, n: int, k: int, kinds: Any, points: tuple[int, int], transposed: bool, fixed: bool) -> Any:
    """MatMulInteger with a zero point of the whole left operand and of each column of the right one.

    Returns:
        The model, its inputs, what it gives.
    """
    x, w = extremes((m, k), kinds[0]), extremes((k, n), kinds[1])
    zeros = {"zx": np.asarray(points[0], kinds[0]), "zw": np.full(n, points[1], kinds[1])}
    held = np.ascontiguousarray(w.T) if transposed else w
    nodes = [helper.make_node("Transpose", ["w"], ["v"], perm=[1, 0])] if transposed else []
    nodes.append(helper.make_node("MatMulInteger", ["x", "v" if transposed else "w", "zx", "zw"], ["y"]))
    given = {"x": x} if fixed else {"x": x, "w": held}
    model = graph(nodes, given, {**zeros, **({"w": held} if fixed else {})}, (TensorProto.INT32, [m, n]))
    # Sums of doubles are exact here, and many times as fast as NumPy's of integers.
    want = ((x.astype(np.float64) - points[0]) @ (w.astype(np.float64) - points[1])).astype(np.int64)
    return model, list(given.values()), want


def ptx(model: Any) -> str:
    return "".join(path.read_text() for path in model.path.glob("code/*.ptx"))


S8, U8 = np.int8, np.uint8


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("kinds", "points"), [((S8, S8), (0, 0)), ((U8, S8), (120, 0)), ((S8, U8), (-5, 131)), ((U8, U8), (9, 128))]
)
@pytest.mark.parametrize(
    ("m", "transposed", "fixed"), [(70, False, True), (70, True, False), (5, False, True), (1, False, True)]
)
def test_integers_are_exact(
    m: int, transposed: bool, fixed: bool, kinds: Any, points: tuple[int, int], arch: str
) -> None:
    proto, given, want = integers(m, N, K, kinds, points, transposed, fixed)
    for seed in (1, 2):
        model = tw.compile(proto, f"cuda:{arch}", emulate={"seed": seed})
        np.testing.assert_array_equal(model(*given)[0], want)
    text = ptx(model)
    names = [{S8: "s8", U8: "u8"}[kind] for kind in kinds]
    if m == 1:
        assert "mma" not in text
    else:
        assert re.search(rf"mma(\.sync|_async)\S*k32\S*\.s32\.{names[0]}\.[us]8", text)


@pytest.mark.slow
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("kinds", "points"), [((S8, S8), (0, 0)), ((U8, S8), (0, 0)), ((S8, U8), (0, 0))])
def test_integers_by_warpgroups(kinds: Any, points: tuple[int, int], fixed: bool) -> None:
    proto, given, want = integers(1024, 512, 512, kinds, points, True, fixed)
    model = tw.compile(proto, "cuda:sm_90a", emulate={"seed": 3})
    np.testing.assert_array_equal(model(*given)[0], want)
    left = {S8: "s8", U8: "u8"}[kinds[0]]
    assert re.search(rf"wgmma\.mma_async\S*\.s32\.{left}\.[us]8", ptx(model))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("m", "k"), [(1, 131), (3, 61), (70, 67), (33, 129)])
def test_ragged_integers_are_exact(m: int, k: int, arch: str) -> None:
    for fixed in (True, False):
        proto, given, want = integers(m, 37, k, (U8, S8), (3, 7), False, fixed)
        np.testing.assert_array_equal(tw.compile(proto, f"cuda:{arch}", emulate=True)(*given)[0], want)


def quantized(m: int, n: int, k: int, floats: Any = np.float32) -> Any:
    """A product between QuantizeLinear and DequantizeLinear, with a scale of each column, and an activation.

    Returns:
        The model, its inputs, what it gives.
    """
    x = RNG.standard_normal((m, k)).astype(floats)
    held = {
        "sx": np.asarray(0.03, floats),
        "zx": np.uint8(120),
        "w": extremes((k, n), S8),
        "sw": RNG.uniform(0.001, 0.01, n).astype(floats),
        "zw": np.zeros(n, S8),
        "b": RNG.standard_normal(n).astype(floats),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"], axis=1),
        helper.make_node("MatMul", ["d", "v"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    model = graph(nodes, {"x": x}, held, (helper.np_dtype_to_tensor_dtype(np.dtype(floats)), [m, n]))
    q = np.clip(np.rint(x.astype(np.float32) / np.float32(held["sx"])) + 120, 0, 255).astype(np.float64) - 120
    sums = (q @ held["w"].astype(np.float64)) * (float(held["sx"]) * held["sw"].astype(np.float64))
    return model, [x], np.maximum(sums + held["b"], 0)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("m", [1, 7, 70])
def test_dequantized_factors_are_multiplied_as_bytes(m: int, arch: str) -> None:
    proto, given, want = quantized(m, N, K)
    model = tw.compile(proto, f"cuda:{arch}", emulate=True)
    np.testing.assert_allclose(model(*given)[0], want, rtol=1e-5, atol=1e-5)
    names = [kernel.symbol for kernel in model._manifest.kernels]
    assert len(names) == 2, f"what follows the product is computed with it, and its input quantized before: {names}"
    assert m == 1 or ".s32.u8.s8" in ptx(model)


def packed(k: int, n: int, floats: Any, point: int, transposed: bool) -> Any:
    """One row times weights that are kept as bytes with a scale of each column: model, inputs, result."""
    x, w = RNG.standard_normal((1, k)).astype(floats), extremes((k, n), S8)
    held = {
        "w": np.ascontiguousarray(w.T) if transposed else w,
        "s": RNG.uniform(0.001, 0.01, n).astype(floats),
        "z": np.full(n, point, S8),
    }
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"], axis=0 if transposed else 1)]
    nodes += [helper.make_node("Transpose", ["v"], ["t"], perm=[1, 0])] if transposed else []
    nodes += [helper.make_node("MatMul", ["x", "t" if transposed else "v"], ["y"])]
    model = graph(nodes, {"x": x}, held, (helper.np_dtype_to_tensor_dtype(np.dtype(floats)), [1, n]))
    wide = ((w.astype(np.float32) - point) * held["s"].astype(np.float32)).astype(floats).astype(np.float64)
    return model, [x], x.astype(np.float64) @ wide


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("floats", "point", "transposed"), [(np.float32, 0, False), (np.float32, 7, True), (np.float16, 0, True)]
)
def test_a_vector_reads_weights_as_bytes(floats: Any, point: int, transposed: bool, arch: str) -> None:
    proto, given, want = packed(2048, 512, floats, point, transposed)
    model = tw.compile(proto, f"cuda:{arch}", emulate=True)
    error = 1e-5 if floats is np.float32 else 2e-3
    np.testing.assert_allclose(model(*given)[0].astype(np.float64), want, rtol=0, atol=error * np.abs(want).max())
    (kernel,) = model._manifest.kernels
    assert kernel.details["plan"]["memory_bytes"] < 1.2 * 2048 * 512 or floats is np.float16


def numbers_of(proto: onnx.ModelProto, arch: str) -> list[dict[str, Any]]:
    """The predictions of a plan, in order."""
    text = tw.compile(proto, f"cuda:{arch}", stop_after="plan")
    found = re.findall(r"tile\.prediction = \{([^}]*)\}", text)
    return [dict(re.findall(r'(\w+) = "?([^",]+?)"?(?: : i64)?(?:,|$)', fields)) for fields in found]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("k", "n"), [(3072, 768), (768, 3072), (4096, 4096), (4096, 16384)])
@pytest.mark.parametrize("m", [1, 16])
def test_decoding_is_bound_by_memory(m: int, k: int, n: int, arch: str) -> None:
    """By prediction: weights come at three quarters of what memory gives, but for a launch and its latencies."""
    proto, _, _ = integers(m, n, k, (S8, S8), (0, 0), False, True)
    (found,) = numbers_of(proto, arch)
    fixed = 2500 + 800 + 800
    assert int(found["roofline_ns"]) >= 0.6 * (int(found["ns"]) - fixed), found


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("fixed", [True, False])
def test_many_rows_come_near_the_peak(fixed: bool, arch: str) -> None:
    """By prediction; operands that a run brings are transposed by a kernel of its own."""
    m = n = k = 4096
    kinds = (TensorProto.INT8, [m, k]), (TensorProto.INT8, [k, n])
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in zip("xw", kinds, strict=True)]
    held = [numpy_helper.from_array(np.ones((k, n), S8), "w")] if fixed else []
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    result = helper.make_tensor_value_info("y", TensorProto.INT32, [m, n])
    made = helper.make_graph([node], "g", inputs[: 1 if fixed else 2], [result], held)
    found = numbers_of(helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), arch)
    assert len(found) == (1 if fixed or arch == "sm_80" else 2), "an A10 is slower than its reads of shared memory"
    assert int(found[-1]["roofline_ns"]) > 0.7 * int(found[-1]["ns"]), found


def float8(m: int, n: int, k: int, fixed: bool) -> Any:
    """A product of float8 operands that a model dequantizes: model, inputs, result."""
    kind = ml_dtypes.float8_e4m3fn
    x, w = (RNG.standard_normal(shape).astype(kind) for shape in ((m, k), (k, n)))
    nodes = [helper.make_node("DequantizeLinear", [a, "s"], [b]) for a, b in (("x", "d"), ("w", "v"))]
    nodes.append(helper.make_node("MatMul", ["d", "v"], ["y"]))
    given = {"x": x} if fixed else {"x": x, "w": w}
    held = {"s": np.float32(0.5), **({"w": w} if fixed else {})}
    want = 0.25 * (x.astype(np.float64) @ w.astype(np.float64))
    return graph(nodes, given, held, (TensorProto.FLOAT, [m, n])), list(given.values()), want


def test_float8_weights_are_turned_for_wgmma() -> None:
    proto, given, want = float8(512, 256, 512, True)
    model = tw.compile(proto, "cuda:sm_90a", emulate=True)
    large = ptx(tw.compile(float8(1024, 1024, 1024, True)[0], "cuda:sm_90a", emulate=True))
    assert re.search(r"wgmma\.mma_async\S*\.e4m3\.e4m3", large)
    np.testing.assert_allclose(model(*given)[0], want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_float8_of_a_run_is_turned_where_that_pays() -> None:
    text = tw.compile(float8(2048, 2048, 2048, False)[0], "cuda:sm_90a", stop_after="plan")
    assert text.count("tile.prediction") == 2 and "tile.slow" not in text
    text = tw.compile(float8(64, 1024, 1024, False)[0], "cuda:sm_90a", stop_after="plan")
    assert text.count("tile.prediction") == 1
    assert 'tile.slow = "reads bytes of an operand one by one, against their order in memory: ' in text


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 768, 3072), (16, 768, 3072), (512, 3072, 768), (2048, 2048, 2048)])
def test_full_sizes_assemble(m: int, n: int, k: int, arch: str) -> None:
    """Without spills, with as many CTAs to a multiprocessor as the plan counts on."""
    proto, _, _ = quantized(m, n, k)
    model = tw.compile(proto, f"cuda:{arch}", emulate=True)
    for kernel in model._manifest.kernels:
        assert kernel.details["spilled_bytes"] == 0
        if "product" in kernel.symbol:
            assert kernel.details["resident_ctas"] >= kernel.details["plan"]["occupancy"], kernel.details
