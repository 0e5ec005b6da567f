# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models beyond plain networks: caches in and out, 16-bit floats, detection, quantization, loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import models
import tilewright as tw
from models.compare import assert_close, onnxruntime_outputs
from models.quantized import LOGIT_STEP

TARGETS = ["cpu", "reference"]
Run = Callable[[dict[str, np.ndarray]], list[np.ndarray]]


def compiled(name: str, target: str, optimized: bool = True) -> tuple[onnx.ModelProto, Run, Any]:
    """The model, and functions that run it: ours, and ONNX Runtime's."""
    file = models.path(name)
    model = tw.compile(str(file), target=target, threads=2)

    def theirs(inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        return onnxruntime_outputs(file, inputs, optimized=optimized)

    return onnx.load(file), lambda inputs: _listed(model(**inputs)), theirs


def _listed(results: Any) -> list[np.ndarray]:
    values = results.values() if isinstance(results, dict) else results
    return [np.asarray(value) for value in values]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["decoder_tiny", "decoder_tiny_export", "detection_tiny", "control_tiny"])
def test_as_onnxruntime(name: str, target: str) -> None:
    proto, ours, theirs = compiled(name, target)
    for seed in (0, 1, 2):
        inputs = models.random_inputs(proto, seed)
        assert_close(ours(inputs), theirs(inputs))


@pytest.mark.slow
@pytest.mark.parametrize("style", ["", "_export"])
def test_decoding_with_the_cache_that_came_out(style: str) -> None:
    """A prompt with an empty cache, then token by token: the same logits as of the whole text at once."""
    _, ours, theirs = compiled(f"decoder_tiny{style}_dynamic", "cpu")
    text = np.array([[3, 14, 15, 9, 26, 5]])
    past = {f"past_{kind}_{i}": np.zeros((1, 2, 0, 12), np.float32) for i in range(2) for kind in ("key", "value")}
    whole = ours({"tokens": text, "positions": np.arange(6)[None], **past})
    done = 0
    for count in (4, 1, 1):
        chunk = slice(done, done + count)
        inputs = {"tokens": text[:, chunk], "positions": np.arange(6)[None, chunk], **past}
        results = ours(inputs)
        assert_close(results, theirs(inputs))
        np.testing.assert_allclose(results[0], whole[0][:, chunk], rtol=1e-3, atol=1e-4)
        past = dict(zip(past, results[1:], strict=True))
        done += count
    assert_close(list(past.values()), whole[1:])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("name", "tolerance"), [("transformer_bf16", 0.06), ("transformer_f16", 0.01)])
def test_narrow_floats(name: str, tolerance: float, target: str) -> None:
    """As ONNX's evaluator computes in the type itself: within a few units in the last place."""
    proto, ours, _ = compiled(name, target)
    inputs = models.random_inputs(proto)
    (y,) = ours(inputs)
    (expected,) = ReferenceEvaluator(proto).run(None, inputs)
    expected = np.asarray(expected)
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y.astype(np.float32), expected.astype(np.float32), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("target", TARGETS)
def test_quantized_network(target: str) -> None:
    """Equal to ONNX Runtime's f32, but for logits that lie half-way between two steps."""
    proto, ours, theirs = compiled("quantized_tiny", target, optimized=False)
    differing = 0
    for seed in range(4):
        inputs = models.random_inputs(proto, seed)
        (y,), (expected,) = ours(inputs), theirs(inputs)
        np.testing.assert_allclose(y, expected, atol=1.01 * LOGIT_STEP)
        differing += int((np.abs(y - expected) > 0.1 * LOGIT_STEP).sum())
    assert differing <= 2
