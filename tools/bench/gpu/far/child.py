# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process with a time limit, whose lines of JSON outlive its hang, its crash, and the loss of its CUDA context."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Exit code by which a process tells that its CUDA context is lost.
LOST = 75
#: Seconds that a killed process may take to end: one that waits inside the kernel's driver ends when that lets it.
_GRACE = 5.0
_TAIL = 4000


@dataclass(frozen=True)
class Outcome:
    """What became of a process.

    Attributes:
        status: ok; failed (an exit code other than 0); hang (killed at its limit); crash (ended by a signal); lost (its
            CUDA context is).
        lines: what it appended to its results; lines that were there before are not its own.
        seconds: from the start of its work to its end.
        stderr_tail: the last of what it printed, and what else is to say of its end.
        signal: name of the signal that ended it, where one did: ``SIGSEGV``.
    """

    status: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    stderr_tail: str = ""
    signal: str | None = None


class Child:
    """A process in a session of its own. It starts at once; its work may be given to it later, as a line of JSON.

    Args:
        argv: the command.
        results: the file to which the process appends lines of JSON (`append`); it may not exist.
        environment: variables beside those of this process.
    """

    def __init__(self, argv: Sequence[str], results: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self._results = results
        self._offset = results.stat().st_size if results.exists() else 0
        self._printed = tempfile.TemporaryFile()  # a file, not a pipe: nobody waits for one who does not read
        self._process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=self._printed,
            stderr=self._printed,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )

    def work(self, job: Mapping[str, Any] | None, seconds: float) -> Outcome:
        """Hand over the work (None: there is nothing to say), and wait for the end; kill all at the limit.

        Args:
            job: a line for the process's standard input, which is closed then.
            seconds: from here on.
        """
        start = time.monotonic()
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError):  # it has ended already: its exit code tells why
            stdin.write(b"" if job is None else json.dumps(job).encode() + b"\n")
            stdin.flush()
        with suppress(OSError):
            stdin.close()
        try:
            self._process.wait(max(0.0, seconds))
            ended = None
        except subprocess.TimeoutExpired:
            ended = "hang"
        except BaseException:  # Ctrl-C reaches this session alone
            self.kill()
            raise
        took = time.monotonic() - start
        note = self.kill()
        return self._outcome(ended, took, note)

    def kill(self) -> str:
        """End the process and all of its group; returns what is to say where it does not end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return f"\nprocess {self._process.pid} does not end after SIGKILL: it is left behind"
        return ""

    def _outcome(self, ended: str | None, took: float, note: str) -> Outcome:
        code = self._process.returncode
        by = _name(-code) if ended is None and code is not None and code < 0 else None
        status = ended or ("crash" if by else "ok" if code == 0 else "lost" if code == LOST else "failed")
        size = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, size - _TAIL))
        tail = self._printed.read().decode(errors="replace") + note
        self._printed.close()
        return Outcome(status, read(self._results, self._offset), took, tail, by)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def run(argv: Sequence[str], seconds: float, results: Path, *, environment: Mapping[str, str] | None = None) -> Outcome:
    """Run a process in a session of its own; kill it and its whole group after so many seconds.

    Args:
        argv: the command.
        seconds: limit of its time.
        results: the file to which it appends lines of JSON; it may not exist.
        environment: variables beside those of this process.
    """
    return Child(argv, results, environment=environment).work(None, seconds)


def append(file: Path, line: Mapping[str, Any]) -> None:
    """Append a line of JSON that is on the disk when this returns."""
    data = json.dumps(line).encode() + b"\n"
    with open(file, "ab+") as out:
        if out.tell() and not _ends_whole(out):
            data = b"\n" + data  # of a writer that was killed: the rest of its line is lost, not this one
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _ends_whole(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def read(file: Path, offset: int = 0) -> list[dict[str, Any]]:
    """The whole lines of a file from a byte on; none where there is no file. A torn one (of one killed) is left out."""
    lines = []
    for text in file.read_bytes()[offset:].splitlines() if file.exists() else ():
        with suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict):
                lines.append(line)
    return lines


def replace(file: Path, data: Mapping[str, Any]) -> None:
    """Write JSON so that a reader sees the old content or the new, never a part."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w") as out:
            json.dump(data, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
