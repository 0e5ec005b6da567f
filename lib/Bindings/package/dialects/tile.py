# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Op classes and enumerations of the `tile` dialect as generated from ODS; `tilewright.dialects.tile` adds to them."""

from ._tile_enum_gen import *  # noqa: F403
from ._tile_ops_gen import *  # noqa: F403
