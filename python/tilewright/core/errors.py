# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exceptions that Tilewright raises.

Three kinds, so that a caller can tell them apart: :class:`UserError` (the call or the model is wrong),
:class:`UnsupportedError` (the call is right, Tilewright cannot do it yet), :class:`InternalError` (a bug here).
This module imports nothing of the compiler: the run-time uses it too.
"""

from __future__ import annotations

_IR_LINES = 40


class TilewrightError(Exception):
    """Base of all errors raised on purpose.

    Args:
        message: what is wrong, which rule says so, and what to do about it.
        location: where, e.g. an ONNX node's name or ``file.py:12``.
        ir: the IR (or the op) that the error is about.
        command: one shell command that reproduces the error.
    """

    kind = "error"

    def __init__(
        self,
        message: str,
        *,
        location: str | None = None,
        ir: str | None = None,
        command: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.ir = ir
        self.command = command

    def __str__(self) -> str:
        """Return message, location, the head of the IR and the reproducing command, one paragraph each."""
        parts = [self.message]
        if self.location:
            parts.append(f"  at: {self.location}")
        if self.ir:
            parts.append("  IR:\n" + _head(self.ir))
        if self.command:
            parts.append(f"  reproduce: {self.command}")
        return "\n".join(parts)

    def __reduce__(self):  # keyword-only arguments do not survive the default pickling
        """Support pickling, so that errors cross process borders whole."""
        return _rebuild, (type(self), self.message, self.location, self.ir, self.command)


#: Ends what a run says of sizes that code for all sizes does not serve; code of their own does.
SIZES_OF_THEIR_OWN = "(code for all sizes does not serve this: compile with sizes='each' or shapes= for such sizes)"


class UserError(TilewrightError, ValueError):
    """The request is wrong: a bad argument, a malformed model, a shape that does not fit."""

    kind = "user error"


class SizesError(UserError):
    """A run found sizes that do not fit; whoever started it adds the shapes of the inputs."""


class OpenShapesError(UserError):
    """Dimensions of the model's inputs have no size: `shapes=` or the arguments of a call must fix them.

    Attributes:
        inputs: (name, element type, dimensions) of each input; a dimension without a size is its name, or None where it
            has none; None instead of all dimensions where even their number is open.
        boundary: what is done around the model in Python for strings and maps, if anything is.
    """

    inputs: tuple = ()
    boundary: dict | None = None


class UnsupportedError(TilewrightError):
    """The request is valid, but this version cannot do it (an operator, a dtype, a target)."""

    kind = "unsupported"


class InternalError(TilewrightError, RuntimeError):
    """A bug in Tilewright or in what it calls (a failing pass, an LLVM abort)."""

    kind = "internal error"


def _rebuild(cls, message, location, ir, command):
    return cls(message, location=location, ir=ir, command=command)


def _head(ir: str) -> str:
    lines = ir.splitlines()
    shown = ["    " + line for line in lines[:_IR_LINES]]
    if len(lines) > _IR_LINES:
        shown.append(f"    ... ({len(lines) - _IR_LINES} more lines)")
    return "\n".join(shown)
