# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process in which a compiled model has only the run-time: the compiler, MLIR and ONNX cannot be imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

COMPILER = ("mlir", "passes", "plan", "pipelines", "frontend", "normalize", "reference", "dialects", "compiler")
BLOCKED = {"onnx", "onnxruntime", "torch", "mlir", *(f"tilewright.{name}" for name in COMPILER)}


class _Blocker:
    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Refuse blocked modules; leave all others to the next finder."""
        if name in BLOCKED:
            raise ImportError(f"{name} is blocked in this process")
        return None


def isolate() -> None:
    """Make them unimportable from here on."""
    sys.meta_path.insert(0, _Blocker())  # type: ignore[arg-type]


def leaked() -> list[str]:
    """The blocked modules that are loaded nevertheless."""
    return sorted(name for name in sys.modules if name in BLOCKED or name.split(".")[0] in BLOCKED)
