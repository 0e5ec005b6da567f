# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes with a time limit: what they wrote outlives a hang, a crash and a lost context."""

import os
import sys
import time

import pytest

from bench.gpu.far import child

WRITE = "import sys; from pathlib import Path; Path(sys.argv[1]).open('a').write('{\"a\": 1}\\n{\"b\": '); "


def _run(tmp_path, code, seconds=60.0):
    results = tmp_path / "lines"
    child.append(results, {"before": 0})
    return child.run([sys.executable, "-c", WRITE + code, str(results)], seconds, results)


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("print('fine')", "ok", "fine"),
        ("raise ValueError('no luck')", "failed", "ValueError: no luck"),
        ("import os; os.kill(os.getpid(), 11)", "crash", "SIGSEGV"),
        (f"sys.exit({child.LOST})", "lost", ""),
    ],
)
def test_ends(tmp_path, code, status, told):
    outcome = _run(tmp_path, code)
    assert (outcome.status, outcome.lines) == (status, [{"a": 1}])
    assert told in outcome.stderr_tail


def test_a_hang_is_killed_with_all_that_it_started(tmp_path):
    code = "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); p.wait()"
    outcome = _run(tmp_path, code, seconds=3)
    assert outcome.status == "hang" and outcome.lines == [{"a": 1}] and outcome.seconds >= 3
    grandchild = int(outcome.stderr_tail)
    for _ in range(100):
        if not _lives(grandchild):
            break
        time.sleep(0.1)
    assert not _lives(grandchild)


def _lives(number):
    try:
        return open(f"/proc/{number}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_what_cannot_be_killed_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "_DYING", 0.1)
    it = child.Child([sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "lines")
    with monkeypatch.context() as m:
        m.setattr(child.os, "killpg", lambda *_: None)
        outcome = it.wait(0.1)
    assert outcome.status == "hang" and "cannot be killed" in outcome.stderr_tail
    assert it.kill()


def test_lines_after_one_that_was_cut_short_are_whole(tmp_path):
    results = tmp_path / "lines"
    results.write_text('{"a": 1}\n{"b": ')
    child.append(results, {"c": 3})
    assert child.read_lines(results) == [{"a": 1}, {"c": 3}]


def test_a_process_started_ahead_waits_for_its_input(tmp_path):
    code = "import sys; print(sys.stdin.read().upper())"
    it = child.Child([sys.executable, "-c", code], tmp_path / "lines", {**os.environ})
    it.begin("begun")
    assert "BEGUN" in it.wait(60).stderr_tail
