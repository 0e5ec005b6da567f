# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `fractal` dialect: nested lists of equal tensors; their type, their values in NumPy, and op classes."""

from tilewright.dialects.fractal import access as access
from tilewright.dialects.fractal.values import Lists as Lists
from tilewright.mlir.dialects.fractal import *  # noqa: F403
from tilewright.mlir.dialects.fractal import DYNAMIC as DYNAMIC
from tilewright.mlir.dialects.fractal import RAGGED as RAGGED
from tilewright.mlir.dialects.fractal import ArrayType as ArrayType
from tilewright.mlir.dialects.fractal import access_map as access_map
