# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX operators, a folder per domain and a file per family; importing this package registers them all."""

from tilewright.frontend.onnx.ops import (
    contrib,
    control,
    image,
    math,
    ml,
    nn,
    quantized,
    signal,
    tensor,
)

__all__ = [
    "contrib",
    "control",
    "image",
    "math",
    "ml",
    "nn",
    "quantized",
    "signal",
    "tensor",
]
