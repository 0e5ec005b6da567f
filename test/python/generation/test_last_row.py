# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders that return the logits of the last token alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from models.decoder import decoder
from tilewright.generation.last_row import with_last_row

SIZES = {"layers": 1, "hidden": 24, "intermediate": 32, "positions": 64}


@pytest.mark.parametrize("form", ["proto", "bytes", "path"])
def test_only_the_last_row_is_returned(form: str, tmp_path: Path) -> None:
    model = decoder("export", dynamic=True, **SIZES)
    before = model.SerializeToString()
    (tmp_path / "model.onnx").write_bytes(before)
    given = {"proto": model, "bytes": before, "path": str(tmp_path / "model.onnx")}[form]
    changed = with_last_row(given, "logits")
    assert model.SerializeToString() == before  # it is a copy
    onnx.checker.check_model(changed)
    compiled, whole = tw.compile(changed, "reference"), tw.compile(model, "reference")
    feeds = {"tokens": np.array([[3, 1, 4]]), "positions": np.arange(3)[None]}
    feeds |= {s.name: np.zeros((1, 2, 0, 6), np.float32) for s in whole.inputs if s.name.startswith("past")}
    row = compiled(**feeds)["logits"]
    assert row.shape == (1, 1, 71)
    np.testing.assert_allclose(row, whole(**feeds)["logits"][:, -1:], atol=1e-6)


def test_what_stays_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = decoder("export", dynamic=True, **SIZES)
    assert with_last_row(model, "other") is model
    assert with_last_row("module {\n}", "logits") == "module {\n}"
    assert with_last_row(b"no model", "logits") == b"no model"
    onnx.save(model, str(tmp_path / "apart.onnx"), save_as_external_data=True, location="weights", size_threshold=0)
    path = tmp_path / "apart.onnx"
    with caplog.at_level("INFO", "tilewright"):
        assert with_last_row(path, "logits") is path
    assert "logits of all tokens are computed, as the weights are in other files" in caplog.text
    model.graph.output[0].type.tensor_type.shape.dim.pop()
    assert with_last_row(model, "logits") is model
