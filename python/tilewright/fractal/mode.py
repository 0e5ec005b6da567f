# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which mode is on: values of NumPy, or a program that is being traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from tilewright.fractal.eager import Eager

_EAGER = Eager()
_mode: ContextVar[Any] = ContextVar("mode", default=_EAGER)


def current() -> Any:
    """The mode at hand: an `Eager`, or a tracer, which has the same methods."""
    return _mode.get()


@contextlib.contextmanager
def using(mode: Any) -> Iterator[None]:
    """While inside, functions do what `mode` says."""
    token = _mode.set(mode)
    try:
        yield
    finally:
        _mode.reset(token)
