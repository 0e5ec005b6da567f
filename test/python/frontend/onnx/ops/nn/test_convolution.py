# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposed, deformable and causal convolutions, and Col2Im, beside ONNX Runtime and onnx's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from support import check_numbers, check_reference, check_values, feeds, node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

_RANDOM = np.random.default_rng(21)


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [1, 0, 2, 1]},
        {"strides": [2, 3]},
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
        {"dilations": [2, 1], "pads": [1, 0, 0, 1]},
        {"strides": [3, 2], "dilations": [2, 2]},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 1], "auto_pad": "SAME_LOWER"},
        {"strides": [2, 2], "output_shape": [10, 11]},
        {"strides": [5, 4]},
    ],
)
@pytest.mark.parametrize("known", [[], [1, 2]])
def test_transposed(attributes, known):
    run("ConvTranspose", random(2, 3, 4, 5), random(3, 4, 3, 3), random(4), known=known, **attributes)


@pytest.mark.parametrize("groups", [2, 4])
def test_transposed_in_groups(groups):
    run("ConvTranspose", random(1, 4, 3, 4), random(4, 2, 2, 3), group=groups, strides=[2, 2], pads=[1] * 4)


def test_transposed_of_one_and_three_dimensions():
    run("ConvTranspose", random(2, 3, 7), random(3, 2, 4), random(2), strides=[3], pads=[1, 2])
    run("ConvTranspose", random(1, 2, 3, 2, 3), random(2, 3, 2, 3, 2), strides=[2, 1, 2])


def test_transposed_that_leaves_a_rest_unread():
    run("ConvTranspose", random(2, 3, 8), random(3, 2, 1), pads=[1, 1])
    run("ConvTranspose", random(1, 1, 6, 2), random(1, 1, 2, 3), strides=[3, 3], pads=[2, 2, 2, 2])


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_transposed_with_holes(mode):
    inputs = [random(1, 3, 4, 5), random(3, 2, 2, 1)]
    model = node_model("ConvTranspose", inputs, strides=[3, 4], auto_pad=mode)
    check_reference(model, feeds(model, inputs))


def test_transposed_larger_than_its_input_reaches():
    model = node_model("ConvTranspose", [random(1, 1, 3, 3), random(1, 2, 3, 3)], strides=[3, 2], output_shape=[10, 8])
    check_reference(model, feeds(model, [random(1, 1, 3, 3), random(1, 2, 3, 3)]))


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats_sum_in_wide_types(op, dtype):
    inputs = [random(1, 16, 5, 6, dtype=dtype), random(16, 16, 3, 3, dtype=dtype)]
    wide = [x.astype(np.float64) for x in inputs]
    exact = node_model(op, wide)
    expected = ReferenceEvaluator(exact).run(None, feeds(exact, wide))[0]
    model = node_model(op, inputs)
    check_values(model, feeds(model, inputs), [np.asarray(expected).astype(dtype)], rtol=1e-3, atol=1e-3)


def test_wrong_filters_name_the_node():
    model = node_model("ConvTranspose", [random(1, 3, 4), random(3, 2, 3)], group=2)
    with pytest.raises(UserError, match="2 groups") as caught:
        import_onnx(model)
    assert caught.value.location == "the_ConvTranspose"


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 1], "dilations": [1, 2], "pads": [1, 2, 1, 2], "group": 2},
        {"kernel_shape": [3, 3], "offset_group": 2, "pads": [0, 0, 1, 1]},
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_deformable(attributes, masked):
    x, w = random(2, 4, 6, 7), random(6, 4 // attributes.get("group", 1), 3, 3)
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    low, high = attributes["pads"][:2], attributes["pads"][2:]
    sizes = [6 + low[0] + high[0], 7 + low[1] + high[1]]
    out = [(n - 2 * d - 1) // s + 1 for n, s, d in zip(sizes, strides, dilations, strict=True)]
    parts = attributes.get("offset_group", 1)
    offset, mask = random(2, parts * 18, *out), random(2, parts * 9, *out) if masked else None
    run("DeformConv", x, w, offset, random(6), mask, opset=19, **attributes)


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize(("length", "size"), [(5, 3), (1, 4), (2, 1)])
@pytest.mark.parametrize("state", [False, True])
def test_causal(activation, length, size, state):
    x, w, bias = random(2, 3, length), random(3, 1, size), random(3)
    past = random(2, 3, size - 1) if state and size > 1 else None
    whole = np.concatenate([np.zeros((2, 3, size - 1), np.float32) if past is None else past, x], axis=2)
    y = sum(whole[:, :, k : k + length] * w[:, 0, k, None] for k in range(size)) + bias[:, None]
    y = y / (1 + np.exp(-y)) if activation == "silu" else y
    model = _causal_model([x, w, bias, past], activation)
    check_values(model, feeds(model, [x, w, bias, past]), [y, whole[:, :, length:]])


def _causal_model(inputs, activation):
    model = node_model("CausalConvWithState", inputs, opset=27, outputs=2, activation=activation)
    model.ir_version = 13
    return model


@pytest.mark.parametrize(
    "attributes",
    [{}, {"strides": [2, 2]}, {"dilations": [1, 2], "pads": [1, 0, 1, 2]}, {"strides": [1, 3], "pads": [0, 1, 1, 0]}],
)
@pytest.mark.parametrize("known", [[1, 2], []])
def test_col2im(attributes, known):
    image, block = [6, 7], [2, 3]
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads = attributes.get("pads", [0] * 4)
    axes = zip(image, block, strides, dilations, pads[:2], pads[2:], strict=True)
    blocks = np.prod([(n + a + c - d * (k - 1) - 1) // s + 1 for n, k, s, d, a, c in axes])
    inputs = [random(2, 18, blocks), np.array(image), np.array(block)]
    model = node_model("Col2Im", inputs, known=known, opset=18, **attributes)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y0", 1, [2, 3, *image]))
    check_numbers(model, feeds(model, inputs))


def test_col2im_into_an_image_of_unknown_size():
    inputs = [random(1, 8, 9), np.array([4, 4]), np.array([2, 2])]
    model = node_model("Col2Im", inputs, opset=18)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y0", 1, None))
    check_numbers(model, feeds(model, inputs))
