# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that take or give strings and maps: what Python does around the compiled code."""

from tilewright.runtime.text.boundary import Boundary, Step, Value
from tilewright.runtime.text.model import TextModel, bounded

__all__ = ["Boundary", "Step", "TextModel", "Value", "bounded"]
