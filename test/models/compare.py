# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime as the judge of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime

RTOL, ATOL = 1e-3, 1e-4


def onnxruntime_outputs(model: Path | bytes, inputs: Mapping[str, np.ndarray], threads: int = 0) -> list[np.ndarray]:
    """The model's outputs by ONNX Runtime, in the model's order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return [np.asarray(array) for array in session.run(None, dict(inputs))]


def assert_close(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> None:
    """Same number, dtypes and shapes; values within RTOL and ATOL. Raises AssertionError."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=RTOL, atol=ATOL)
