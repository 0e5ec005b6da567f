# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The opcodes: one module per family. Importing this package registers them all."""

from tilewright.emulate.ops import (
    atomics,
    barriers,
    bits,
    convert,
    floating,
    integer,
    mbarriers,
    memory,
    moves,
    special_functions,
    warp,
)

__all__ = [
    "atomics",
    "barriers",
    "bits",
    "convert",
    "floating",
    "integer",
    "mbarriers",
    "memory",
    "moves",
    "special_functions",
    "warp",
]
