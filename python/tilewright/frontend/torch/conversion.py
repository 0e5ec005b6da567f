# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's own ONNX exporter, quiet, and what its errors mean to a user."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.torch.translations import read_once

_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # colours of a terminal
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\w+)\n\s+(\S.*)')
_OPERATOR = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)'")
_ADVICE = "torch.compile(module, backend=tilewright.torch.backend)"
_DATA_DEPENDENT = ("GuardOnDataDependentSymNode", "DataDependentOutputException")


def onnx_of(model: Any, what: str, args: tuple = (), kwargs: Any = None, dynamic_shapes: Any = None) -> onnx.ModelProto:
    """Convert by `torch.onnx.export`, with gradients off; nothing is printed.

    Args:
        model: a torch.nn.Module, or a torch.export.ExportedProgram.
        what: what errors call it.
        args: of a module, as are the next two: positional inputs.
        kwargs: inputs by name.
        dynamic_shapes: which sizes stay open, as `torch.export.export` takes them.

    Raises:
        UnsupportedError: torch cannot export it (with the line where, and what to do), or its exporter is missing.
    """
    return program_of(model, what, args, kwargs, dynamic_shapes).model_proto


def simple_onnx_of(program: Any, what: str) -> onnx.ModelProto:
    """Convert a torch.export.ExportedProgram by what the compiler needs of torch's optimizer of ONNX models.

    Functions are inlined and constants folded. Rules that rewrite patterns take as long as all else, and kernels are
    the same without them.

    Raises:
        UnsupportedError: torch cannot export it, or its exporter is missing.
    """
    made = program_of(program, what, optimize=False)
    from onnx_ir.passes import common
    from onnxscript.optimizer import fold_constants_ir

    try:
        common.InlinePass()(made.model)
        fold_constants_ir(made.model)
        common.RemoveUnusedNodesPass()(made.model)
        common.CommonSubexpressionEliminationPass()(made.model)
        return made.model_proto
    except Exception as error:  # as those of the exporter: PyTorch can run the graph
        raise explained(error, what) from error


def program_of(
    model: Any,
    what: str,
    args: tuple = (),
    kwargs: Any = None,
    dynamic_shapes: Any = None,
    optimize: bool = True,
) -> Any:
    """The torch.onnx.ONNXProgram; see :func:`onnx_of`; `optimize`: by torch's optimizer of ONNX models."""
    import torch

    options = {"optimize": optimize, **({} if dynamic_shapes is None else {"dynamic_shapes": dynamic_shapes})}
    try:
        with read_once(), _quiet(), torch.no_grad():  # one export at a time: levels of loggers are the process's
            return torch.onnx.export(model, args, kwargs=kwargs, dynamo=True, verbose=False, **options)
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"torch's ONNX exporter needs the package {error.name}: pip install onnxscript"
        ) from None
    except Exception as error:  # whatever the module's own code or the exporter raises
        raise explained(error, what) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What torch prints, warns of and logs while it exports is not for our user: the error says it."""
    handlers = [handler for handler in logging.getLogger("torch").handlers]
    others = {logging.getLogger(name): logging.getLogger(name).level for name in ("onnx_ir", "onnxscript")}

    def nothing(record: logging.LogRecord) -> bool:
        return False

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for handler in handlers:
            handler.addFilter(nothing)
        for logger in others:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for handler in handlers:
                handler.removeFilter(nothing)
            for logger, level in others.items():
                logger.setLevel(level)


def explained(error: BaseException, what: str) -> UnsupportedError:
    """The error of torch in a user's terms: which line or operator, and what to do."""
    chain = list(_chain(error))
    for each in chain:
        if type(each).__name__ in _DATA_DEPENDENT:
            return _data_dependent(each, what)
    for each in chain:
        operator = _OPERATOR.search(str(each))
        if operator:
            return UnsupportedError(
                f"torch cannot export {what}: its exporter has no ONNX form of {operator.group(1)}; use other "
                f"operators there, or {_ADVICE}, which leaves to PyTorch what cannot be compiled"
            )
    last = chain[-1]
    text = next((line for line in _ESCAPE.sub("", str(last)).splitlines() if line.strip()), "no message")
    return UnsupportedError(
        f"torch cannot export {what}: {type(last).__name__}: {text}. "
        "torch.onnx.export(module, inputs, dynamo=True, report=True) writes a report about it"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, the first one last."""
    following: BaseException | None = error
    seen: set[int] = set()
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)


def _data_dependent(error: BaseException, what: str) -> UnsupportedError:
    frame = _frame(error)
    where = f" in {frame[2]}, at `{frame[3]}`" if frame else ""
    return UnsupportedError(
        f"torch cannot export {what}: Python code decides by values of a tensor{where}; a graph has no values yet. "
        "Write torch.cond(predicate, true_fn, false_fn, operands) for a branch, torch.where to choose element by "
        f"element; or use {_ADVICE}, which breaks the graph there",
        location=f"{Path(frame[0]).name}:{frame[1]}" if frame else None,
    )


def _frame(error: BaseException) -> tuple[str, str, str, str] | None:
    """File, line, function and code of the user's line: as torch names it, else the last one outside of torch."""
    named = _FRAME.findall(str(error).partition("The following call raised this error:")[2])
    if named:
        return named[-1]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/torch/" not in frame.filename and "/tilewright/" not in frame.filename]
    if not own:
        return None
    return own[-1].filename, str(own[-1].lineno), own[-1].name, own[-1].line or ""
