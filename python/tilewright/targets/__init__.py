# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Targets: what a target string means, and how the IR of a compiled module becomes code for it."""

from tilewright.targets.base import Target
from tilewright.targets.registry import parse_target

__all__ = ["Target", "parse_target"]
