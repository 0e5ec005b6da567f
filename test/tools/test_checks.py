# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check adds up what its checks counted, and fails where one failed; tools/size-check and tools/docs."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("run_checks", ROOT / "tools/run_checks.py")
assert _spec is not None and _spec.loader is not None
run_checks = importlib.util.module_from_spec(_spec)
sys.modules["run_checks"] = run_checks
_spec.loader.exec_module(run_checks)
Count = run_checks.Count


@pytest.mark.parametrize(("failed", "code"), [(0, 0), (1, 1)])
def test_the_last_line_counts_everything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failed: int, code: int
) -> None:
    counts = [Count(passed=2, skipped=1), Count(passed=3, failed=failed)]
    monkeypatch.setattr(run_checks, "checks", lambda fast: [(f"c{i}", lambda c=c: c) for i, c in enumerate(counts)])
    monkeypatch.setattr(sys, "argv", ["run_checks.py"])
    assert run_checks.main() == code
    assert capsys.readouterr().out.splitlines()[-1] == f"5 passed, {failed} failed, 1 skipped"


def test_a_check_that_cannot_report_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_checks, "run", lambda *command: 1)
    assert run_checks.single("anything") == Count(failed=1)
    assert run_checks.lit() == Count(failed=1)
    assert run_checks.pytest() == Count(failed=1)


def test_fast_leaves_out_slow_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(run_checks, "run", lambda *command: commands.append(command) or 1)
    for level in ("fast", "normal", "full"):
        dict(run_checks.checks(level))["pytest"]()
        dict(run_checks.checks(level))["ONNX tests, cpu"]()
    assert "not slow" in commands[0] and "not slow" not in commands[2] and "not slow" not in commands[4]
    assert "--sample" in commands[1] and "--sample" in commands[3] and "--sample" not in commands[5]


def test_long_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/size-check", tmp_path / "tools/size-check")
    (tmp_path / "long.py").write_text("x = 1\n" * 501)
    (tmp_path / "short.py").write_text("x = 1\n" * 500)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = subprocess.run([sys.executable, tmp_path / "tools/size-check"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "long.py: 501 lines (limit 500)"
    assert "short.py" not in done.stdout
