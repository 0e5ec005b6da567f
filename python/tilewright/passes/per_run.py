# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that belong to a run of passes: found from any op inside of it, on any thread, and by no other run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from tilewright.ir.target_info import around
from tilewright.mlir import ir

T = TypeVar("T")


class PerRun(Generic[T]):
    """One kind of value. Runs may be nested, and on other ops at the same time."""

    def __init__(self) -> None:
        """No run yet."""
        # Outermost op and value, the latest last. No dictionary: the hash of an op follows from what it holds.
        self._runs: list[tuple[ir.Operation, T]] = []
        self._lock = threading.Lock()

    @contextmanager
    def bound(self, op: ir.Operation, value: T) -> Iterator[T]:
        """Let passes that run on `op` meanwhile find the value."""
        run = (root_of(op), value)
        with self._lock:
            self._runs.append(run)
        try:
            yield value
        finally:
            with self._lock:
                del self._runs[next(i for i, other in enumerate(self._runs) if other is run)]

    def find(self, op: ir.Operation | ir.OpView) -> T | None:
        """The value of the innermost run around `op`; None outside of all."""
        root = root_of(op)
        with self._lock:
            return next((value for other, value in reversed(self._runs) if other == root), None)


def root_of(op: ir.Operation | ir.OpView) -> ir.Operation:
    """The outermost op around an op, itself where it is the one."""
    return list(around(op))[-1]
