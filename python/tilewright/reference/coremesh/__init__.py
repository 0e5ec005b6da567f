# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `coremesh` dialect: bodies of `coremesh.compute` end in `coremesh.yield`, as functions do in `return`."""

from tilewright.reference.registry import terminators

terminators("coremesh.yield")
