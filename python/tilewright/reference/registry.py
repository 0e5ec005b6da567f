# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which Python function interprets which operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]

HANDLERS: dict[str, Handler] = {}
TERMINATORS: set[str] = set()
#: Operations whose regions their handlers read as wholes: what stands there needs no handler.
WHOLE: set[str] = set()


def handles(*names: str, whole: bool = False) -> Callable[[Handler], Handler]:
    """Register a function ``handler(frame, node, *operands)`` for operations called ``names``.

    It returns nothing for an operation without results, the value for one with one result, and a sequence for more.

    Args:
        names: of the operations.
        whole: the function reads their regions itself.
    """
    WHOLE.update(names if whole else ())

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"two handlers for {name}")
            HANDLERS[name] = handler
        return handler

    return register


def pure(name: str, function: Callable[..., Any]) -> None:
    """Register ``function(*operands)`` for an operation that needs neither attributes nor the frame."""

    @handles(name)
    def handler(_frame: Any, _node: Any, *operands: Any) -> Any:
        return function(*operands)


def terminators(*names: str) -> None:
    """Say that operations called ``names`` end a block and hand their operands to the enclosing operation."""
    TERMINATORS.update(names)
