# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `coremesh` dialect in Python: op classes, enumerations, and what the constraints of cores are."""

from .._mlir_libs._tilewrightCoreMesh import block_type as block_type
from .._mlir_libs._tilewrightCoreMesh import constraints as constraints
from .._mlir_libs._tilewrightCoreMesh import layout_entries as layout_entries
from ._coremesh_enum_gen import *  # noqa: F403
from ._coremesh_ops_gen import *  # noqa: F403
