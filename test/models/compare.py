# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime as the judge of results, and ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

RTOL, ATOL = 1e-3, 1e-4


def onnxruntime_outputs(
    model: Path | bytes, inputs: Mapping[str, np.ndarray], threads: int = 0, optimized: bool = True
) -> list[np.ndarray]:
    """The model's outputs by ONNX Runtime, in the model's order.

    Without `optimized` the graph is computed as it stands: where it says so in f32. On a CPU without VNNI the products
    of u8 and s8 that ONNX Runtime puts in the place of f32 add pairs in 16 bits, and saturate.
    """
    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return [np.asarray(array) for array in session.run(None, dict(inputs))]


def reference_outputs(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The model's outputs by ONNX's own evaluator: NumPy, whose products of integers are exact on any CPU."""
    return [np.asarray(array) for array in ReferenceEvaluator(model).run(None, dict(inputs))]


def assert_close(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> None:
    """Same number, dtypes and shapes; values within RTOL and ATOL. Raises AssertionError."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=RTOL, atol=ATOL)
