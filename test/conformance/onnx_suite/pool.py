# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Server processes that may crash or hang: the task at hand is told so, and the next one gets a new process."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

HERE = Path(__file__).resolve().parent


class Server:
    """A child that answers one JSON line with another.

    Args:
        module: ``build_side`` or ``run_side``.
        seconds: the longest that an answer may take.
        log: receives what the child writes to its standard error.
    """

    def __init__(self, module: str, seconds: float, log: Path) -> None:
        self._module, self._seconds, self._log = module, seconds, log
        self._child: subprocess.Popen | None = None
        self._rest = b""

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        """The answer; state ``crashed`` or ``timeout`` where none comes."""
        child = self._started()
        assert child.stdin is not None and child.stdout is not None
        try:
            child.stdin.write(json.dumps(task).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            return self._failed("crashed", task)
        line = self._line(child.stdout)
        return json.loads(line) if line.endswith(b"\n") else self._failed("timeout" if line else "crashed", task)

    def _line(self, stream: BinaryIO) -> bytes:
        """One line; b"" at the end of the stream, b"?" where it takes too long."""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(self._seconds):
                    return b"?"
                data = os.read(stream.fileno(), 1 << 16)
                if not data:
                    return b""
                self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line + b"\n"

    def _started(self) -> subprocess.Popen:
        if self._child is None:
            path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH", "")]))
            environment = {**os.environ, "PYTHONPATH": path, "TILEWRIGHT_CACHE": "0"}
            command = [sys.executable, "-m", f"{HERE.name}.{self._module}"]
            with open(self._log, "ab") as log:
                self._child = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment
                )
        return self._child

    def _failed(self, state: str, task: dict[str, Any]) -> dict[str, Any]:
        assert self._child is not None
        self._child.kill()
        code = self._child.wait()
        self._child, self._rest = None, b""
        detail = (
            f"no answer in {self._seconds:.0f} s" if state == "timeout" else f"the process died, exit status {code}"
        )
        return {"key": task["key"], "state": state, "detail": detail, "seconds": self._seconds}

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            assert self._child.stdin is not None
            self._child.stdin.close()
            try:
                self._child.wait(10)
            except subprocess.TimeoutExpired:
                self._child.kill()
            self._child = None
