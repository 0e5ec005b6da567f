# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of signals: Fourier transforms, windows, mel filters."""

from tilewright.frontend.onnx.ops.signal import (
    fourier,
    spectral,
    windows,
)

__all__ = [
    "fourier",
    "spectral",
    "windows",
]
