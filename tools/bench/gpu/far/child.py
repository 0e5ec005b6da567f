# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process with a time limit, whose lines of JSON survive a hang and a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Exit code of a process whose context is lost.
LOST = 75


@dataclass(frozen=True)
class Outcome:
    """What became of a process."""

    status: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    stderr_tail: str = ""


def run(argv: Sequence[str], seconds: float, results: Path, *, environment: Mapping[str, str] | None = None) -> Outcome:
    """Run a process; kill its whole group at the limit."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            argv, stdout=errors, stderr=errors, env={**os.environ, **(environment or {})}, start_new_session=True
        )
        try:
            code = process.wait(seconds)
            status = {0: "ok", LOST: "lost"}.get(code, "crash" if code < 0 else "failed")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = "hang"
        errors.seek(0)
        tail = errors.read().decode(errors="replace")[-2000:]
    lines = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    return Outcome(status, lines, time.monotonic() - start, tail)
