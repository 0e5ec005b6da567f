# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of images and their regions: resizing, sampling, detection."""

from tilewright.frontend.onnx.ops.image import (
    detection,
    regions,
    resize,
    sampling,
    suppression,
)

__all__ = [
    "detection",
    "regions",
    "resize",
    "sampling",
    "suppression",
]
