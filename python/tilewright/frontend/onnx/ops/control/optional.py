# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optionals: whether one holds something is known at compile time; one that does is its value."""

from __future__ import annotations

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node, op
from tilewright.frontend.onnx.sequences import Absent, Value


@op("Optional", since=15, structures=True)
def optional(b: Builder, node: Node, x: Value | None = None) -> Value:
    """The value, or nothing."""
    return Absent() if x is None else x


@op("OptionalHasElement", since=15, structures=True)
def optional_has_element(b: Builder, node: Node, x: Value | None = None) -> Tensor:
    """Known."""
    return Tensor.known(x is not None and not isinstance(x, Absent))


@op("OptionalGetElement", since=15, structures=True)
def optional_get_element(b: Builder, node: Node, x: Value) -> Value:
    """The value itself."""
    if x is None or isinstance(x, Absent):
        node.wrong("the optional holds nothing")
    return x
