# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of TensorFlow that tf2onnx has no mapping for: it writes them as they are, in the standard's domain.

ONNX's checker knows none of them, and ONNX Runtime refuses such a file.
"""

from __future__ import annotations

from tilewright.frontend.builder.dtypes import is_float
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("Erfc")
def erfc(b: Builder, node: Node, x: Tensor) -> Tensor:
    """1 - erf(x), as Gelu of Keras has it: exact to the rounding of numbers near one, not relative to small results."""
    if not is_float(x.dtype):
        node.wrong(f"the input must have floats, and has {x.dtype}")
    return b.elementwise(lambda m, v: 1.0 - m.erf(v), x)
