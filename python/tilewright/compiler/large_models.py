# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX models in memory that are too large for one message of protobuf: their weights go to a file beside them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

#: Bytes of weights; a message may have 2 GiB.
LIMIT = 2_000_000_000


def in_file(model: Any) -> Path | None:
    """Write a model that is too large to a new temporary folder, weights apart; None where it is small enough.

    Args:
        model: an onnx.ModelProto, which stays as it is.

    Returns:
        The file; its folder is the caller's to remove.
    """
    if sum(len(tensor.raw_data) for tensor in model.graph.initializer) < LIMIT:
        return None
    import onnx

    path = Path(tempfile.mkdtemp(prefix="tilewright-")) / "model.onnx"
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    onnx.save_model(copy, path, save_as_external_data=True, location="weights", size_threshold=0)
    return path
