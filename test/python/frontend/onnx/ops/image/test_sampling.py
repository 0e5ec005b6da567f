# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AffineGrid and GridSample beside ONNX Runtime and onnx's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support import check_numbers, check_reference, feeds, interpret, node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

_RANDOM = np.random.default_rng(24)


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def run(op, *inputs, check=check_numbers, **options):
    model = node_model(op, inputs, **options)
    return check(model, feeds(model, inputs))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(mode, padding, align):
    grid = _RANDOM.uniform(-1.6, 1.6, (2, 4, 3, 2)).astype(np.float32)
    options = {"mode": mode, "padding_mode": padding, "align_corners": align}
    run("GridSample", random(2, 3, 5, 6), grid, opset=16, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_volumes(mode, padding):
    grid = _RANDOM.uniform(-1.4, 1.4, (1, 2, 3, 4, 3)).astype(np.float32)
    run("GridSample", random(1, 2, 3, 4, 5), grid, opset=20, mode=mode, padding_mode=padding)


def test_grid_sample_reads_nothing_outside():
    """Coordinates that are not numbers, or far away, stay in bounds."""
    grid = np.float32([np.nan, 1e30, -1e30, np.inf, 0, 0, -3e9, 3e9]).reshape(1, 1, 4, 2)
    model = node_model("GridSample", [random(1, 1, 2, 2), grid], opset=16, mode="nearest")
    (y,) = interpret(import_onnx(model), feeds(model, [random(1, 1, 2, 2), grid]))
    assert np.isfinite(y).all()


def test_grid_sample_of_narrow_floats():
    grid = _RANDOM.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float16)
    x = random(1, 2, 4, 4, dtype=np.float16)
    model = node_model("GridSample", [x, grid], opset=20)
    check_reference(model, feeds(model, [x, grid]), 2e-2, 2e-2)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 3, 4, 2), (1, 1, 2, 7)])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("how", ["known", "declared", "open"])
def test_affine_grid(shape, align, how):
    rank = len(shape) - 2
    inputs = [random(shape[0], rank, rank + 1), np.array(shape)]
    model = node_model("AffineGrid", inputs, opset=20, align_corners=align, known=[1] if how == "known" else [])
    declared = [shape[0], *shape[2:], rank] if how == "declared" else None
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y0", 1, declared))
    check_numbers(model, feeds(model, inputs))


def test_a_grid_that_does_not_fit_names_the_node():
    model = node_model("GridSample", [random(1, 1, 4, 4), random(1, 2, 2, 2)], opset=20)
    model.graph.input[1].type.tensor_type.shape.dim[3].dim_value = 3
    with pytest.raises(UserError, match="do not fit") as caught:
        import_onnx(model)
    assert caught.value.location == "the_GridSample"
