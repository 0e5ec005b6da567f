# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bounded slice of each fuzzing campaign, and the engine's own behaviour."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNTS = {"onnx": 1500, "ir": 600, "programs": 80, "open": 25, "gpu": 12, "mesh": 25, "sparse": 60}
COUNTS |= {"mesh-sparse": 15, "asan": 40}
sys.path.append(str(ROOT / "tools"))

from fuzzing import sanitizer  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("campaign", COUNTS)
def test_a_slice_finds_nothing(campaign: str) -> None:
    if campaign == "asan" and sanitizer.missing():
        pytest.skip(str(sanitizer.missing()))
    command = [ROOT / "tools/fuzz", campaign, "--count", str(COUNTS[campaign]), "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"seeds 0 to {COUNTS[campaign] - 1}" in done.stdout and ": 0 findings" in done.stdout


SCRIPT = """
import os, sys, random
from fuzzing import engine, worker
from fuzzing.campaign import Campaign

class Trap(Campaign):
    name, suffix, seconds = "trap", ".txt", 3
    def prepare(self): pass
    def case(self, choose): return b"%d" % choose.randrange(10**6)
    def execute(self, case):
        seed = next(s for s in range(20) if self.make(s) == case)
        if seed == 3: os.abort()
        if seed == 5: return "seed 5 is 'wrong'"
        if seed == 7:
            while True: pass
        if seed == 9: return "upstream: not ours"
        return None

worker.CAMPAIGNS["trap"] = ("", "")
worker.campaign = lambda name: Trap()
"""


def test_the_engine_survives_crashes_and_endless_cases(tmp_path: Path) -> None:
    (tmp_path / "trap.py").write_text(SCRIPT + "\nif __name__ == '__main__': worker.main()\n")
    run = "import fuzzing.engine as e, trap, sys\ne._COMMAND = [sys.executable, '-m', 'trap']\n"
    run += "found = e.run(trap.Trap(), 0, 12, 1)\nprint([(f.seed, f.upstream, f.what.split(':')[0]) for f in found])"
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT / 'tools'}:{ROOT / 'test/conformance'}", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, env=environment)
    expected = [
        (3, False, "the process died with status -6"),
        (5, False, "seed 5 is 'wrong'"),
        (7, False, "no end after 3 s"),
        (9, True, "not ours"),
    ]
    assert done.stdout.strip() == str(expected), done.stderr
