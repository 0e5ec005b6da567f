# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted gains beside published ones: what is added up, for which device, and that published numbers stay apart."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import fractal_predicted as predicted
from tilewright import devices
from tilewright.targets import registry

_LSTM = predicted._program("stacked_lstm", (16,), xss=(7, 2), ws=(3, 4), us=(3, 4), bs=(3, 4))
SMALL = predicted.Case("small", _LSTM, {"other": (6.0, 2.0)})


@pytest.fixture(scope="module")
def row() -> predicted.Row:
    return predicted.predict(SMALL, devices.get("nvidia-h200"))


def test_one_launch_beats_many(row: predicted.Row) -> None:
    """One kernel holds the loop: what the host is spared is launches; barriers are what it costs."""
    h200 = devices.get("nvidia-h200")
    assert row.compiled is not None and row.driven is not None
    assert row.launches == 1 < row.steps < row.operator_launches and 0 < row.barriers <= row.steps
    spared = (row.steps - 1) * h200.rate("launch") - row.barriers * h200.rate("grid.barrier")
    assert row.driven - row.compiled == pytest.approx(spared, rel=1e-3)
    assert row.operators >= row.operator_launches * h200.rate("launch")


def test_published_ratios_are_no_predictions(row: predicted.Row) -> None:
    assert row.published == {"other": 3.0}
    other = predicted.predict(replace(SMALL, published={}), devices.get("nvidia-h200"))
    assert other == replace(row, published={})
    assert "3.00x other" in predicted.text_of(row) and "A100" in predicted.text_of(row)


def test_the_device_counts() -> None:
    """Blocks that come from memory come sooner from a faster one; who compiles for the architecture sees no change."""
    case = predicted.Case("b2b", predicted._program("b2b_gemm", (64, 8, 8, 64), a=(1024, 1), b=(1, 1), c=(4, 1)))
    h100, h200 = (predicted.predict(case, devices.get(f"nvidia-{name}")).compiled for name in ("h100", "h200"))
    assert h100 is not None and h200 is not None and h200 < h100
    assert registry.parse_target("cuda:sm_90a").here().device == devices.get("nvidia-h100")


def test_a_line_without_a_prediction(row: predicted.Row) -> None:
    line = predicted.text_of(replace(row, compiled=None, driven=None))
    assert line.split()[1:3] == ["-", "-"]


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(predicted, "CASES", (SMALL, replace(SMALL, name="left out")))
    assert predicted.main(["--case", "small", "--json", str(tmp_path / "rows.json")]) == 0
    record = json.loads((tmp_path / "rows.json").read_text())
    assert record["device"] == "nvidia-h200" and [each["case"] for each in record["rows"]] == ["small"]
    head, line = capsys.readouterr().out.splitlines()
    assert head.startswith("predicted, ms") and head.endswith("published ratios") and line.startswith("small")
