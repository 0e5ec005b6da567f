# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of the reference interpreter."""

from __future__ import annotations

from tilewright.core.errors import TilewrightError


class InterpreterError(TilewrightError):
    """The program cannot be interpreted: an unknown op, a bad argument, or behaviour that its ops leave undefined."""

    kind = "reference"


class AssertionFailedError(InterpreterError):
    """A `cf.assert` of the program did not hold; the message is the program's own."""

    kind = "assertion"
