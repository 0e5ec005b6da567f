# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which pass moved a result: the IR after each pass is run on the same inputs, until the first that differs is known.

`stages` makes the states of the IR, `entry` runs one in the interpreter and `native` as machine code, `compare` says
what moved, `search` decides which states to run, `reduce` makes the case small, and `session` puts them together.
"""

from __future__ import annotations

from tilewright.bisection.compare import Difference
from tilewright.bisection.session import Bisection, bisect

__all__ = ["Bisection", "Difference", "bisect"]
