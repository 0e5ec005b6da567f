# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loop of a server process: one task per line of JSON, one answer per line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Serve until the input ends. What libraries print must not get between the answers."""
    replies = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps({"key": task["key"], **answer(task)}), file=replies, flush=True)


def describe(error: BaseException) -> str:
    """The error's class and message in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
