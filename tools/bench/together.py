# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows that are timed behind each other in one hold: on a shared machine nobody waits while they load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from threading import Condition
from typing import TypeVar

from bench.hold import Hold

Row = TypeVar("Row")
#: Makes the context in which the bursts of a row run.
Turn = Callable[[], AbstractContextManager[Hold]]


def together(command: Sequence[str], rows: Sequence[Callable[[Turn], Row]]) -> list[Row]:
    """Load all rows, one after the other, then run `command` for as long as their bursts take.

    Args:
        command: as of `Hold`.
        rows: measure a row in the turn that they are given; one that fails to load takes none.
    """
    turns = _Turns(Hold(command), len(rows))
    with ThreadPoolExecutor(max(1, len(rows))) as pool:
        measured = [pool.submit(turns.run, row) for row in rows]
        return [one.result() for one in measured]


class _Turns:
    """At most one row is busy: one loads, or, when no more are to come, one is timed."""

    def __init__(self, hold: Hold, rows: int) -> None:
        self._hold, self._entered = hold, False
        self._to_load = self._to_end = rows
        self._free = Condition()

    def run(self, measure: Callable[[Turn], Row]) -> Row:
        """Measure a row when it is its turn to load, and to be timed."""
        loaded = False

        @contextmanager
        def turn() -> Iterator[Hold]:
            nonlocal loaded
            loaded = True
            self._to_load -= 1
            self._free.notify_all()
            self._free.wait_for(lambda: not self._to_load)
            if not self._entered:
                self._hold.__enter__()
                self._entered = True
            yield self._hold

        with self._free:
            try:
                return measure(turn)
            finally:
                self._to_load -= not loaded
                self._to_end -= 1
                if self._entered and not self._to_end:
                    self._hold.__exit__(None, None, None)
                self._free.notify_all()
