# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code as files: what passes that emit code write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilewright.core.errors import UserError


def write_codes(folder: str | Path, codes: Mapping[str, bytes], ending: str) -> None:
    """Write the code of each symbol to a file SYMBOL.ENDING of a folder, which is made.

    Raises:
        UserError: it cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for symbol, code in codes.items():
            (folder / f"{symbol}.{ending}").write_bytes(code)
    except OSError as error:
        raise UserError(f"cannot write code to '{folder}': {error.strerror}") from None
