# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole quantized models with weights of 8 bits beside ONNX Runtime where it does not saturate: equal to rounding.

It runs on one thread: its LSTM takes the range of a state from the rows of one thread.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from exact_codes import unsigned
from test_quantized_files import F32, Samples, image, layers, quantization, recurrent

import tilewright as tw

MODELS = {"layers": layers, "image": image, "recurrent": recurrent}


def quantized(made: onnx.ModelProto, way: str, folder: Path) -> onnx.ModelProto:
    """The model with signed weights that use all 8 bits, as the quantizer writes it."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    onnx.save(made, before)
    options = {"per_channel": way.endswith("channels"), "weight_type": quantization.QuantType.QInt8}
    logging.disable(logging.WARNING)
    try:
        if way.startswith("dynamic"):
            quantization.quantize_dynamic(before, after, **options)
        else:
            shape = [d.dim_value or 2 for d in made.graph.input[0].type.tensor_type.shape.dim]
            options["activation_type"] = quantization.QuantType.QUInt8
            form = quantization.QuantFormat.QOperator
            quantization.quantize_static(before, after, Samples(shape), quant_format=form, **options)
    finally:
        logging.disable(logging.NOTSET)
    return onnx.load(after)


def run_runtime(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def check(name: str, way: str, folder: Path) -> None:
    made = MODELS[name]()
    model = quantized(made, way, folder)
    changed, count = unsigned(model)
    assert count
    compiled = tw.compile(model)
    random = np.random.default_rng(5)
    for batch in (1, 3, 8):
        shape = [d.dim_value or batch for d in made.graph.input[0].type.tensor_type.shape.dim]
        x = random.standard_normal(shape).astype(F32)
        want = run_runtime(changed, x)
        np.testing.assert_allclose(compiled(x)[0], want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_layers(tmp_path):
    check("layers", "dynamic, channels", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["dynamic", "QOperator", "QOperator, channels"])
def test_layers_in_other_ways(way, tmp_path):
    check("layers", way, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["dynamic", "dynamic, channels", "QOperator", "QOperator, channels"])
@pytest.mark.parametrize("name", ["image", "recurrent"])
def test_others(name, way, tmp_path):
    check(name, way, tmp_path)
