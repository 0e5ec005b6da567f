# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How handlers of `fractal` are registered."""

from __future__ import annotations

import functools
from typing import Any

from tilewright.core.errors import UserError
from tilewright.reference.errors import InterpreterError
from tilewright.reference.lists import Kind
from tilewright.reference.program import Node
from tilewright.reference.registry import Handler, handles


def op(name: str) -> Any:
    """Register a handler: what a value refuses is undefined behaviour, and so is a result that its type denies.

    The result of an op may have any type that those of its operands do not exclude: a claim that only a run can check.
    """

    def register(handler: Handler) -> Handler:
        @handles(f"fractal.{name}")
        @functools.wraps(handler)
        def checked(frame: Any, node: Node, *operands: Any) -> Any:
            try:
                given = handler(frame, node, *operands)
            except UserError as error:
                raise InterpreterError(f"fractal.{name}: {error}") from None
            for number, kind in enumerate(kinds(node)):
                if kind is not None:
                    kind.check(given if len(node.results) == 1 else given[number], f"fractal.{name}: result {number}")
            return given

        return handler

    return register


def kinds(node: Node) -> list[Kind | None]:
    """What each result's type says; None where it is no array."""
    return node.once("kinds", lambda: [Kind.of(result.type) for result in node.op.results])
