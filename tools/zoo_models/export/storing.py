# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an exporter leaves in a folder: model.onnx, calls with the results expected, and facts about both.

`inputs_K.npz` and `expected_K.npz` hold the arrays by name for K = 0, 1, ...: one call for each set of sizes. What is
expected is what ONNX Runtime computes from the file without its optimizer, or the framework's own result where that
runtime refuses the file. A call whose two results differ is left out: there the exporter is wrong (`exporter_wrong`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zoo_models.comparing import Arrays, difference, first_line


@dataclass(frozen=True)
class Made:
    """A model that an exporter has written to `model.onnx` of the folder."""

    calls: Sequence[tuple[Arrays, Arrays | None]]  # inputs and the framework's results, if it has any
    tolerance: float = 1e-4
    exporter: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)


def store(folder: Path, made: Made) -> dict[str, Any]:
    """Write calls and facts beside the model; the facts.

    Raises:
        ValueError: no call is right, or nothing computes what is expected.
    """
    session, refusal = open_session(folder / "model.onnx")
    kept: list[tuple[Arrays, Arrays]] = []
    wrong: list[str] = []
    worst = 0.0
    for inputs, eager in made.calls:
        given, expected, failure = inputs, eager, ""
        if session is not None:
            given = {i.name: inputs[i.name] for i in session.get_inputs()}
            expected, failure = run(session, given)
        if failure or expected is None:
            wrong.append(f"{sizes(inputs)}: {failure or 'nothing to compare with'}")
            continue
        error = difference(expected, eager) if eager is not None else 0.0
        if error > max(100 * made.tolerance, 1e-3):
            wrong.append(f"{sizes(inputs)}: ONNX Runtime is {error:.2g} from the framework")
            continue
        worst = max(worst, error)
        kept.append((given, expected))
    if not kept:
        raise ValueError(f"the exported file is right for none of the calls: {'; '.join(wrong)}")
    for k, (given, expected) in enumerate(kept):
        np.savez(folder / f"inputs_{k}.npz", **given)
        np.savez(folder / f"expected_{k}.npz", **expected)
    facts = {
        "exporter": made.exporter,
        "calls": len(kept),
        "tolerance": made.tolerance,
        "reference": "framework" if session is None else "onnxruntime",
        "refused_by_onnxruntime": refusal,
        "framework_error": worst,
        "exporter_wrong": wrong,
        "bytes": (folder / "model.onnx").stat().st_size,
        **made.notes,
    }
    (folder / "meta.json").write_text(json.dumps(facts, indent=1) + "\n")
    return facts


def open_session(path: Path) -> tuple[Any, str]:
    """ONNX Runtime's session without its optimizer, or why there is none."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(str(path), options), ""
    except Exception as error:
        return None, first_line(error)


def run(session: Any, given: Arrays) -> tuple[Arrays | None, str]:
    """The results by name, or why there are none. What is no tensor (a list of dicts) stands as its columns."""
    names = [output.name for output in session.get_outputs()]
    try:
        results = session.run(names, given)
    except Exception as error:
        return None, first_line(error)
    found: Arrays = {}
    for name, result in zip(names, results, strict=True):
        if isinstance(result, list) and result and isinstance(result[0], dict):
            keys = list(result[0])
            found[f"{name}.keys"] = np.array(keys)
            found[f"{name}.values"] = np.array([[row[key] for key in keys] for row in result], np.float32)
        else:
            found[name] = np.asarray(result)
    return found, ""


def sizes(inputs: Arrays) -> str:
    """The shapes of inputs, for a message."""
    return ", ".join(f"{name} {list(value.shape)}" for name, value in list(inputs.items())[:3])
