# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`linalg`: the classes of its operations, without upstream's language that named operations are described in."""

from ..dialects import _linalg_ops_gen as _linalg_ops_gen
