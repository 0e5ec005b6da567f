# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The last rung: compute-sanitizer's racecheck and synccheck over the rungs whose kernels share memory."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.gpu.far.ladder.device import Opener, Pack
from bench.gpu.far.ladder.report import Report

TOOLS = ("racecheck", "synccheck")
#: Rungs with small kernels, one for each way to share memory.
OVER = ("mma_sync", "wgmma_k128", "tile", "clusters")
_SECONDS = 120
_ERRORS = re.compile(r"(\d+) (?:errors?|hazards?)")


def sanitizer(pack: Pack, open_: Opener, report: Report) -> None:
    """Run rungs again under compute-sanitizer, which runs them many times slower."""
    program = shutil.which("compute-sanitizer")
    if program is None or not open_(0).limits.cubins:
        with report.check("compute-sanitizer") as check:
            reason = "is not on the PATH (it comes with the CUDA toolkit)" if program is None else "needs a GPU"
            check.skip(f"compute-sanitizer {reason}; the emulator checks races and barriers in every run")
        return
    built = {one["rung"] for one in pack.programs()}
    for tool in TOOLS:
        for rung in [rung for rung in OVER if rung in built]:
            with report.check(f"{tool} of {rung}") as check:
                text = said(program, tool, pack.root, rung)
                check.tell("nothing found")
                if text:
                    check.wrong(text)


def said(program: str, tool: str, root: Path, rung: str, more: Sequence[str] = ()) -> str:
    """What a tool finds in a rung, its first lines; "" where it finds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        step = [sys.executable, "-m", "bench.gpu.far.ladder.step", str(root), rung, f"{folder}/results", *more]
        command = [program, "--tool", tool, "--error-exitcode", "99", *step]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, cwd=root)
        except subprocess.TimeoutExpired:
            return f"{tool} did not end within {_SECONDS} s"
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("=====")]
    count = _ERRORS.search("\n".join(lines[-3:]))
    return f"{tool}: {count[0] if count else f'exit code {done.returncode}'}: " + " | ".join(lines[1:6])
