# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tilewright: an MLIR tile compiler scripted in Python.

::

    import tilewright as tw
    model = tw.compile("bert.onnx")          # for this CPU
    out = model(ids, mask)                   # NumPy or torch in, the same out
    model.save("bert.tw"); tw.load("bert.tw")

Only the public names stand here; they are imported when first used, so that loading a saved model needs no compiler.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tilewright.core import plugins
from tilewright.core.errors import InternalError, TilewrightError, UnsupportedError, UserError
from tilewright.core.version import VERSION

if TYPE_CHECKING:
    from tilewright import fractal, generation
    from tilewright.bisection.session import bisect
    from tilewright.compiler.api import compile
    from tilewright.compiler.check import check
    from tilewright.compiler.kernels import kernel
    from tilewright.compiler.sparsify import sparsify
    from tilewright.generation import Generator
    from tilewright.kernels import Kernel
    from tilewright.runtime import Model, Outputs, TensorSpec
    from tilewright.targets.loading import load

__version__ = VERSION

_LAZY = {
    "Generator": "tilewright.generation",
    "Model": "tilewright.runtime",
    "Outputs": "tilewright.runtime",
    "TensorSpec": "tilewright.runtime",
    "bisect": "tilewright.bisection.session",
    "check": "tilewright.compiler.check",
    "compile": "tilewright.compiler.api",
    "kernel": "tilewright.compiler.kernels",
    "Kernel": "tilewright.kernels",
    "load": "tilewright.targets.loading",
    "sparsify": "tilewright.compiler.sparsify",
}

_MODULES = {"fractal": "tilewright.fractal", "generation": "tilewright.generation", "torch": "tilewright.torch"}

__all__ = [
    "Generator",
    "InternalError",
    "Kernel",
    "Model",
    "Outputs",
    "TensorSpec",
    "TilewrightError",
    "UnsupportedError",
    "UserError",
    "bisect",
    "check",
    "compile",
    "fractal",
    "generation",
    "kernel",
    "load",
    "sparsify",
]


def _load_passes(names: Collection[str] | None) -> None:
    """Import modules with passes: before a pipeline is read, not before."""
    from tilewright.compiler import all_passes

    all_passes.load(names)


plugins.LOADERS.append(_load_passes)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _LAZY:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*globals(), *_LAZY, *_MODULES])
