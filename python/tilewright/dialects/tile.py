# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `tile` dialect: types, attributes, ops and builders.

The definitions stand beside upstream's dialects in `tilewright.mlir.dialects.tile`, since generated modules import each
other relatively; this is their public place.
"""

from tilewright.mlir.dialects.tile import *  # noqa: F403
from tilewright.mlir.dialects.tile import DeviceAttr as DeviceAttr
from tilewright.mlir.dialects.tile import LayoutAttr as LayoutAttr
from tilewright.mlir.dialects.tile import LevelAttr as LevelAttr
from tilewright.mlir.dialects.tile import ReduceKind as ReduceKind
from tilewright.mlir.dialects.tile import ReduceKindAttr as ReduceKindAttr
from tilewright.mlir.dialects.tile import RTileAttr as RTileAttr
from tilewright.mlir.dialects.tile import TileType as TileType
from tilewright.mlir.dialects.tile import TokenType as TokenType
