# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a rung's process writes: a line before each check, with its set-up, and one after it with what was found."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.gpu.far import child


class Check:
    """One check of a rung; `ok` until something is said against it."""

    def __init__(self) -> None:
        self.line: dict[str, Any] = {"status": "ok", "text": ""}

    def wrong(self, text: str, **more: Any) -> None:
        """Say what is wrong."""
        self.line |= {"status": "wrong", "text": text, **more}

    def skip(self, reason: str) -> None:
        """Say why it cannot be done here."""
        self.line |= {"status": "skipped", "text": reason}

    def tell(self, text: str, **more: Any) -> None:
        """Say what was found."""
        self.line |= {"text": text, **more}


class Report:
    """Appends lines of JSON to a file; each is on the disk before the next thing happens.

    Args:
        path: of the file.
        rung: whose lines they are.

    Attributes:
        rung: as given.
        failed: whether a check is wrong.
    """

    def __init__(self, path: Path, rung: str) -> None:
        self._path, self.rung = path, rung
        self.failed = False

    @contextmanager
    def check(self, name: str, setup: dict[str, Any] | None = None) -> Iterator[Check]:
        """One check: its first line says that it began, so that a hang or a crash in it has a name and a set-up.

        An error of the run-time or the device is what the check found, and passes on: the context may be lost.
        """
        self._write({"check": name, "status": "started", "setup": setup})
        start, found = time.monotonic(), Check()
        try:
            yield found
        except Exception as error:
            found.wrong(f"{type(error).__name__}: {error}", error=str(error))
            raise
        finally:
            self.failed |= found.line["status"] == "wrong"
            self._write({"check": name, "seconds": round(time.monotonic() - start, 3), **found.line})

    def done(self) -> None:
        """Say that the rung came to its end."""
        self._write({"status": "done"})

    def _write(self, line: dict[str, Any]) -> None:
        child.append(self._path, {"rung": self.rung, **line})
