# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers beside ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from support import compare, feeds, import_onnx, interpret, node_model, normalize

_RANDOM = np.random.default_rng(14)
_DOMAIN = "ai.onnx.preview.training"
_KINDS = {"Adagrad": 3, "Adam": 4, "Momentum": 3}


def run(op, count, step, **options):
    shapes = [(3,), (2, 4)][:count]
    tensors = [np.abs(_RANDOM.standard_normal(s)).astype(np.float32) for _ in range(_KINDS[op]) for s in shapes]
    inputs = [np.float32(0.1).reshape(()), np.array(step, np.int64), *tensors]
    model = node_model(op, inputs, outputs=(_KINDS[op] - 1) * count, domain=_DOMAIN, **options)
    for output, tensor in zip(model.graph.output, [t for t in tensors[:count]] * _KINDS[op], strict=False):
        output.type.tensor_type.elem_type = 1
        output.type.tensor_type.shape.Clear()
        for n in tensor.shape:
            output.type.tensor_type.shape.dim.add().dim_value = n
    arrays = feeds(model, inputs)
    expected = [np.asarray(y, np.float32) for y in ReferenceEvaluator(model).run(None, arrays)]
    imported = import_onnx(model)
    compare(interpret(imported, arrays), expected, 1e-5, 1e-6)
    compare(interpret(normalize(imported), arrays), expected, 1e-5, 1e-6)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("step", [0, 3])
@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("Adagrad", {"norm_coefficient": 0.01, "epsilon": 1e-4, "decay_factor": 0.1}),
        ("Adam", {"alpha": 0.95, "beta": 0.8, "norm_coefficient": 0.02, "epsilon": 1e-3}),
        ("Adam", {"norm_coefficient_post": 0.1}),
        ("Momentum", {"norm_coefficient": 0.01, "alpha": 0.9, "beta": 0.3, "mode": "standard"}),
        ("Momentum", {"norm_coefficient": 0.0, "alpha": 0.9, "beta": 0.3, "mode": "nesterov"}),
    ],
)
def test_steps(op, options, step, count):
    run(op, count, step, **options)
