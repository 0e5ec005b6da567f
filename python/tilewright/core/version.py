# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version of this package, which artifacts name as their producer."""

from __future__ import annotations

VERSION = "0.1.0"
