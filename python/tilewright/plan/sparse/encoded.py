# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encoded operands of products: what packed them."""

from __future__ import annotations

from tilewright.ir.generics import maker
from tilewright.mlir import ir


def pack_of(encoded: ir.Value) -> ir.Operation | None:
    """What packed an encoded tensor, also where it was taken apart and assembled again; None: it was not packed."""
    made = maker(encoded)
    if made is not None and made.name == "sparse_tile.assemble":
        parts = maker(made.operands[0])
        if parts is None or parts.name != "sparse_tile.parts" or list(parts.results) != list(made.operands):
            return None
        made = maker(parts.operands[0]) if parts.operands[0].type == encoded.type else None
    return made if made is not None and made.name == "sparse_tile.pack" else None
