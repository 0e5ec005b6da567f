# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of modules under torch.compile, with an environment that is a script: what is run, kept and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zoo_models.torch_modules import table

ROW = {"sizes": [[2, 8]], "builds": [1, 1, 1], "error": 1e-7, "graphs": 1}


def environment(folder: Path) -> Path:
    """Names two modules; one is right, and the process of the other ends without a result."""
    python = folder / "python"
    row = json.dumps({"module": "good", **ROW, "pytorch": [], "status": "ok"})
    python.write_text(f"""#!/bin/sh
echo run >> {folder}/runs
case "$*" in
  *CASES*) echo good bad;;
  *good) echo said; echo '{row}';;
  *) echo 'ValueError: of no use' >&2; exit 3;;
esac
""")
    python.chmod(0o755)
    return python


def test_rows_are_kept_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    python, file = environment(tmp_path), tmp_path / "torch-modules-2026-01-01.json"
    assert table.run(python, [], file, 60, again=False) == 1
    assert [row["status"] for row in json.loads(file.read_text())["rows"]] == ["ok", "failed: ValueError: of no use"]
    assert table.run(python, ["good"], file, 60, again=False) == 1
    assert len((tmp_path / "runs").read_text().split()) == 4  # the names twice, each module once
    text = table.page(tmp_path)
    assert "`torch-modules-2026-01-01.json`: 1 of 2 are right" in text
    assert "| good | 1 | 2x8 | 1, 1, 1 | 1.0e-07 | ok |" in text
    assert "| bad | | | | | failed: ValueError: of no use |" in text


def test_no_environment_and_no_results(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="tools/zoo setup makes it"):
        table.run(tmp_path / "none", [], tmp_path / "file", 1, again=False)
    assert "Nothing is measured yet" in table.page(tmp_path)
