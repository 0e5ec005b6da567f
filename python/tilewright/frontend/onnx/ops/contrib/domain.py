# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operators of ONNX Runtime share: their domain, and their node as the standard's operators read it."""

from __future__ import annotations

import copy

from tilewright.frontend.builder.dtypes import is_narrow
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widen
from tilewright.frontend.onnx.registry import NEWEST_OPSET, Builder, Node

DOMAIN = "com.microsoft"


def as_standard(node: Node, version: int = NEWEST_OPSET) -> Node:
    """The node as one of the standard's, by the rules of an opset version: versions of this domain say nothing."""
    other = copy.copy(node)
    other.version = version
    return other


def in_f32(b: Builder, *xs: Tensor | None) -> list[Tensor | None]:
    """Inputs with f32 in the place of narrower floats."""
    return [x if x is None or not is_narrow(x.dtype) else widen(b, x) for x in xs]


def wanted(node: Node, output: int) -> bool:
    """Whether the model names an optional result."""
    names = node.proto.output
    return output < len(names) and bool(names[output])
