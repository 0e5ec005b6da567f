# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of translations that torch's ONNX exporter reads anew for each export, which takes a second: read once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.RLock()
_known: dict[Any, Any] = {}  # tables by opset


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Let exports take their table from the first one; where this version of torch has none of it, nothing changes.

    Others that export meanwhile wait.
    """
    try:
        from torch.onnx._internal.exporter._registration import ONNXRegistry

        read = ONNXRegistry.__dict__["from_torchlib"]
    except (ImportError, KeyError, AttributeError):
        yield
        return
    with _lock:
        ONNXRegistry.from_torchlib = classmethod(_table(read.__func__))  # type: ignore[assignment]
        try:
            yield
        finally:
            ONNXRegistry.from_torchlib = read  # type: ignore[assignment]


def _table(read: Any) -> Any:
    def table(kind: Any, *args: Any, **kwargs: Any) -> Any:
        key = (*args, *kwargs.items())
        if key not in _known:
            _known[key] = read(kind, *args, **kwargs)
        known = _known[key]
        own = kind()
        vars(own).update(vars(known))
        own.functions = {name: list(found) for name, found in known.functions.items()}  # an export may add to it
        return own

    return table
