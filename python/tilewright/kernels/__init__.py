# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels by hand: a `tile.kernel` as a callable with checks and a roofline; :func:`tilewright.kernel` makes it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.kernels.builder import build as build
    from tilewright.kernels.builder import tile_type as tile_type
    from tilewright.kernels.kernel import Kernel as Kernel
    from tilewright.kernels.kernel import Prediction as Prediction
    from tilewright.kernels.kernel import Roofline as Roofline
    from tilewright.kernels.signature import Argument as Argument
    from tilewright.kernels.signature import Signature as Signature
    from tilewright.kernels.signature import read_kernel as read_kernel

_PLACES = {
    "builder": ("build", "tile_type"),
    "kernel": ("Kernel", "Prediction", "Roofline"),
    "signature": ("Argument", "Signature", "read_kernel"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for: passes of this package need none of them."""
    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
