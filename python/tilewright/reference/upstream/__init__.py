# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operations of upstream's dialects mean, a file per dialect."""

from tilewright.reference.upstream import (
    affine_ops,
    arith_ops,
    bufferization_ops,
    cf_ops,
    complex_ops,
    contraction,
    func_ops,
    index_ops,
    linalg_ops,
    memref_ops,
    scf_ops,
    tensor_ops,
    views,
)

__all__ = [
    "affine_ops",
    "arith_ops",
    "bufferization_ops",
    "cf_ops",
    "complex_ops",
    "contraction",
    "func_ops",
    "index_ops",
    "linalg_ops",
    "memref_ops",
    "scf_ops",
    "tensor_ops",
    "views",
]
