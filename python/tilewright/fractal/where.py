# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where in the user's program we are: for locations of ops, and for errors."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from tilewright.core.errors import UserError

_PACKAGE = Path(__file__).resolve().parents[1]  # tw.compile calls, too
_OURS = (f"{_PACKAGE}{os.sep}", contextlib.__file__, functools.__file__)

Called = TypeVar("Called", bound=Callable[..., Any])


def user_frame() -> FrameType:
    """The innermost call that stands in a file outside of Tilewright."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def user_place() -> tuple[str, int]:
    """File and line of the user's program."""
    frame = user_frame()
    return frame.f_code.co_filename, frame.f_lineno


def wrong(name: str, message: str) -> UserError:
    """An error of the function `name`, at the user's line."""
    file, line = user_place()
    return UserError(f"{name}: {message}", location=f"{file}:{line}")


def public(function: Called) -> Called:
    """Make errors of a function name it and the user's line."""
    name = f"ft.{function.__name__}"

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except UserError as error:
            if error.location is not None:
                raise
            raise wrong(name, error.message) from None

    return call  # pyright: ignore[reportReturnType]
