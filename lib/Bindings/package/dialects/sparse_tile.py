# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `sparse_tile` dialect in Python: op classes and the encoding's attribute."""

from .._mlir_libs._tilewrightSparseTile import TesaAttr as TesaAttr
from .._mlir_libs._tilewrightSparseTile import parts as part_types  # noqa: F401
from ._sparse_tile_ops_gen import *  # noqa: F403
