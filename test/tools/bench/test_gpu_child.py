# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes with a time limit: what they wrote before their end is there, however they ended."""

import os
import signal
import sys
import time

import pytest

from bench.gpu.far import child

WRITE = "import json, os, signal, sys, time; f = open(sys.argv[1], 'a'); f.write(json.dumps({'at': 1}) + '\\n'); "
WRITE += "f.flush(); print('said', file=sys.stderr, flush=True); "


def _run(tmp_path, code, seconds=20.0):
    results = tmp_path / "results.jsonl"
    child.append(results, {"at": "before"})  # of another process
    return child.run([sys.executable, "-c", WRITE + code, str(results)], seconds, results)


@pytest.mark.parametrize(
    ("code", "status", "by"),
    [
        ("pass", "ok", None),
        ("raise ValueError", "failed", None),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crash", "SIGSEGV"),
        ("os.abort()", "crash", "SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 3)", "crash", f"signal {signal.SIGRTMIN + 3}"),
        (f"sys.exit({child.LOST})", "lost", None),
        ("f.write('{\"at\": 2'); f.flush(); os._exit(3)", "failed", None),
    ],
)
def test_ends(tmp_path, code, status, by):
    outcome = _run(tmp_path, code)
    assert (outcome.status, outcome.signal, outcome.lines) == (status, by, [{"at": 1}])
    assert "said" in outcome.stderr_tail


def test_a_process_that_hangs_is_killed_with_those_it_started(tmp_path):
    """The limit holds though signals are ignored and a grandchild holds the output open."""
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN); pid = os.fork(); "
    code += "f.write(json.dumps({'pid': os.getpid(), 'fork': pid}) + '\\n'); f.flush(); time.sleep(60); "
    code += 'f.write(\'{"at": "end"}\\n\'); f.flush()'
    outcome = _run(tmp_path, code, 3.0)
    assert outcome.status == "hang" and outcome.seconds >= 3
    assert outcome.lines[0] == {"at": 1} and {"at": "end"} not in outcome.lines, "killed before it woke up"
    for pid in {line["pid"] for line in outcome.lines[1:]}:
        assert not _lives(pid)


def _lives(pid):
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return False  # dead: whoever inherited it has not looked yet
        except FileNotFoundError:
            return False
        time.sleep(0.05)
    return True


def test_a_process_that_cannot_be_killed_blocks_nobody(tmp_path, monkeypatch):
    """As one that waits inside the kernel's driver: SIGKILL is without effect."""
    monkeypatch.setattr(child, "_GRACE", 0.2)
    started = child.Child([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "none")
    kill = os.killpg
    monkeypatch.setattr(child.os, "killpg", lambda *_: None)
    outcome = started.work(None, 0.3)
    kill(started._process.pid, 9)
    started._process.wait()
    assert outcome.status == "hang" and "does not end after SIGKILL" in outcome.stderr_tail


def test_work_can_be_handed_over_later(tmp_path):
    code = "import sys; print('got', sys.stdin.readline())"
    started = child.Child([sys.executable, "-c", code], tmp_path / "none")
    time.sleep(0.2)
    outcome = started.work({"case": "x"}, 20.0)
    assert outcome.status == "ok" and 'got {"case": "x"}' in outcome.stderr_tail
    dead = child.Child([sys.executable, "-c", "raise SystemExit(4)"], tmp_path / "none")
    dead._process.wait()
    assert dead.work({"case": "x"}, 20.0).status == "failed"


def test_lines_survive_torn_ones(tmp_path):
    file = tmp_path / "lines.jsonl"
    assert child.read(file) == []
    child.append(file, {"n": 1})
    with open(file, "a") as torn:
        torn.write('{"n": 2, "x')
    assert child.read(file) == [{"n": 1}]
    child.append(file, {"n": 3})
    assert child.read(file) == [{"n": 1}, {"n": 3}]


def test_a_summary_is_whole_or_the_one_before(tmp_path):
    file = tmp_path / "summary.json"
    child.replace(file, {"n": 1})
    with pytest.raises(TypeError):
        child.replace(file, {"n": {1, 2}})
    assert file.read_text() == '{\n "n": 1\n}' and [p.name for p in tmp_path.iterdir()] == ["summary.json"]
