# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What passes tell the report beside the IR: pictures of weights, for one, which no attribute should hold.

A pass calls :func:`note`; who runs a pipeline finds the notes in :class:`tilewright.passes.PipelineRun`. Where nobody
listens, in `tile-opt` for one, they are dropped. Nothing that code follows from may be a note.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.target_info import around
from tilewright.mlir import ir


@dataclass(frozen=True)
class Note:
    """One of them: what it is about (`sparsity`, ...), and plain values, as JSON has them."""

    kind: str
    values: dict[str, Any]


@dataclass
class _Run:
    root: ir.Operation
    notes: list[Note] = field(default_factory=list)


_runs: list[_Run] = []
_lock = threading.Lock()


@contextmanager
def collected(op: ir.Operation) -> Iterator[list[Note]]:
    """The notes of passes that run on `op` meanwhile, in order."""
    run = _Run(list(around(op))[-1])
    with _lock:
        _runs.append(run)
    try:
        yield run.notes
    finally:
        with _lock:
            del _runs[next(i for i, other in enumerate(_runs) if other is run)]


def note(op: ir.Operation, kind: str, values: dict[str, Any]) -> None:
    """Leave a note with who runs passes on the module around `op`."""
    run = _listener(op)
    if run is not None:
        run.notes.append(Note(kind, values))


def listened(op: ir.Operation) -> bool:
    """Whether someone collects notes: what is costly to tell need not be made else."""
    return _listener(op) is not None


def _listener(op: ir.Operation) -> _Run | None:
    root = list(around(op))[-1]
    with _lock:
        return next((run for run in reversed(_runs) if run.root == root), None)
