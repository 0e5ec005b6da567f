# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keeping other work away while bursts run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType

_WAIT = "import sys; print('held', flush=True); sys.stdin.read()"


class Hold:
    """Runs `command CHILD`, where CHILD lives as long as the `with` block; an empty command does nothing.

    The command is one that makes room for its child, e.g. `flock /tmp/bench.lock`.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        self.lost = False

    def __enter__(self) -> Hold:
        """Start the command and wait until its child runs."""
        if self._command:
            child = [*self._command, sys.executable, "-c", _WAIT]
            self._process = subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self._process.stdout
            if not self._process.stdout.readline():
                raise RuntimeError(f"--hold {' '.join(self._command)}: ended with code {self._process.wait()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the command end. `lost` says that it ended by itself before."""
        if self._process is not None:
            assert self._process.stdin
            self.lost = self._process.poll() is not None
            self._process.stdin.close()
            self._process.wait()
