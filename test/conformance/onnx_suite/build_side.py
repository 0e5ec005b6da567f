# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that compiles: reads tasks, one JSON per line; answers one line each.

A task is {"key", "folder", "artifact", "target"}; the answer {"key", "state", "detail", "seconds"}, state being
``built`` or ``error``, and for targets whose models need the compiler to run, the final ``passed`` or ``failed``, with
what part of the model the target's machine computes ("shares") where they say so.
"""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

from .serving import describe, serve
from .verdict import wrong_result


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Compile one model, and save it; or interpret it."""
    import tilewright as tw
    from tilewright.targets.registry import named

    folder = Path(task["folder"])
    start = time.perf_counter()
    try:
        data = pickle.loads((folder / "data.pickle").read_bytes())
        shapes = structure(folder / "model.onnx", data["sets"][0][0])
        model = tw.compile(str(folder / "model.onnx"), target=task["target"], threads=1, shapes=shapes)
        seconds = time.perf_counter() - start
        target = named(task["target"])
        if target.compiles:
            model.save(task["artifact"])
        if target.runs_apart:
            return {"state": "built", "detail": "", "seconds": seconds}
        runs = tw.load(task["artifact"]) if target.compiles else model
        wrong = wrong_result(runs, data)
        shares = getattr(runs, "shares", {})
        return {"state": "failed" if wrong else "passed", "detail": wrong or "", "seconds": seconds, "shares": shares}
    except Exception as error:
        return {"state": "error", "detail": describe(error), "seconds": time.perf_counter() - start}


def structure(path: Path, inputs: list[Any]) -> dict[str, Any] | None:
    """Shapes that the types of inputs leave open; those of each tensor of a sequence; None for an absent optional."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    known = {t.name for t in graph.initializer}
    infos = [i for i in graph.input if i.name not in known]
    shapes = {}
    for info, value in zip(infos, inputs, strict=False):
        if value is None or isinstance(value, list):
            shapes[info.name] = None if value is None else [list(x.shape) for x in value]
        elif _is_open(info.type):
            shapes[info.name] = list(value.shape)
    return shapes or None


def _is_open(kind: Any) -> bool:
    if kind.HasField("optional_type"):
        return _is_open(kind.optional_type.elem_type)
    dims = kind.tensor_type.shape.dim
    return not kind.tensor_type.HasField("shape") or any(not d.HasField("dim_value") for d in dims)


if __name__ == "__main__":
    serve(answer)
