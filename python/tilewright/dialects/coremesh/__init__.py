# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `coremesh` dialect: programs for a mesh of cores, builders of them, and layouts.

Op classes and enumerations, as generated: `tilewright.mlir.dialects.coremesh`.
"""

from tilewright.dialects.coremesh.builder import Axis as Axis
from tilewright.dialects.coremesh.builder import Buffer as Buffer
from tilewright.dialects.coremesh.builder import Combine as Combine
from tilewright.dialects.coremesh.builder import Condition as Condition
from tilewright.dialects.coremesh.builder import Order as Order
from tilewright.dialects.coremesh.builder import Overhead as Overhead
from tilewright.dialects.coremesh.builder import ProgramBuilder as ProgramBuilder
from tilewright.dialects.coremesh.builder import Slot as Slot
from tilewright.dialects.coremesh.builder import at_least as at_least
from tilewright.dialects.coremesh.builder import at_most as at_most
from tilewright.dialects.coremesh.builder import equal as equal
from tilewright.dialects.coremesh.builder import program as program
from tilewright.dialects.coremesh.layout import Layout as Layout
from tilewright.dialects.coremesh.layout import Split as Split
from tilewright.mlir.dialects.coremesh import block_type as block_type
from tilewright.mlir.dialects.coremesh import constraints as constraints
