# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations that other operators name in an attribute, with their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.math.elementwise import activation_body
from tilewright.frontend.onnx.registry import Builder, Node


def apply_activation(b: Builder, node: Node, x: Tensor, parameters: Sequence[float]) -> Tensor:
    """What the attribute `activation` makes of x; x where it is absent or empty.

    Args:
        b: the builder.
        node: the node.
        x: its result so far.
        parameters: of the activation, in the order in which its own operator names them.

    Raises:
        UnsupportedError: there is no such activation.
    """
    name = node.attr("activation", "")
    if not name:
        return x
    body = _body(name, parameters)
    if body is None:
        node.unsupported(f"the activation {name}; write the model again without fusion of activations")
    return b.elementwise(body, x)


def _body(name: str, parameters: Sequence[float]) -> Callable | None:
    if name == "Clip":
        low, high = parameters
        return lambda m, x: m.minimum(m.maximum(x, low), high)
    return activation_body(name, parameters)


def scaled_parameters(node: Node) -> list[float]:
    """The parameters that activation_alpha, _beta and _gamma state."""
    given = (node.attr(f"activation_{name}") for name in ("alpha", "beta", "gamma"))
    return [v for v in given if v is not None]
