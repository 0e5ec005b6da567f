# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels by hand: a `tile.kernel` as a callable with checks and a roofline; :func:`tilewright.kernel` makes it."""

from tilewright.kernels.builder import build, tile_type
from tilewright.kernels.kernel import Kernel, Prediction, Roofline
from tilewright.kernels.signature import Argument, Signature, read_kernel

__all__ = ["Argument", "Kernel", "Prediction", "Roofline", "Signature", "build", "read_kernel", "tile_type"]
