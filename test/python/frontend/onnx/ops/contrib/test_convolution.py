# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of com.microsoft beside ONNX Runtime, and with channels last beside the standard's."""

from __future__ import annotations

import numpy as np
import pytest
from beside import beside_runtime, model_of, real, run_runtime

ACTIVATIONS = [
    ("Relu", []),
    ("LeakyRelu", [0.2]),
    ("Clip", [0.1, 0.5]),
    ("HardSigmoid", [0.2, 0.3]),
    ("Tanh", []),
    ("Sigmoid", []),
    ("HardSwish", []),
]
PARAMETERS = [real(6, 4, 3, 3), real(6)]


@pytest.mark.parametrize(("name", "parameters"), ACTIVATIONS)
def test_activations(name, parameters):
    more = {"activation_params": parameters} if parameters else {}
    geometry = {"pads": [1, 1, 1, 1], "strides": [2, 2]}
    inputs = [real(2, 4, 9, 9), *PARAMETERS]
    beside_runtime("FusedConv", inputs, known=(1, 2), opens=(2, 9), activation=name, **geometry, **more)


def test_addition():
    inputs = [real(2, 4, 9, 9), real(6, 2, 3, 3), None, real(2, 6, 7, 7)]
    beside_runtime("FusedConv", inputs, opens=(9, 7), activation="Relu", group=2)


@pytest.mark.parametrize("op", ["NhwcConv", "NhwcFusedConv"])
def test_channels_last(op):
    x, z = real(2, 9, 8, 4), real(2, 9, 8, 6)
    fused = op == "NhwcFusedConv"
    inputs = [x, *PARAMETERS, *([z] if fused else [])]
    options = {"pads": [1, 1, 1, 1], **({"activation": "Relu"} if fused else {})}
    first = [np.ascontiguousarray(v.transpose(0, 3, 1, 2)) if v.ndim == 4 and v is not inputs[1] else v for v in inputs]
    model = model_of("FusedConv", first, **options) if fused else model_of("Conv", first, domain="", **options)
    want = run_runtime(model, {f"x{i}": v for i, v in enumerate(first)})[0].transpose(0, 2, 3, 1)
    beside_runtime(op, inputs, known=(1, 2), opens=(2, 8), expected=[want], **options)
