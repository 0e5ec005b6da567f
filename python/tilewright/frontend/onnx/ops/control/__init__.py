# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that hold graphs, and those of sequences and optionals."""

from tilewright.frontend.onnx.ops.control import (
    flow,
    optional,
    sequence,
)

__all__ = [
    "flow",
    "optional",
    "sequence",
]
