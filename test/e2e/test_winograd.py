# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions by Winograd's filtering against the direct ones: sizes that tiles cover or not, what stands around."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import tilewright as tw
from models.single import conv

RNG = np.random.default_rng(23)
#: Errors of rounding, relative to the largest result.
TOLERANCE = {"winograd": 4e-6, "winograd4": 4e-5}


def _agree(model: ModelProto, x: np.ndarray, choice: str) -> None:
    """The same result as the direct one, but not the same bits: it was computed another way."""
    (want,), (got,) = tw.compile(model)(x), tw.compile(model, accuracy=choice)(x)
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= TOLERANCE[choice] * np.abs(want).max()
    assert not np.array_equal(got, want)


@pytest.mark.parametrize("choice", ["winograd", "winograd4"])
@pytest.mark.parametrize(("channels", "filters", "size"), [(64, 64, 28), (40, 33, 13), (128, 64, 7)])
def test_against_direct(channels: int, filters: int, size: int, choice: str) -> None:
    """With bias and Relu, sizes with and without a rest, lanes with and without one."""
    model = conv(inputs=channels, outputs=filters, size=size)
    _agree(model, RNG.standard_normal((1, channels, size, size)).astype(np.float32), choice)


def _block(batch: int, size: tuple[int, int], channels: int, pads: list[int]) -> ModelProto:
    """Two convolutions with what a residual network has between them."""
    shape = [batch, channels, *size]
    out = [batch, channels, *(s + 2 * (a + b - 2) for s, a, b in zip(size, pads[:2], pads[2:], strict=True))]
    weights = [(RNG.standard_normal((channels, channels, 3, 3)) / (3 * channels**0.5)).astype(np.float32) for _ in "ab"]
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["p"], pads=pads),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Conv", ["q", "b"], ["r"], pads=pads),
        *([helper.make_node("Add", ["r", "x"], ["s"])] if out == shape else [helper.make_node("Neg", ["r"], ["s"])]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", out))]
    initial = [numpy_helper.from_array(w, n) for w, n in zip(weights, "ab", strict=True)]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("batch", "size", "pads", "choice"),
    [
        (1, (16, 24), [1] * 4, "winograd4"),
        (2, (14, 9), [1] * 4, "winograd"),
        (3, (18, 15), [0, 1, 2, 0], "winograd4"),
        (1, (20, 20), [0] * 4, "winograd"),
    ],
)
def test_residual_block(batch: int, size: tuple[int, int], pads: list[int], choice: str) -> None:
    """Borders of any width, or none; batches; a result that the next convolution's border is put around."""
    model = _block(batch, size, 32, pads)
    _agree(model, RNG.standard_normal((batch, 32, *size)).astype(np.float32), choice)


def test_same_bits_for_any_number_of_threads() -> None:
    """Tasks cover whole sums."""
    model = tw.compile(conv(inputs=64, outputs=64, size=30), accuracy="winograd4")
    x = RNG.standard_normal((1, 64, 30, 30)).astype(np.float32)
    results = []
    for threads in (1, 2):
        model.threads = threads
        results.append(np.array(model(x)[0]))
    np.testing.assert_array_equal(*results)


def test_the_manifest_states_the_error() -> None:
    """Against exact sums, on random data; no error where nothing was to gain."""
    for size, found in ((28, True), (3, False)):
        model = tw.compile(conv(inputs=48, outputs=48, size=size), accuracy="winograd")
        entry = json.loads((model.path / "manifest.json").read_text())["compile"]["accuracy"]
        assert entry["name"] == "winograd" and (0 < entry["relative_error"] < TOLERANCE["winograd"]) == found
