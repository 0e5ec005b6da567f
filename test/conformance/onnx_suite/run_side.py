# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that runs saved models where onnx, onnxruntime, MLIR and our compiler cannot be imported.

A task is {"key", "folder", "artifact", "target"}; code that an emulator can run runs there. The answer is {"key",
"state", "detail", "seconds"}, state being ``passed``, ``failed`` or ``error``.
"""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

from .isolation import isolate, leaked
from .serving import describe, serve


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Load a saved model, run it on each set of inputs, and compare."""
    import tilewright as tw
    from tilewright.targets.registry import named

    from .verdict import wrong_result

    data = pickle.loads((Path(task["folder"]) / "data.pickle").read_bytes())
    start = time.perf_counter()
    try:
        emulate = named(task["target"]).emulates
        wrong = wrong_result(tw.load(task["artifact"], threads=2, emulate=emulate), data)
        state, detail = ("failed", wrong) if wrong else ("passed", "")
    except Exception as error:
        state, detail = "error", describe(error)
    if leaked():
        state, detail = "error", f"the run-time imported {', '.join(leaked())}"
    return {"state": state, "detail": detail, "seconds": time.perf_counter() - start}


if __name__ == "__main__":
    isolate()
    serve(answer)
