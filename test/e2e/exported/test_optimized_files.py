# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of opset 11, as exported and as ONNX Runtime's optimizer writes them, beside ONNX Runtime without it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from old_exports import EXAMPLES

import tilewright as tw
from tilewright import reference
from tilewright.core.dtypes import presented, stored
from tilewright.frontend import import_onnx

_LEVELS = onnxruntime.GraphOptimizationLevel
LEVELS = {"basic": _LEVELS.ORT_ENABLE_BASIC, "extended": _LEVELS.ORT_ENABLE_EXTENDED, "all": _LEVELS.ORT_ENABLE_ALL}
#: an operator that each file must have, else it shows nothing
FUSED = {
    ("encoder", "extended"): "BiasGelu",
    ("decoder", "extended"): "LayerNormalization",
    ("residual", "extended"): "FusedConv",
    ("products", "extended"): "QuickGelu",
}


def session(path: Path, level, written: Path | None = None) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    if written is not None:
        options.optimized_model_filepath = str(written)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def files(name: str, level: str, folder: Path) -> tuple[Path, Path]:
    """The model as exported, and the file to compile."""
    path = folder / "raw.onnx"
    onnx.save(EXAMPLES[name].model(), path)
    if level == "raw":
        return path, path
    written = folder / "written.onnx"
    session(path, LEVELS[level], written)
    operators = {node.op_type for node in onnx.load(written).graph.node}
    assert FUSED.get((name, level), "") in {*operators, ""}
    return path, written


def interpreted(imported, arrays) -> list[np.ndarray]:
    given = [stored(arrays[spec.name]) for spec in imported.inputs]
    results = reference.run(imported.module, "main", given, imported.weights)
    return [presented(r, s.dtype) for r, s in zip(results, imported.outputs, strict=True)]


def agree(results, expected) -> None:
    for mine, theirs in zip(results, expected, strict=True):
        assert (np.asarray(mine).shape, np.asarray(mine).dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", ["raw", *LEVELS])
@pytest.mark.parametrize("name", EXAMPLES)
def test_imported_once(name, level, tmp_path):
    """One import for all sizes, interpreted."""
    path, written = files(name, level, tmp_path)
    imported = import_onnx(written, symbolic=True)
    plain = session(path, _LEVELS.ORT_DISABLE_ALL)
    random = np.random.default_rng(3)
    for n in (1, 2, 3):
        arrays = EXAMPLES[name].inputs(random, n)
        agree(interpreted(imported, arrays), plain.run(None, arrays))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["raw", *LEVELS])
@pytest.mark.parametrize("name", EXAMPLES)
def test_compiled_once(name, level, tmp_path):
    """One artifact for all sizes."""
    path, written = files(name, level, tmp_path)
    compiled = tw.compile(written, sizes="general")
    plain = session(path, _LEVELS.ORT_DISABLE_ALL)
    random = np.random.default_rng(3)
    for n in (1, 2, 3):
        arrays = EXAMPLES[name].inputs(random, n)
        agree(list(compiled(**arrays)), plain.run(None, arrays))
