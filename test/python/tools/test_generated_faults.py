# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults in generated kernels: a slice of `tools/faults --generated`, all that harm are caught."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm@sm_90a", "split_sums@sm_80", "sparse_halves@sm_80"])
def test_faults_in_generated_kernels_are_caught(name: str, tmp_path: Path) -> None:
    file, table = tmp_path / "verdicts.json", tmp_path / "table.md"
    command = [ROOT / "tools" / "faults", "--generated", name, "--count", "16", "--jobs", "1", "--json", file]
    done = subprocess.run([*command, "--table", table], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = json.loads(file.read_text())
    harmful = [v for v in verdicts if v["harmful"]]
    assert len(verdicts) == 16 and len(harmful) >= 5
    missed = [v for v in harmful if not v["caught"]]
    assert not missed, "changes of a result that neither a rule nor the result gives away"
    assert f"| {name} | 16 |" in table.read_text()
