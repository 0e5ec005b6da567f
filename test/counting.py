# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work as a count: a test that asserts a time fails on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions `work` calls in this thread, Python's and those of extensions."""
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
