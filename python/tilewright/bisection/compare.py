# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two sets of outputs: where they differ the most, and whether that is beyond rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Largest difference that rounding explains, as a share of the output's largest value, by the dtype's name.
TOLERANCE = {"float64": 1e-6, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2, "complex64": 1e-4, "complex128": 1e-6}
_COARSE = 0.3  # floats of 8 bits and fewer


@dataclass(frozen=True)
class Difference:
    """One output of two runs, at the element where they differ the most.

    Attributes:
        name: of the output.
        index: of the element.
        expected: the element in the baseline.
        got: the element now.
        absolute: their distance.
        relative: the distance as a share of the expected value.
        ulp: the distance in units of the last place of the output's type; None for integers.
        share: the distance as a share of what is tolerated there; above 1 the result has moved.
        count: how many elements are beyond the tolerance.
        note: what else differs (a shape or a dtype).
    """

    name: str
    index: tuple[int, ...] = ()
    expected: object = None
    got: object = None
    absolute: float = 0.0
    relative: float = 0.0
    ulp: float | None = None
    share: float = 0.0
    count: int = 0
    note: str = ""

    @property
    def moved(self) -> bool:
        """True where the difference is beyond the tolerance."""
        return bool(self.note) or self.share > 1

    def __str__(self) -> str:
        """Return it in one line."""
        if self.note:
            return f"{self.name}: {self.note}"
        ulp = "" if self.ulp is None else f", {self.ulp:.3g} ulp"
        sizes = f"absolute {self.absolute:.3g}, relative {self.relative:.3g}{ulp}"
        at = f"[{', '.join(map(str, self.index))}]"
        return f"{self.name}{at}: {self.got} where {self.expected} was: {sizes}; {self.count} elements moved"


def differences(
    names: Sequence[str], expected: Sequence[np.ndarray], got: Sequence[np.ndarray], tolerance: float | None = None
) -> list[Difference]:
    """Compare outputs, one :class:`Difference` each.

    Args:
        names: of the outputs.
        expected: the baseline.
        got: the other run.
        tolerance: largest difference for floats, as a share of the output's largest value; None: by dtype.
    """
    return [_difference(*each, tolerance) for each in zip(names, expected, got, strict=True)]


def _difference(name: str, expected: np.ndarray, got: np.ndarray, tolerance: float | None) -> Difference:
    if expected.shape != got.shape:
        return Difference(name, note=f"shape {list(got.shape)} where {list(expected.shape)} was")
    if expected.dtype != got.dtype:
        return Difference(name, note=f"dtype {got.dtype} where {expected.dtype} was")
    if expected.size == 0:
        return Difference(name)
    gap, allowed = _gap(expected, got), _allowed(expected, tolerance)
    with np.errstate(all="ignore"):
        share = np.where(gap == 0, 0, gap / np.where(allowed == 0, np.finfo(np.float64).tiny, allowed))
    at = np.unravel_index(int(np.argmax(share)), share.shape)
    index = tuple(int(i) for i in at)
    absolute = float(gap[at])
    size = float(np.abs(_wide(expected[at])))
    return Difference(
        name,
        index,
        expected[at],
        got[at],
        absolute,
        absolute / size if size else (np.inf if absolute else 0.0),
        _ulp(expected, at, absolute),
        float(share[at]),
        int((share > 1).sum()),
    )


def _wide(array: np.ndarray) -> np.ndarray:
    return np.asarray(array).astype(np.complex128 if np.asarray(array).dtype.kind == "c" else np.float64)


def _gap(expected: np.ndarray, got: np.ndarray) -> np.ndarray:
    """The distance of elements; equal ones (two NaN too) have none, a NaN is infinitely far from a number."""
    a, b = _wide(expected), _wide(got)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        return np.where(same, 0, np.nan_to_num(np.abs(a - b), nan=np.inf))


def _allowed(expected: np.ndarray, tolerance: float | None) -> np.ndarray:
    if expected.dtype.kind in "iub" or "int" in expected.dtype.name:
        return np.zeros(expected.shape)
    share = TOLERANCE.get(expected.dtype.name, _COARSE) if tolerance is None else tolerance
    sizes = np.abs(_wide(expected))
    finite = sizes[np.isfinite(sizes)]
    return np.full(expected.shape, share * float(finite.max(initial=0)))


def _ulp(expected: np.ndarray, at: tuple[np.intp, ...], absolute: float) -> float | None:
    """The distance in units of the last place of the expected element."""
    dtype = expected.dtype
    if dtype.kind in "iubc" or "float" not in dtype.name:
        return None
    import ml_dtypes

    info = ml_dtypes.finfo(dtype)
    size = float(np.abs(_wide(expected[at])))
    exponent = np.floor(np.log2(size)) if size and np.isfinite(size) else info.minexp
    return float(absolute / 2.0 ** (max(exponent, info.minexp) - info.nmant))
