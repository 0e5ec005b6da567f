# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Front ends: from a model's own format to layer 1 (linalg on static tensors)."""

from tilewright.frontend.model import ImportedModel, TensorSpec
from tilewright.frontend.onnx import ops as _ops  # noqa: F401  (fills the table of operators)
from tilewright.frontend.onnx.importer import import_onnx

__all__ = ["ImportedModel", "TensorSpec", "import_onnx"]
