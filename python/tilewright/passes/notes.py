# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What passes tell the report beside the IR: pictures of weights, for one, which no attribute should hold.

A pass calls :func:`note`; who runs a pipeline finds the notes in :class:`tilewright.passes.PipelineRun`. Where nobody
listens, in `tile-opt` for one, they are dropped. Nothing that code follows from may be a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilewright.mlir import ir
from tilewright.passes.per_run import PerRun


@dataclass(frozen=True)
class Note:
    """One of them: what it is about (`sparsity`, ...), and plain values, as JSON has them."""

    kind: str
    values: dict[str, Any]


_runs: PerRun[list[Note]] = PerRun()


@contextmanager
def collected(op: ir.Operation) -> Iterator[list[Note]]:
    """The notes of passes that run on `op` meanwhile, in order."""
    with _runs.bound(op, []) as notes:
        yield notes


def note(op: ir.Operation, kind: str, values: dict[str, Any]) -> None:
    """Leave a note with who runs passes on the module around `op`."""
    notes = _runs.find(op)
    if notes is not None:
        notes.append(Note(kind, values))


def listened(op: ir.Operation) -> bool:
    """Whether someone collects notes: what is costly to tell need not be made else."""
    return _runs.find(op) is not None
