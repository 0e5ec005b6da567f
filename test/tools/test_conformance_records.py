# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The file that `tools/conformance --record` writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "conformance"))

from onnx_suite import records


def result(name: str, state: str, *shares: int) -> dict:
    return {"key": f"node/{name}", "state": state, "shares": dict(zip(("programs", "outside"), shares, strict=False))}


def test_what_was_not_run_again_stays(tmp_path: Path) -> None:
    """Rows of each run replace those of the same tests, in the order of names."""
    file = tmp_path / "rows.json"
    records.write(file, [result("c", "passed", 2, 0), result("a", "passed", 0, 3), result("d", "error")])
    records.write(file, [result("c", "passed", 2, 1), result("b", "passed", 4, 0), result("e", "passed", 0, 0)])
    rows = {row["test"]: row for row in json.loads(file.read_text())}
    assert list(rows) == ["a", "b", "c", "d", "e"]
    assert rows["c"] == {"test": "c", "state": "passed", "programs": 2, "outside": 1}
    assert rows["d"] == {"test": "d", "state": "error"}
    assert records.summary(file) == (
        "of 4 recorded that pass, 1 are computed as programs alone, 1 in part, 1 outside; of 1 nothing is computed"
    )
