# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with pruned weights give the numbers of the masked dense model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import models
import tilewright as tw
from models._graph import Graph
from models.compare import assert_close, onnxruntime_outputs

F32 = np.dtype(np.float32)


def first(outputs: Any) -> np.ndarray:
    return outputs[0] if isinstance(outputs, list | tuple) else outputs


def pruned(name: str, n: int, m: int) -> onnx.ModelProto:
    """A model of which each large matrix keeps n of m rows."""
    rng, model = np.random.default_rng(1), models.build(name)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype != F32 or array.ndim != 2 or array.size < 1000:
            continue
        kept = np.zeros((-(-array.shape[0] // m), m, array.shape[1]), bool)
        kept[:, :n] = True
        kept = rng.permuted(kept, axis=1).reshape(-1, array.shape[1])[: array.shape[0]]
        tensor.CopyFrom(numpy_helper.from_array(array * kept, tensor.name))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("name", ["bert_tiny", "bert_tiny_batch"])
def test_models(name: str, target: str) -> None:
    model = pruned(name, 1, 8)
    inputs = models.random_inputs(model)
    compiled = tw.compile(model, target)
    assert_close(compiled(**inputs), onnxruntime_outputs(model.SerializeToString(), inputs))
    found = compiled.report_data()["sparsity"]
    assert found and all(0.05 < entry["density"] < 0.2 for entry in found)


def test_open_rows() -> None:
    """The number of rows is that of a run."""
    g, rng = Graph("open", 17), np.random.default_rng(0)
    w = (rng.standard_normal((96, 64)) * (rng.random((96, 64)) < 0.1)).astype(F32)
    g.output(g.op("Relu", g.op("MatMul", g.input("x", F32, ["n", 96]), g.weight(w, "w"))), "y", F32, ["n", 64])
    compiled = tw.compile(g.model(), "cpu")
    for rows in (1, 7, 300):
        x = rng.standard_normal((rows, 96)).astype(F32)
        np.testing.assert_allclose(first(compiled(x)), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["bert_tiny", "mobilenet_tiny"])
def test_dense_models_stay(name: str) -> None:
    data = tw.compile(models.build(name), "cpu").report_data()
    assert data["sparsity"] == []
    assert "tile.sparsity" not in next(phase["ir"] for phase in data["phases"] if phase["name"] == "plan")


def patterned(name: str) -> np.ndarray:
    """Integers that are zero but for a pattern: [256, 256]."""
    rng, size = np.random.default_rng(3), 256
    kept = {
        "2:4": rng.permuted(np.broadcast_to(np.arange(4)[None, :, None] < 2, (64, 4, size)), axis=1).reshape(
            size, size
        ),
        "vectors": rng.permuted(np.broadcast_to(np.arange(32)[None, :, None] < 3, (8, 32, 8)), axis=1)
        .reshape(size, 8)
        .repeat(32, 1),
        "blocks": (rng.random((8, 8)) < 0.1).repeat(32, 0).repeat(32, 1),
        "scattered": rng.random((size, size)) < 0.05,
    }
    kept["mixture"] = (rng.random((8, 8)) < 0.3).repeat(32, 0).repeat(32, 1) | (rng.random((size, size)) < 0.01)
    return (rng.integers(1, 4, (size, size)) * kept[name]).astype(F32)


@pytest.mark.parametrize(
    ("name", "target"),
    [*((name, "cpu") for name in ("2:4", "vectors", "blocks", "scattered", "mixture")), ("blocks", "cuda:sm_80")],
)
def test_patterns(name: str, target: str) -> None:
    """What is chosen by itself is exact; it is no dense product where the size is enough for the pattern to pay."""
    w, rows = patterned(name), 32 if target.startswith("cuda") else 100
    g = Graph("pattern", 17)
    g.output(g.op("MatMul", g.input("x", F32, [rows, 256]), g.weight(w, "w")), "y", F32, [rows, 256])
    compiled = tw.compile(g.model(), target, **({"emulate": True} if target.startswith("cuda") else {}))
    x = np.random.default_rng(1).integers(-3, 4, (rows, 256)).astype(F32)
    np.testing.assert_array_equal(first(compiled(x)), x @ w)
    (entry,) = compiled.report_data()["sparsity"]
    if target.startswith("cuda") or name == "2:4":
        return
    assert entry["cover"] and entry["ns"] < 0.92 * entry["dense_ns"] and "dense" not in entry["kernels"]
