# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/check adds up what its checks counted, and fails where one failed; tools/size-check and tools/docs."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sampling

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
    monkeypatch.setattr(run_checks, "checks", lambda plan: [(f"c{i}", lambda c=c: c) for i, c in enumerate(counts)])
    monkeypatch.setattr(run_checks, "_TIMES", [(float(i), f"test_{i}") for i in range(12)])
    monkeypatch.setattr(sys, "argv", ["run_checks.py", "--seed=4"])
    assert run_checks.main() == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"5 passed, {failed} failed, 1 skipped"
    assert "seed 4" in lines[0] and lines[-2] == "seed 4"
    start = lines.index("slowest tests:")
    assert [line.split()[-1] for line in lines[start + 1 : -2]] == [f"test_{i}" for i in range(11, 1, -1)]


def test_a_check_that_cannot_report_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_checks, "run", lambda *command, **_: 1)
    assert run_checks.single("anything") == Count(failed=1)
    assert run_checks.lit() == Count(failed=1)
    assert run_checks.pytest() == Count(failed=1)


def test_no_check_outlives_the_time_for_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_checks, "_DEADLINE", run_checks.Deadline(0.0))
    assert run_checks.single(sys.executable, "-c", "import threading; threading.Event().wait()") == Count(failed=1)
    assert "the time for all checks is over" in capsys.readouterr().out
    monkeypatch.setattr(run_checks, "_DEADLINE", run_checks.Deadline())
    assert run_checks.single(sys.executable, "-c", "") == Count(passed=1)


HANGS = """
import threading

def test_waits(): threading.Event().wait()
def test_passes(): pass
"""


def test_a_test_that_hangs_fails_and_the_others_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_some.py").write_text(HANGS)
    monkeypatch.setattr(run_checks, "ROOT", tmp_path)
    monkeypatch.setattr(run_checks, "BIN", Path(sys.executable).parent)
    assert run_checks.pytest(seconds=2) == Count(passed=1, failed=1)


DIES = """
import os, pathlib

def test_once():
    seen = pathlib.Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        os.abort()

def test_always(): os.abort()
def test_passes(): pass
"""


def test_what_died_once_passes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_some.py").write_text(DIES)
    monkeypatch.setattr(run_checks, "ROOT", tmp_path)
    monkeypatch.setattr(run_checks, "BIN", Path(sys.executable).parent)
    assert run_checks.pytest(seconds=60) == Count(passed=2, failed=1)
    out = capsys.readouterr().out
    assert "Fatal Python error: Aborted" in out and "in test_once" in out
    assert "by itself it passed: test/test_some.py::test_once\n" in out


def _commands(monkeypatch: pytest.MonkeyPatch, level: str, seed: int) -> dict[str, tuple[str, ...]]:
    """What the checks of a level would run, by the name of the check."""
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(run_checks, "run", lambda *command, **_: commands.append(tuple(map(str, command))) or 1)
    found = {}
    for name, check in run_checks.checks(run_checks.Plan(level, seed)):
        if name == "pytest" or name.startswith("ONNX"):
            check()
            found[name] = commands[-1]
    return found


def test_levels_run_more_or_less(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = {level: _commands(monkeypatch, level, 7) for level in ("fast", "normal", "full")}
    slow = {"fast": "--slow=none", "normal": "--slow=sample", "full": "--slow=all"}
    assert all(slow[level] in command["pytest"] for level, command in commands.items())
    assert "--sample" in commands["fast"]["ONNX tests, cpu"] and "--sample" in commands["normal"]["ONNX tests, cpu"]
    assert "--sample" not in commands["full"]["ONNX tests, cpu"]


def test_ten_seeds_in_a_row_run_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ONNX's tests every tenth from another one on, of those marked slow another tenth each day."""
    firsts: dict[str, set[str]] = {}
    for seed in range(739000, 739010):
        for name, command in _commands(monkeypatch, "normal", seed).items():
            if name == "ONNX tests, mesh":  # longer: every ninetieth
                assert command[command.index("--first") + 1] == str(seed % 90)
            elif name.startswith("ONNX"):
                assert command[command.index("--sample") + 1] == "10"
                firsts.setdefault(name, set()).add(command[command.index("--first") + 1])
    assert len(firsts) == 4 and all(found == {str(i) for i in range(10)} for found in firsts.values())
    names = [(f"test_{i}", f"test_{i}", i % 3 == 0) for i in range(300)]
    days = [set(sampling.split(names, seed)[0]) for seed in range(739000, 739010)]
    assert set.union(*days) == {name for name, _, _ in names}
    assert set.intersection(*days) == {name for name, _, slow in names if not slow}


FILE = """
import pytest

@pytest.mark.slow
@pytest.mark.parametrize("i", range(40))
def test_slow(i): pass

def test_quick(): pass
"""


@pytest.mark.parametrize("processes", [0, 2])
def test_what_is_left_out_is_told(tmp_path: Path, processes: int) -> None:
    shutil.copy(ROOT / "test/conftest.py", tmp_path)
    shutil.copy(ROOT / "test/sampling.py", tmp_path)
    (tmp_path / "test_some.py").write_text(FILE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\npythonpath = .\n")
    ran = 0
    for seed in range(10):
        command = [sys.executable, "-m", "pytest", "-q", "--slow=sample", f"--seed={seed}", "-n", str(processes)]
        done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout
        passed = int(re.findall(r"(\d+) passed", done.stdout)[0]) - 1
        ran += passed
        assert f"{40 - passed} slow tests left out: part {seed} of 10 ran (seed {seed}); --slow=all" in done.stdout
        if processes:
            return
    assert ran == 40


def test_no_test_reads_a_clock() -> None:
    """One that asserts a time fails on a busy machine: count instead, e.g. with counting.py."""
    clock = re.compile(r"\b(perf_counter|monotonic|process_time|thread_time)(_ns)?\(|\btimeit\b")
    files = [path for path in (ROOT / "test").rglob("test_*.py") if path != Path(__file__)]
    assert [str(path) for path in files if clock.search(path.read_text())] == []


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
