# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Encoded operands of products: what packed them, and whether that runs at compile time."""

from __future__ import annotations

from tilewright.ir.generics import maker
from tilewright.ir.structure import captured
from tilewright.mlir import ir

_CONSTANTS = ("tensor.empty", "arith.constant", "ml_program.global_load_const")
_COMPUTED = ("linalg.", "sparse_tile.", "tensor.")


def is_constant(value: ir.Value) -> bool:
    """Whether weights and constants alone determine a value, by operations that `tile-hoist-init` moves to @init."""
    seen: set[ir.Value] = set()

    def follows(one: ir.Value) -> bool:
        made = maker(one)
        if made is None or one in seen:
            return made is not None
        seen.add(one)
        if made.name in _CONSTANTS and not made.operands:
            return True
        return made.name.startswith(_COMPUTED) and all(map(follows, [*made.operands, *captured(made)]))

    return follows(value)


def pack_of(encoded: ir.Value) -> ir.Operation | None:
    """What packed an encoded tensor, also where it was taken apart and assembled again; None: it was not packed."""
    made = maker(encoded)
    if made is not None and made.name == "sparse_tile.assemble":
        parts = maker(made.operands[0])
        if parts is None or parts.name != "sparse_tile.parts" or list(parts.results) != list(made.operands):
            return None
        made = maker(parts.operands[0]) if parts.operands[0].type == encoded.type else None
    return made if made is not None and made.name == "sparse_tile.pack" else None
