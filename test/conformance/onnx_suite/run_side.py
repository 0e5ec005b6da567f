# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that runs saved models where onnx, onnxruntime, MLIR and our compiler cannot be imported.

A task is {"key", "folder", "artifact"}; the answer {"key", "state", "detail", "seconds"}, state being ``passed``,
``failed`` or ``error``.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

COMPILER = ("mlir", "passes", "plan", "pipelines", "frontend", "normalize", "reference", "dialects", "targets")
BLOCKED = {"onnx", "onnxruntime", "torch", "mlir", *(f"tilewright.{name}" for name in COMPILER)}


class Blocker:
    """Makes the compiler, MLIR and ONNX unimportable."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        """Refuse blocked modules; leave all others to the next finder."""
        if name in BLOCKED:
            raise ImportError(f"{name} is blocked in this process")
        return None


def outputs_of(model: Any, inputs: Sequence[Any]) -> list[Any]:
    """The model's outputs for a test's inputs; absent ones are not given, sequences as their tensors."""
    from .verdict import flat

    return list(model(*flat(list(inputs))))


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Load a saved model, run it on each set of inputs, and compare."""
    import tilewright as tw

    from .verdict import difference

    data = pickle.loads((Path(task["folder"]) / "data.pickle").read_bytes())
    start = time.perf_counter()
    state, detail = "passed", ""
    try:
        model = tw.load(task["artifact"], threads=2)
        for inputs, expected in data["sets"]:
            wrong = difference(outputs_of(model, inputs), expected, data["rtol"], data["atol"])
            if wrong:
                state, detail = "failed", wrong
                break
    except Exception as error:
        state, detail = "error", f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
    leaked = sorted(BLOCKED & set(sys.modules))
    if leaked:
        state, detail = "error", f"the run-time imported {', '.join(leaked)}"
    return {"state": state, "detail": detail, "seconds": time.perf_counter() - start}


def main() -> None:
    """Serve until the input ends. What libraries print must not get between the answers."""
    sys.meta_path.insert(0, Blocker())  # type: ignore[arg-type]
    replies = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps({"key": task["key"], **answer(task)}), file=replies, flush=True)


if __name__ == "__main__":
    main()
