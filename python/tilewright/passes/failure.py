# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a failed run to an error: message, location, the IR before the failing pass, one command to reproduce it."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.core.errors import InternalError, TilewrightError, UnsupportedError, UserError
from tilewright.passes.registry import registered_passes, source_file
from tilewright.passes.text import leaf_name, single_passes

if TYPE_CHECKING:
    from tilewright.mlir import ir
    from tilewright.passes.run import Diagnostic

_CURRENT_OP = "see current operation: "
_UNSUPPORTED = "unsupported"
_KINDS = (UserError, UnsupportedError, InternalError, TilewrightError)


class Culprit(NamedTuple):
    """The pipeline that fails on its own on ``before``."""

    before: ir.Operation
    pipeline: str


def failure_of(
    before: ir.Operation | None,
    pipeline: str,
    diagnostics: tuple[Diagnostic, ...],
    failures: list[tuple[str, BaseException]],
    dump_dir: str | Path | None,
    weights: Mapping[str, Any] | None = None,
) -> BaseException:
    """Return the exception to raise for a failed run.

    Args:
        before: a copy of the IR before the run, or None if none was kept.
        pipeline: the pipeline in full.
        diagnostics: everything that was diagnosed.
        failures: (message, exception) of each Python pass that raised.
        dump_dir: where to save the IR; a new temporary folder if None.
        weights: what passes may look at.
    """
    first = next((entry for entry in diagnostics if entry.severity == "error"), None)
    cause = _cause(first, failures)
    if cause is not None and not isinstance(cause, Exception):
        return cause  # KeyboardInterrupt, SystemExit
    culprit = _find_culprit(before, pipeline, weights) if before is not None else None
    error = _make_error(first, cause, culprit)
    if culprit is not None:
        error.command = _save(culprit, dump_dir)
    error.__cause__ = cause
    return error


def _cause(first: Diagnostic | None, failures: list[tuple[str, BaseException]]) -> BaseException | None:
    """Return the exception behind the first error: passes on several threads may have raised."""
    for message, error in failures:
        if first is None or message == first.message:
            return error
    return failures[0][1] if failures else None


def _find_culprit(before: ir.Operation, pipeline: str, weights: Mapping[str, Any] | None) -> Culprit:
    """Run the passes one by one on a copy, until one fails."""
    from tilewright.mlir._mlir_libs import _tilewright
    from tilewright.passes.weights import bound

    state = before.operation.clone(ip=False)
    for step in single_passes(pipeline):
        snapshot = state.operation.clone(ip=False)
        with bound(state.operation, weights):
            done = _tilewright.run(state.operation, step, verify=True)["ok"]
        if not done:
            return Culprit(snapshot.operation, step)
    return Culprit(before.operation, pipeline)  # it depends on threads: keep the whole


def _make_error(first: Diagnostic | None, cause: BaseException | None, culprit: Culprit | None) -> TilewrightError:
    message = first.message if first else "a pass failed without saying why"
    location = first.location if first else None
    current = _current_op(first)
    if isinstance(cause, TilewrightError):
        kind = next(kind for kind in _KINDS if isinstance(cause, kind))
        return kind(cause.message, location=cause.location or location, ir=cause.ir or current)
    if cause is None and message.startswith(_UNSUPPORTED):
        return UnsupportedError(message, location=location, ir=current)
    name = leaf_name(culprit.pipeline) if culprit else None
    prefix = f"pass '{name}' failed: " if name and f"'{name}' failed" not in message else ""
    return InternalError(prefix + message, location=location, ir=current)


def _current_op(first: Diagnostic | None) -> str | None:
    """Return the op that MLIR attached to a diagnostic."""
    for note in first.notes if first else ():
        if note.message.startswith(_CURRENT_OP):
            return note.message.removeprefix(_CURRENT_OP)
    return None


def _save(culprit: Culprit, dump_dir: str | Path | None) -> str:
    """Save the IR and return the command that fails on it again."""
    from tilewright.mlir._mlir_libs import _tilewright

    folder = Path(dump_dir) if dump_dir is not None else Path(tempfile.mkdtemp(prefix="tilewright-"))
    path = folder / f"before_{leaf_name(culprit.pipeline)}.mlir"
    _tilewright.write_reproducer(culprit.before, culprit.pipeline, str(path))
    return reproduce_command(culprit.pipeline, path, culprit.before.context.allow_unregistered_dialects)


def reproduce_command(pipeline: str, path: str | Path, unregistered: bool = False) -> str:
    """Return the ``tile-opt`` command that runs a pipeline on a file, with the Python files of the user's passes."""
    words: list[Any] = ["tile-opt", path, f"--pass-pipeline={pipeline}"]
    known = registered_passes()
    names = {leaf_name(leaf) for leaf in single_passes(pipeline)}
    files = {source_file(known[name]) for name in sorted(names & known.keys())}
    words += [f"--load-python={file}" for file in sorted(file for file in files if file)]
    if unregistered:
        words.append("--allow-unregistered-dialect")
    return shlex.join(str(word) for word in words)
