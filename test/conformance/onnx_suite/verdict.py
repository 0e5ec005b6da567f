# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether outputs are those that a test stored; as ONNX's own runner compares them. Needs NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np


def wrong_result(model: Any, data: dict[str, Any]) -> str | None:
    """Run a model on each set of a test's inputs: what is wrong with the outputs, or None.

    Absent inputs are not given, sequences as their tensors.
    """
    for inputs, expected in data["sets"]:
        wrong = difference(list(model(*flat(list(inputs)))), expected, data["rtol"], data["atol"])
        if wrong:
            return wrong
    return None


def difference(outputs: list[Any], expected: list[Any], rtol: float, atol: float) -> str | None:
    """What is wrong with the outputs, in one line; None where nothing is.

    A sequence counts as its tensors, one after the other: that is how a compiled model takes and gives it.
    """
    expected = flat(expected)
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    for i, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        found = _difference(got, want, rtol, atol)
        if found:
            return f"output {i}: {found}"
    return None


def flat(values: list[Any]) -> list[Any]:
    """The tensors in order; absent ones are left out."""
    found = []
    for value in values:
        found += flat(value) if isinstance(value, list) else [] if value is None else [value]
    return found


def _difference(got: Any, want: Any, rtol: float, atol: float) -> str | None:
    if isinstance(want, dict):
        return "a map is expected"
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype == object:
        return None if got.tolist() == want.tolist() else f"{got.tolist()}, expected {want.tolist()}"
    if got.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)  # two units in the last place, as in ONNX's runner
    return _values(_plain(got), _plain(want), rtol, atol)


def _plain(array: np.ndarray) -> np.ndarray:
    """Number formats that NumPy does not know (bfloat16, float8, int4) as float32: they all fit."""
    return array if array.dtype.kind in "biufc" else array.astype(np.float32)


def _values(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> str | None:
    with np.errstate(all="ignore"):
        close = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return None
    first = tuple(int(i) for i in np.argwhere(~close)[0])
    count = f"{int((~close).sum())} of {close.size} elements differ"
    return f"{count}, first at {list(first)}: {got[first]}, expected {want[first]}"
