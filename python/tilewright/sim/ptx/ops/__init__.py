# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The opcodes: one module per family. Importing this package registers them all."""

from tilewright.sim.ptx.ops import (
    async_copy,
    atomics,
    barriers,
    bits,
    bulk_copy,
    cluster,
    convert,
    floating,
    hopper,
    integer,
    mbarriers,
    memory,
    moves,
    special_functions,
    tensor_mma,
    tensor_registers,
    tensor_wgmma,
    warp,
)

__all__ = [
    "async_copy",
    "atomics",
    "barriers",
    "bits",
    "bulk_copy",
    "cluster",
    "convert",
    "floating",
    "hopper",
    "integer",
    "mbarriers",
    "memory",
    "moves",
    "special_functions",
    "tensor_mma",
    "tensor_registers",
    "tensor_wgmma",
    "warp",
]
