# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parent's end of a worker process."""

from __future__ import annotations

import json
import subprocess
import tempfile
from types import TracebackType
from typing import Any

from bench.environment import interpreter, variables


class WorkerError(Exception):
    """A worker reported an error or died; the message says which and why."""


class PeerMissing(WorkerError):
    """The peer is not installed."""


class Client:
    """Starts `bench.worker` for one peer and talks to it. Use as a context manager: it ends the process."""

    def __init__(self, peer: str, threads: int) -> None:
        self.peer = peer
        python = interpreter(peer)
        if python is None:
            raise PeerMissing(f"{peer} is not installed (tools/bench/setup-peers)")
        self._log = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [str(python), "-m", "bench.worker", peer, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
            env=variables(peer, threads),
        )

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    def __enter__(self) -> Client:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process: closing its input is the signal to stop."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.close()
            self._process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a command and wait for the reply. Raises WorkerError."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            raise WorkerError(f"{self.peer} died with exit code {code} during {do!r}: {self._last_words()}")
        reply = json.loads(line)
        if "missing" in reply:
            raise PeerMissing(f"{self.peer} is not installed: {reply['missing']} (tools/bench/setup-peers)")
        if "error" in reply:
            raise WorkerError(f"{self.peer}: {reply['error']}")
        return reply

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = [line for line in self._log.read().splitlines() if line.strip()]
        return lines[-1] if lines else "no message"
