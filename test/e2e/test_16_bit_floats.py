# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose floats are all of 16 bits: each operator's result is rounded, products are summed in f32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import models
import tilewright as tw
from models._narrow import narrowed


def run(name: str, target: str, floats: str, **sizes: object) -> list[np.ndarray]:
    model = models.build(name, floats=floats, **sizes)
    inputs = models.random_inputs(model)
    found = tw.compile(model, target=target, threads=2)(*inputs.values())
    return list(found) if isinstance(found, Sequence) else [found]


def largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.abs(a - b).max() / np.abs(b).max())


NAMES = ["bert_tiny", "gpt_tiny_prefill", "gpt_tiny_decode", "vit_tiny", "mobilenet_tiny", "mixer_tiny", "lstm_tiny"]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("name", NAMES)
def test_models_in_f16(name: str, target: str) -> None:
    expected = run(name, "reference", "float16")
    for mine, other in zip(run(name, target, "float16"), expected, strict=True):
        assert mine.dtype == other.dtype and largest_difference(mine, other) < 1e-2


@pytest.mark.parametrize("floats", ["float16", "bfloat16"])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_a_product_is_rounded_once(rows: int, floats: str) -> None:
    model = models.build("linear", m=rows, n=70, k=129, floats=floats)
    (x,) = models.random_inputs(model).values()
    weight, bias = (numpy_helper.to_array(t) for t in model.graph.initializer)
    found = tw.compile(model, target="cpu:x86-64-v3", threads=1)(x)
    product = (x.astype(np.float64) @ weight.astype(np.float64)).astype(x.dtype)
    expected = (product.astype(np.float32) + bias.astype(np.float32)).astype(x.dtype)
    # A sum in f32 may fall on the other side of the middle between two narrow numbers, here and there.
    assert (np.asarray(found) == expected).mean() > 0.99


@pytest.mark.parametrize(("rows", "stored"), [(1, "f16"), (64, "f32")])
def test_weights_that_are_read_once_stay_narrow(rows: int, stored: str) -> None:
    model = models.build("linear", m=rows, n=256, k=128, floats="float16")
    plan = tw.compile(model, target="cpu", stop_after="plan")
    (packed,) = [line for line in plan.splitlines() if line.startswith("  func.func private @init")]
    assert f"x{stored}>" in packed


def test_narrowing_a_model_clips_what_the_type_cannot_hold() -> None:
    model = narrowed(models.build("attention", heads=1, sequence=4, depth=2, causal=True), "float16")
    low = min(float(numpy_helper.to_array(t).min()) for t in model.graph.initializer)
    assert low == np.finfo(np.float16).min


@pytest.mark.parametrize("target", ["cpu:x86-64-v3", "cuda:sm_80"])
def test_rows_of_attention_have_sums_in_f32(target: str) -> None:
    """The exponentials are rounded for the product that reads them; neither their sum nor its reciprocal is."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.random((2, 3, 24, 8), np.float32).astype(np.float16) for _ in range(3))
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, q.shape) for name in "qkv"]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT16, q.shape)
    graph = helper.make_graph([helper.make_node("Attention", list("qkv"), ["y"])], "attention", given, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    found = tw.compile(model, target=target, **({"emulate": True} if target.startswith("cuda") else {}))(q, k, v)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    powers = np.exp(wide[0] @ wide[1].swapaxes(-1, -2) / np.sqrt(8))
    exact = powers / powers.sum(-1, keepdims=True) @ wide[2]
    units = np.abs(np.asarray(found) - exact) / np.spacing(exact.astype(np.float16)).astype(np.float64)
    assert units.mean() < 0.31  # 0.25 for the exact result, rounded
