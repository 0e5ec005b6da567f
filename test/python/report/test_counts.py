# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section about launches and bytes, as HTML, text and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.cli import main
from tilewright.report.counts import as_text, counts_section


def counts(launches: int, read: int, **more: Any) -> dict[str, Any]:
    return {"launches": launches, "steps": 0, "read": read, "written": 40, "open": False, "largest": [], **more}


REPORT = {
    "phases": [
        {"name": "import", "counts": counts(21, 4000, largest=[["linalg.matmul", 7, 3000, 30]])},
        {
            "name": "plan",
            "counts": counts(9, 2000),
            "changes": [["tile-form-groups{level=l2}", counts(9, 2000)]],
        },
        {"name": "tile", "counts": counts(9, 2000)},
        {"name": "schedule", "counts": counts(1, 2000, steps=9)},
        {"name": "lower", "counts": counts(1, 2000, steps=9, meetings=8, open=True)},
        {"name": "emit"},
    ]
}


def test_text_shows_what_changes() -> None:
    """A phase that changes nothing has no row; the last one has."""
    lines = [line.split() for line in as_text(REPORT).splitlines()]
    assert lines == [
        ["after", "launches", "steps", "barriers", "read", "written"],
        ["import", "21", "–", "–", "4", "kB", "40", "B"],
        ["tile-form-groups", "9", "–", "–", "2", "kB", "40", "B"],
        ["plan", "9", "–", "–", "2", "kB", "40", "B"],
        ["schedule", "1", "9", "–", "2", "kB", "40", "B"],
        ["lower", "≥", "1", "≥", "9", "≥", "8", "≥", "2", "kB", "≥", "40", "B"],
    ]


def test_html() -> None:
    section = counts_section(REPORT)
    assert section is not None
    assert "Launches and bytes" in section.text and "linalg.matmul" in section.text
    assert "--each-pass" not in section.text  # it has a row for a pass
    assert "only a run knows" in section.text


def test_nothing_counted() -> None:
    assert as_text({"phases": [{"name": "import"}]}) == "" and counts_section({}) is None


TEXT = """func.func @main(%x: tensor<3x5xf32>, %b: tensor<5xf32>) -> (tensor<3x5xf32> {tile.name = "y"}) {
  %e = tensor.empty() : tensor<3x5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%l: f32, %o: f32):
    %z = math.tanh %l : f32
    linalg.yield %z : f32
  } -> tensor<3x5xf32>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%b, %y : tensor<5xf32>, tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %z = arith.mulf %l, %r : f32
    linalg.yield %z : f32
  } -> tensor<3x5xf32>
  return %w : tensor<3x5xf32>
}
"""


@pytest.mark.parametrize("flags", [(), ("--each-pass",)], ids=["phases", "passes"])
def test_command(flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the table, and writes the page and the numbers."""
    model, page, numbers = (tmp_path / name for name in ("m.mlir", "m.html", "m.json"))
    model.write_text(TEXT)
    assert main(["explain", str(model), "-o", str(page), "--json", str(numbers), *flags]) == 0
    told = capsys.readouterr().out
    assert told.splitlines()[1].split() == ["import", "2", "–", "–", "140", "B", "120", "B"]
    assert ("tile-form-groups" in told) == bool(flags)
    phases = json.loads(numbers.read_text())["phases"]
    assert [p["counts"]["launches"] for p in phases if "counts" in p] == [2, 2, 1, 1, 1, 1]
    assert "Launches and bytes" in page.read_text()


def test_a_page_is_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, picture = tmp_path / "m.mlir", tmp_path / "m.png"
    model.write_text(TEXT)
    assert main(["explain", str(model), "-o", str(picture)]) == 2
    assert "m.png: the report is an HTML page; end its name in .html" in capsys.readouterr().err
    assert not picture.exists()


def test_each_pass_needs_the_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import tilewright as tw

    compiled = tw.compile(TEXT)
    assert np.allclose(compiled(np.zeros((3, 5), np.float32), np.ones(5, np.float32))["y"], 0)
    file = compiled.save(tmp_path / "m.tw")
    assert main(["explain", str(file), "--each-pass"]) != 0
    assert "is compiled already; name the model" in capsys.readouterr().err
