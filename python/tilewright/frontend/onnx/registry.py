# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of ONNX operators: one function each, from tensors to tensors.

::

    @op("Relu")
    def relu(b, node, x):
        return b.elementwise(lambda m, x: m.maximum(x, 0.0), x)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.frontend.builder.builder import Builder
from tilewright.frontend.onnx.node import Node

OpFunction = Callable[..., Any]  # (Builder, Node, *inputs) -> Tensor | sequence of Tensor

NEWEST_OPSET = 28  # of the standard, that the operators were written for

_TABLE: dict[tuple[str, str], list[tuple[int, OpFunction]]] = {}
_STRUCTURED: set[OpFunction] = set()


def op(*names: str, since: int = 1, domain: str = "", structures: bool = False) -> Callable[[OpFunction], OpFunction]:
    """Register a function for ONNX operators.

    Args:
        names: of the operators.
        since: the first opset version of this meaning.
        domain: of the operators.
        structures: whether it takes sequences and optionals too, not tensors only. Absent optional inputs are None.
    """

    def register(function: OpFunction) -> OpFunction:
        if structures:
            _STRUCTURED.add(function)
        for name in names:
            entries = _TABLE.setdefault((domain, name), [])
            assert since not in [version for version, _ in entries], f"{name} since {since} is registered twice"
            entries.append((since, function))
        return function

    return register


def lookup(domain: str, name: str, version: int) -> OpFunction | None:
    """The function for an operator under an opset version, or None."""
    found = [entry for entry in _TABLE.get((domain, name), []) if entry[0] <= version]
    return max(found, key=lambda entry: entry[0])[1] if found else None


def takes_structures(function: OpFunction) -> bool:
    """Whether an operator's function takes sequences and optionals."""
    return function in _STRUCTURED


def supported() -> list[tuple[str, str, int]]:
    """All (domain, operator, since) entries, sorted."""
    return sorted((domain, name, since) for (domain, name), entries in _TABLE.items() for since, _ in entries)


__all__ = ["NEWEST_OPSET", "Builder", "Node", "OpFunction", "lookup", "op", "supported", "takes_structures"]
