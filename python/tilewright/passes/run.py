# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run textual pipelines on IR, from Python."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core import config
from tilewright.core.errors import InternalError, UserError
from tilewright.passes.failure import failure_of
from tilewright.passes.registry import has_user_passes, load_builtin_passes

if TYPE_CHECKING:
    from tilewright.mlir import ir
    from tilewright.passes.notes import Note


@dataclass(frozen=True)
class Diagnostic:
    """What a pass said: ``severity`` is error, warning, remark or note."""

    severity: str
    message: str
    location: str
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        """Return it in one line, as ``tile-opt`` would print it."""
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.severity}: {self.message}"


@dataclass(frozen=True)
class PipelineRun:
    """What happened in a successful run.

    Attributes:
        diagnostics: warnings and remarks, in order.
        timings: (pass, seconds) per pass of the pipeline's top level; a nest such as ``func.func(a,b)`` is one.
        notes: what passes left for the report, in order.
    """

    diagnostics: tuple[Diagnostic, ...]
    timings: tuple[tuple[str, float], ...]
    notes: tuple[Note, ...] = ()


def run_pipeline(
    op: ir.Module | ir.Operation | ir.OpView,
    pipeline: str | Any,
    *,
    verify: bool | None = None,
    print_ir: bool = False,
    timing: bool = False,
    dump_dir: str | Path | None = None,
    replay: bool = True,
    weights: Mapping[str, Any] | None = None,
) -> PipelineRun:
    """Run a textual pipeline on an op, in place, without holding the GIL.

    Python objects for ops *inside* ``op`` are stale afterwards: look them up again.

    Args:
        op: what to run on, usually a module.
        pipeline: e.g. ``builtin.module(canonicalize,func.func(my-pass{x=1}))``, or anything whose ``str`` is one.
        verify: verify the IR after each pass; False: behind the last one, and pass by pass where that fails (a tenth of
            the time of a compilation). None: as TILEWRIGHT_VERIFY says, and always where a pass is a user's, or where
            nothing could be run again.
        print_ir: print the IR of each op to stderr after each pass that changed it.
        timing: print a timing report to stderr.
        dump_dir: folder that receives ``NNN_pass.mlir`` after each pass of the top level, and the IR of a failure.
        replay: on failure, run the passes once more on a copy to find the IR before the one that failed.
        weights: what the external globals around the op hold, by name: passes of this run may look at them.

    Returns:
        Warnings, remarks, times and notes.

    Raises:
        UserError: the pipeline's text is wrong (unknown pass, bad option); or a pass raised it.
        UnsupportedError: a pass raised it, or a C++ pass failed with a message that starts with "unsupported".
        InternalError: any other failure. The exception of a Python pass is the ``__cause__``.
    """
    from tilewright.mlir._mlir_libs import _tilewright
    from tilewright.passes.notes import collected
    from tilewright.passes.weights import bound

    operation = op.operation
    text = _normalize(str(pipeline))
    if dump_dir is not None:
        Path(dump_dir).mkdir(parents=True, exist_ok=True)
    before = operation.clone(ip=False) if replay else None
    each = verify if verify is not None else config.verify.get() or not replay or has_user_passes(text)
    with bound(operation, weights), collected(operation) as notes:
        report = _tilewright.run(
            operation, text, verify=each, print_ir=print_ir, print_timing=timing, dump_dir=str(dump_dir or "")
        )
    if not each:
        report = _verified(operation, before, text, report, weights)
    diagnostics = tuple(_diagnostic(*entry) for entry in report["diagnostics"])
    if not report["ok"]:
        raise failure_of(before, text, diagnostics, report["failures"], dump_dir, weights)
    if report["dump_error"]:
        raise InternalError(f"cannot write the IR after a pass: {report['dump_error']}")
    return PipelineRun(diagnostics, tuple(report["passes"]), tuple(notes))


def _verified(
    operation: ir.Operation,
    before: ir.Operation | None,
    text: str,
    report: dict[str, Any],
    weights: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The report of a run as it reads with the IR verified after each pass: of a failed one, the first wrong fails."""
    from tilewright.mlir._mlir_libs import _tilewright
    from tilewright.passes.weights import bound

    wrong = _violations(operation) if report["ok"] else []
    interrupted = any(not isinstance(error, Exception) for _, error in report["failures"])
    if interrupted or report["ok"] and not wrong:
        return report
    if before is not None:
        copy = before.clone(ip=False)
        with bound(copy, weights):
            again = _tilewright.run(copy, text, verify=True)
        if not again["ok"]:
            return again
    return {**report, "ok": False, "diagnostics": [*report["diagnostics"], *wrong]}


def _violations(operation: ir.Operation) -> list[tuple[Any, ...]]:
    """What the verifier says of an operation, as diagnostics of a report."""
    from tilewright.mlir import ir

    try:
        operation.verify()
    except ir.MLIRError as error:
        return [("error", found.message, _place(found.location), []) for found in error.error_diagnostics]
    return []


def _place(location: ir.Location) -> str:
    """A location as diagnostics of passes have it: ``file:line:column``, "" where it is not known."""
    text = str(location).removeprefix("loc(").removesuffix(")").replace('"', "")
    return "" if text == "unknown" else text


def _normalize(pipeline: str) -> str:
    """The pipeline in full; its passes are known then."""
    from tilewright.mlir._mlir_libs import _tilewright

    load_builtin_passes(pipeline)
    with contextlib.suppress(ValueError):
        return _tilewright.normalize_pipeline(pipeline)
    load_builtin_passes()  # it may name another pipeline, which names passes
    try:
        return _tilewright.normalize_pipeline(pipeline)
    except ValueError as error:
        raise UserError(f"this is not a pipeline: {str(error).strip()}\n  in: {pipeline}") from None


def _diagnostic(severity: str, message: str, location: str, notes: list[Any]) -> Diagnostic:
    return Diagnostic(severity, message, location, tuple(_diagnostic(*note) for note in notes))
