# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and products over an iteration space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.core.integers import narrow, unsigned
from tilewright.reference.errors import InterpreterError
from tilewright.reference.types import is_float

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "maxnum": np.fmax,
    "minnum": np.fmin,
    "max": np.maximum,
    "min": np.minimum,
    "maxs": np.maximum,
    "mins": np.minimum,
    "maxu": np.maximum,
    "minu": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reduce_array(kind: str, array: np.ndarray, axes: Sequence[int], init: np.ndarray | None = None) -> np.ndarray:
    """Reduce ``axes`` (kept with size 1) by the combiner ``kind``, then combine with ``init``.

    Low precision floats are combined in float32 and rounded once.

    Args:
        kind: a key of the table above; "maxu"/"minu" compare unsigned.
        array: any shape; an empty axis needs ``init``.
        axes: which dimensions are reduced.
        init: an array of the result's shape, or None.
    """
    ufunc, dtype = _UFUNCS[kind], array.dtype
    work, start = (None if x is None else _working(kind, x) for x in (array, init))
    if start is not None and any(array.shape[axis] == 0 for axis in axes):
        return np.asarray(init)
    with np.errstate(all="ignore"):
        out = ufunc.reduce(work, axis=tuple(axes), keepdims=True, **_accumulator(ufunc, work))
        out = out if start is None else ufunc(start, out)
    return out.astype(dtype) if is_float(dtype) else narrow(out, dtype)


def _accumulator(ufunc: np.ufunc, work: np.ndarray) -> dict[str, Any]:
    return {"dtype": work.dtype} if ufunc in (np.add, np.multiply) else {}


def _working(kind: str, array: np.ndarray) -> np.ndarray:
    if is_float(array.dtype):
        return array.astype(np.float32, copy=False) if array.dtype.itemsize < 4 else array
    if array.dtype == np.bool_:
        # Signed maximum of i1 prefers false (0) over true (-1); as small integers all combiners come out right.
        return -array.astype(np.int8) if kind in ("max", "min", "maxs", "mins") else array.astype(np.uint8)
    return unsigned(array) if kind in ("maxu", "minu") else array


def reduce_with(op: str, array: np.ndarray, sizes: Sequence[int], axes: Sequence[int], init: np.ndarray) -> np.ndarray:
    """Reduce by an `arith` op called ``op`` over loops of ``sizes``.

    Args:
        op: e.g. "arith.addf".
        array: over the loops; size 1 where it does not vary.
        sizes: of the loops.
        axes: reduced loops.
        init: over the loops, size 1 along ``axes``.
    """
    kind = op.removeprefix("arith.").removesuffix("f").removesuffix("i")
    full = np.broadcast_to(array, [sizes[d] if d in axes else n for d, n in enumerate(array.shape)])
    return reduce_array(kind, full, axes, init)


def contract(x: np.ndarray, y: np.ndarray, sizes: Sequence[int], axes: Sequence[int], init: np.ndarray) -> np.ndarray:
    """Return ``init`` plus the sum over loops ``axes`` of ``x * y``, as one batched matrix product.

    Args:
        x, y: over the loops, size 1 where they do not vary.
        sizes: of the loops.
        axes: reduced loops.
        init: over the loops, size 1 along ``axes``; its dtype is the result's.
    """
    if x.dtype != y.dtype:
        raise InterpreterError(f"a product of {x.dtype} and {y.dtype}")
    x, y, factor = _sum_lonely(_wide(x), _wide(y), sizes, axes)
    kinds: dict[str, list[int]] = {"batch": [], "m": [], "n": [], "k": [], "none": []}
    for d in range(len(sizes)):
        kinds[_kind(x.shape[d] != 1, y.shape[d] != 1, d in axes)].append(d)
    batch, m, n, k = (kinds[name] for name in ("batch", "m", "n", "k"))
    left = x.transpose(batch + m + k + n + kinds["none"]).reshape(_block(x, batch, m, k))
    right = y.transpose(batch + k + n + m + kinds["none"]).reshape(_block(y, batch, k, n))
    with np.errstate(all="ignore"):
        product = np.matmul(left, right)
        ordered = product.reshape([*(x.shape[d] for d in batch + m), *(y.shape[d] for d in n), *_ones(k, kinds)])
        inverse = np.argsort(batch + m + n + k + kinds["none"])
        total = _wide(init) + ordered.transpose(inverse) * factor
    return total.astype(init.dtype)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if is_float(x.dtype) and x.dtype.itemsize < 4 else x


def _sum_lonely(x: np.ndarray, y: np.ndarray, sizes: Sequence[int], axes: Sequence[int]) -> Any:
    """Sum each operand over reduced loops that only it varies with; count loops that neither varies with."""
    only_x = tuple(d for d in axes if x.shape[d] != 1 and y.shape[d] == 1)
    only_y = tuple(d for d in axes if y.shape[d] != 1 and x.shape[d] == 1)
    factor = np.prod([sizes[d] for d in axes if x.shape[d] == y.shape[d] == 1], dtype=np.int64).astype(x.dtype)
    x = x.sum(only_x, keepdims=True, dtype=x.dtype) if only_x else x
    y = y.sum(only_y, keepdims=True, dtype=y.dtype) if only_y else y
    return x, y, factor


def _kind(in_x: bool, in_y: bool, reduced: bool) -> str:
    if in_x and in_y:
        return "k" if reduced else "batch"
    return "m" if in_x else "n" if in_y else "none"


def _block(array: np.ndarray, *groups: list[int]) -> list[int]:
    return [int(np.prod([array.shape[d] for d in group], dtype=np.int64)) for group in groups]


def _ones(k: list[int], kinds: dict[str, list[int]]) -> list[int]:
    return [1] * (len(k) + len(kinds["none"]))
