# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR from text, which a user may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.core.errors import InternalError, UserError
from tilewright.core.workers import shared_pool

if TYPE_CHECKING:
    from tilewright.mlir import ir


def parse(text: str, name: str, printed: bool = False) -> ir.Module:
    """Parse MLIR text in a context of its own.

    Args:
        text: a module.
        name: what messages call it.
        printed: whether MLIR printed it, as a whole: its parser takes that.

    Raises:
        UserError: it is no valid module.
        InternalError: MLIR's parser crashes on it.
    """
    from tilewright.mlir import ir

    if not printed:
        _try_to_parse(text, name)
    try:
        with ir.Context():
            return ir.Module.parse(text)
    except ir.MLIRError as error:
        raise UserError(f"{name} is not a valid MLIR module: {error}") from None


def _try_to_parse(text: str, name: str) -> None:
    """Let another process parse the text first: MLIR's parser crashes on some, and must not take the user's with it."""
    death = shared_pool().survives(text.encode())
    if death is not None:
        raise InternalError(
            f"MLIR's parser crashed on {name} ({death}); the text is probably invalid: take parts of it away to "
            "find the place",
            ir=text,
        )
