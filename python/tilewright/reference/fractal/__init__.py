# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `fractal` dialect: an array is :class:`Lists`, its leaves are arrays."""

from tilewright.reference.fractal import access, compute, storage, trees

__all__ = ["access", "compute", "storage", "trees"]
