# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which models have CTAs that share work in an order that may differ: their bits are compared over many runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Sums of several CTAs, semaphores.
_ATOMIC = re.compile(
    rb"^\s*(@!?%p\d+\s+)?((atom|red)\.[\w.:]*global|(ld\.acquire|st\.release)\.[\w.:]*(gpu|sys)\b)", re.MULTILINE
)


def may_vary(program: Mapping[str, Any], modules: Mapping[str, bytes], locations: Sequence[Sequence[str]]) -> bool:
    """Whether a model has persistent grids, clusters, semaphores or atomics, or parts that another kernel combines.

    Args:
        program: the host program.
        modules: PTX by file name.
        locations: the model's operators of each kernel.
    """
    if any(_shares(entry, modules) for entry in program["kernels"].values()):
        return True
    every = [place for places in locations for place in set(places)]
    return len(every) > len(set(every))  # split-KV: one operator, two kernels


def _shares(entry: Mapping[str, Any], modules: Mapping[str, bytes]) -> bool:
    cluster = tuple(entry.get("cluster") or (1, 1, 1))
    if entry.get("persistent") is not None or entry.get("waits") or cluster != (1, 1, 1):
        return True
    return bool(_ATOMIC.search(modules.get(entry["module"], b"")))
