# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strings and maps of ONNX models: what compiled code does on codes, and what Python does around it."""

from tilewright.frontend.onnx.text.lowering import lowered, of_code
from tilewright.frontend.onnx.text.steps import remarks_of

__all__ = ["lowered", "of_code", "remarks_of"]
