# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""precision= and accuracy= for GPUs: which instructions they choose, and their error on the emulator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core import config
from tilewright.core.errors import UserError

RNG = np.random.default_rng(23)
M, N, K = 70, 96, 136
W = RNG.standard_normal((K, N)).astype(np.float32)
X = RNG.standard_normal((M, K)).astype(np.float32)
ARCHS = ("sm_80", "sm_90a")


def product(activation: str = "Tanh") -> onnx.ModelProto:
    """activation(x w / 10)."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Mul", ["p", "s"], ["q"]),
        helper.make_node(activation, ["q"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [M, K]), ("y", [M, N]))]
    held = [numpy_helper.from_array(W, "w"), numpy_helper.from_array(np.float32([0.1]), "s")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def code(model: object) -> str:
    return "".join(path.read_text() for path in model.path.glob("code/*.ptx"))  # type: ignore[attr-defined]


def want(x: np.ndarray = X, w: np.ndarray = W) -> np.ndarray:
    return np.tanh(x.astype(np.float64) @ w.astype(np.float64) / 10)


@pytest.mark.parametrize("arch", ARCHS)
def test_f32_stays_f32(arch: str) -> None:
    model = tw.compile(product(), f"cuda:{arch}", emulate=True)
    assert "mma" not in code(model)
    np.testing.assert_allclose(model(X)[0], want(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("arch", ARCHS)
def test_tf32_multiplies_f32_on_tensor_cores(arch: str) -> None:
    model = tw.compile(product(), f"cuda:{arch}", precision="tf32", emulate=True)
    assert ".tf32.tf32" in code(model)
    entry = model._manifest.compile["precision"]
    assert entry["name"] == "tf32" and entry["products"] == 1 and 0 < entry["relative_error"] < 2e-3
    assert np.abs(model(X)[0] - want()).max() < 5e-3


@pytest.mark.parametrize("arch", ARCHS)
def test_bf16_rounds_the_factors(arch: str) -> None:
    model = tw.compile(product(), f"cuda:{arch}", precision="bf16", emulate=True)
    assert "bf16.bf16" in code(model)
    x, w = (v.astype(ml_dtypes.bfloat16).astype(np.float32) for v in (X, W))
    np.testing.assert_allclose(model(X)[0], want(x, w), rtol=1e-4, atol=1e-5)
    assert 0 < model._manifest.compile["precision"]["relative_error"] < 0.02


@pytest.mark.parametrize("arch", ARCHS)
def test_int8_multiplies_bytes(arch: str) -> None:
    model = tw.compile(product(), f"cuda:{arch}", precision="int8", calibration=[(X,)], emulate=True)
    assert ".u8.s8" in code(model) or ".s8.u8" in code(model)
    entry = model._manifest.compile["precision"]
    assert entry["data"] == "calibration" and np.abs(model(X)[0] - want()).max() <= entry["max_abs_error"] + 1e-5
    assert 0 < entry["relative_error"] < 0.08


@pytest.mark.parametrize("arch", ARCHS)
def test_fast_functions_are_the_units(arch: str) -> None:
    model = tw.compile(product(), f"cuda:{arch}", accuracy="fast", emulate=True)
    assert "tanh.approx.f32" in code(model)
    assert "tanh.approx.f32" not in code(tw.compile(product(), f"cuda:{arch}", emulate=True))
    entry = model._manifest.compile["accuracy"]
    assert entry["name"] == "fast" and 0 < entry["relative_error"] < 2**-10
    assert np.abs(model(X)[0] - want()).max() < 2**-10


FP8 = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> ({b})>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<{size}x{size}x{left}>, %w: tensor<{size}x{size}x{right}>) -> tensor<{size}x{size}xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{size}x{size}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{size}x{size}xf32>) -> tensor<{size}x{size}xf32>
  %y = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{size}x{size}x{left}>, tensor<{size}x{size}x{right}>) outs(%f : tensor<{size}x{size}xf32>) {{
  ^bb0(%p: {left}, %q: {right}, %o: f32):
    %u = arith.extf %p : {left} to f32
    %v = arith.extf %q : {right} to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }} -> tensor<{size}x{size}xf32>
  return %y : tensor<{size}x{size}xf32>
}}
"""
KINDS = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("left, right", [("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E5M2")])
@pytest.mark.parametrize("order", ["k, n", "n, k"])
def test_float8_is_multiplied_on_tensor_cores(left: str, right: str, order: str) -> None:
    model = tw.compile(FP8.format(left=left, right=right, b=order, size=128), "cuda:sm_90a", emulate=True)
    kinds = ".".join("e4m3" if kind == "f8E4M3FN" else "e5m2" for kind in (left, right))
    assert kinds in code(model)
    x, w = RNG.standard_normal((128, 128)).astype(KINDS[left]), RNG.standard_normal((128, 128)).astype(KINDS[right])
    wide = w.astype(np.float64) if order == "k, n" else w.astype(np.float64).T
    np.testing.assert_allclose(model(x, w)[0], x.astype(np.float64) @ wide, rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize("order", ["k, n", "n, k"])
def test_large_products_of_float8_use_wgmma(order: str) -> None:
    """It reads them from shared memory along the depth only: a kernel transposes the operand that lies otherwise."""
    text = FP8.format(left="f8E4M3FN", right="f8E4M3FN", b=order, size=2048)
    lowered = tw.compile(text, "cuda:sm_90a", stop_after="lower")
    assert "wgmma.mma_async" in lowered
    assert lowered.count("gpu.module @kernels") == 1
    assert lowered.count(" nvvm.kernel") + lowered.count("nvvm.kernel,") >= (2 if order == "k, n" else 1)


def test_tune_needs_a_gpu() -> None:
    with config.libcuda.override("/nonexistent/libcuda.so"):
        with pytest.raises(UserError, match="there is no NVIDIA GPU with a driver here"):
            tw.compile(product(), "cuda:sm_90a", tune=1.0)
