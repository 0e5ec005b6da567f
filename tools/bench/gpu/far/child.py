# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process with a time limit, whose lines of JSON survive a hang, a crash and a lost context."""

from __future__ import annotations

import contextlib
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

#: Exit code of a process whose CUDA context is lost.
LOST = 75
#: Seconds until a killed process must be gone; one that a driver holds in the kernel is left behind.
_DYING = 5.0
_TAIL = 2000


@dataclass(frozen=True)
class Outcome:
    """What became of a process.

    Attributes:
        status: ok, failed (an ordinary exception), hang, crash (a signal), lost (the CUDA context).
        lines: what it wrote, without what it cut short.
        seconds: from `Child.begin` (or its start) to its end.
        stderr_tail: the end of what it printed; the signal of a crash, and a process that could not be killed, first.
    """

    status: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    stderr_tail: str = ""


class Child:
    """A process in a group of its own. It can be started ahead (imports take seconds) and begun later.

    Args:
        argv: command line.
        results: file to which the process appends lines; those that are there before are not its own.
        environment: variables beside those of this process.
    """

    def __init__(self, argv: Sequence[str], results: Path, environment: Mapping[str, str] | None = None) -> None:
        self._results = results
        self._printed = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=self._printed,
            stderr=self._printed,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        self._start, self._offset = time.monotonic(), _size(results)

    def begin(self, text: str = "") -> None:
        """Hand the process its standard input; its time counts from here."""
        self._start, self._offset = time.monotonic(), _size(self._results)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is dead already, which `wait` tells
            self._process.stdin.write(text.encode())
            self._process.stdin.close()

    def wait(self, seconds: float) -> Outcome:
        """Wait for the end, at most so long; whatever is left of the group is killed then."""
        remark = ""
        try:
            code = self._process.wait(max(0.0, self._start + seconds - time.monotonic()))
            status = {0: "ok", LOST: "lost"}.get(code, "crash" if code < 0 else "failed")
            remark = f"{_signal(code)}\n" if code < 0 else ""
        except subprocess.TimeoutExpired:
            status = "hang"
        took = time.monotonic() - self._start
        if not self.kill():
            remark = f"process {self._process.pid} cannot be killed: the driver holds it\n"
        self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, self._printed.tell() - _TAIL))
        tail = remark + self._printed.read().decode(errors="replace")
        self._printed.close()
        return Outcome(status, read_lines(self._results, self._offset), took, tail)

    def kill(self) -> bool:
        """Kill the whole group; whether the process is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        try:
            self._process.wait(_DYING)
        except subprocess.TimeoutExpired:
            return False
        return True


def run(argv: Sequence[str], seconds: float, results: Path, *, environment: Mapping[str, str] | None = None) -> Outcome:
    """Run a process to its end, or for so many seconds."""
    child = Child(argv, results, environment)
    child.begin()
    return child.wait(seconds)


def append(results: Path, line: Mapping[str, Any]) -> None:
    """Append a line of JSON, on the disk when this returns. A line that was cut short before it is closed."""
    data = json.dumps(line).encode() + b"\n"
    with open(results, "a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                data = b"\n" + data
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_lines(results: Path, offset: int = 0) -> list[dict[str, Any]]:
    """The whole lines of a file from a byte on; one that was cut short by the death of its writer is passed over."""
    found = []
    for line in results.read_bytes()[offset:].splitlines() if results.exists() else []:
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            found += [value] if isinstance(value, dict) else []
    return found


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _signal(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
