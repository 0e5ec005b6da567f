# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that make, convert, move and select elements."""

from tilewright.frontend.onnx.ops.tensor import (
    cast,
    constant,
    gathering,
    movement,
    padding,
    random,
    scatter,
    scattering,
    selection,
    shape,
)

__all__ = [
    "cast",
    "constant",
    "gathering",
    "movement",
    "padding",
    "random",
    "scatter",
    "scattering",
    "selection",
    "shape",
]
