# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `sparse_tile` dialect: patterns, number formats, encodings, their values in NumPy, and op classes."""

from tilewright.dialects.sparse_tile import converters as converters
from tilewright.dialects.sparse_tile.encoded import Encoded as Encoded
from tilewright.dialects.sparse_tile.formats import Format as Format
from tilewright.dialects.sparse_tile.patterns import NM as NM
from tilewright.dialects.sparse_tile.patterns import Block as Block
from tilewright.dialects.sparse_tile.patterns import Dense as Dense
from tilewright.dialects.sparse_tile.patterns import Dynamic as Dynamic
from tilewright.dialects.sparse_tile.patterns import Mask as Mask
from tilewright.dialects.sparse_tile.tesa import Region as Region
from tilewright.dialects.sparse_tile.tesa import Tesa as Tesa
from tilewright.mlir.dialects.sparse_tile import *  # noqa: F403
