# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `fractal` dialect in Python: op classes, the type of nested lists, access maps."""

from .._mlir_libs._tilewrightFractal import DYNAMIC as DYNAMIC
from .._mlir_libs._tilewrightFractal import RAGGED as RAGGED
from .._mlir_libs._tilewrightFractal import ArrayType as ArrayType
from .._mlir_libs._tilewrightFractal import access_map  # noqa: F401
from ._fractal_ops_gen import *  # noqa: F403
