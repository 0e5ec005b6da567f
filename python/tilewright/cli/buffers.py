# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays as the command line gives them: a file, or zeros and random numbers of a type and shape."""

from __future__ import annotations

import re

import numpy as np

from tilewright.cli.arguments import read_array
from tilewright.core.dtypes import to_numpy

_BUFFER = re.compile(r"(zeros|random|empty):(\w+):([\dx]*)$")


def buffer_of(text: str) -> tuple[np.ndarray | None, bool]:
    """(array that a buffer begins with, whether it is written), or (None, False) for a scalar."""
    if text.endswith(".npy"):
        return read_array(text), True
    found = _BUFFER.match(text)
    if not found:
        return None, False
    kind, name, shape = found.groups()
    dtype = to_numpy(name)
    sizes = [int(size) for size in shape.split("x") if size]
    if kind == "random":
        rng = np.random.default_rng(0)
        integer = dtype.kind in "iu"
        return (rng.integers(0, 10, sizes) if integer else rng.standard_normal(sizes)).astype(dtype), True
    return np.zeros(sizes, dtype), kind == "zeros"
