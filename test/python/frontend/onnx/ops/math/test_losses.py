# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses beside ONNX Runtime, with all reductions."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, check_reference, feeds, node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

_RANDOM = np.random.default_rng(26)
SHAPES = [(5, 4), (2, 4, 3, 2), (2, 4, 1, 2, 2, 1)]


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def labels(shape, ignore, dtype=np.int64):
    result = _RANDOM.integers(0, shape[1], (shape[0], *shape[2:])).astype(dtype)
    if ignore is not None:
        result.flat[0] = ignore
    return result


@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(("weighted", "ignore"), [(False, None), (True, None), (True, 1), (False, -100)])
def test_loss(op, shape, reduction, weighted, ignore):
    inputs = [random(*shape), labels(shape, ignore)] + ([np.abs(random(shape[1]))] if weighted else [])
    attributes = {"reduction": reduction} | ({} if ignore is None else {"ignore_index": ignore})
    model = node_model(op, inputs, opset=13, **attributes)
    check_reference(model, feeds(model, inputs))


@pytest.mark.parametrize("shape", SHAPES[:2])
def test_beside_onnx_runtime(shape):
    inputs = [random(*shape), labels(shape, 2, np.int32), np.abs(random(shape[1]))]
    model = node_model("SoftmaxCrossEntropyLoss", inputs, opset=13, outputs=2, ignore_index=2)
    check_numbers(model, feeds(model, inputs))


def test_narrow_floats_sum_in_wide_types():
    inputs = [random(3000, 4, dtype=np.float16), labels((3000, 4), None)]
    model = node_model("SoftmaxCrossEntropyLoss", inputs, opset=13)
    check_reference(model, feeds(model, inputs), 2e-3, 2e-3)


def test_labels_that_do_not_fit_name_the_node():
    model = node_model("NegativeLogLikelihoodLoss", [random(3, 4), labels((3, 4), None)], opset=13)
    model.graph.input[1].type.tensor_type.shape.dim.add().dim_value = 1
    with pytest.raises(UserError) as caught:
        import_onnx(model)
    assert "NegativeLogLikelihoodLoss" in str(caught.value)
