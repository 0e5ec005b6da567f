# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries: torch tensors and all that speaks DLPack, in without copies, and out as they came."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tilewright.core.errors import UserError

#: Turns a NumPy result into the kind that the inputs had.
Export = Callable[[np.ndarray], Any]


#: Element types that torch and ml_dtypes have, and NumPy has not.
_NOT_IN_NUMPY = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")


def to_numpy(value: Any, name: str, dtype: np.dtype) -> tuple[np.ndarray, Export | None]:
    """Return `value` as a NumPy array (sharing memory where it can), and how to make its kind from a result.

    Args:
        value: a torch tensor, an object with ``__dlpack__``, or (nested lists of) Python numbers.
        name: of the input, for errors.
        dtype: that the input has; Python numbers are converted to it.

    Raises:
        UserError: on another device, or nothing that becomes an array.
    """
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value), None
    if type(value).__module__.partition(".")[0] == "torch" or is_torch(value):
        return _from_torch(value, name)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name)
    return _from_python(value, name, dtype), None


def is_torch(value: Any) -> bool:
    """Whether a value is a tensor of PyTorch, or of a class derived from it; PyTorch need not be installed."""
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in type(value).__mro__)


def _from_torch(value: Any, name: str) -> tuple[np.ndarray, Export]:
    import torch

    if value.device.type != "cpu":
        raise UserError(f"input {name} is on device {value.device}; this model runs on the CPU: pass {name}.cpu()")
    value = value.detach()
    own = str(value.dtype).partition(".")[2]
    if own not in _NOT_IN_NUMPY:
        return value.numpy(), to_torch
    import ml_dtypes

    plain = value.view(torch.int16 if value.itemsize == 2 else torch.uint8).numpy()
    return plain.view(getattr(ml_dtypes, own)), to_torch


def to_torch(array: np.ndarray) -> Any:
    """Return a torch tensor that shares the array's memory."""
    import torch

    name = array.dtype.name
    if name not in _NOT_IN_NUMPY:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16 if array.itemsize == 2 else np.uint8)).view(getattr(torch, name))


def count_changes(values: Iterable[Any]) -> None:
    """Tell PyTorch that its tensors among these were written in place; autograd and others count such changes."""
    from torch.autograd.graph import increment_version

    increment_version([value for value in values if is_torch(value) and not value.is_inference()])


def _from_dlpack(value: Any, name: str) -> tuple[np.ndarray, Export | None]:
    try:
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"input {name} ({type(value).__name__}) cannot be read through DLPack: {error}") from None
    namespace = getattr(value, "__array_namespace__", None)
    return array, namespace().from_dlpack if namespace else None


def _from_python(value: Any, name: str, dtype: np.dtype) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise UserError(f"input {name}: {error}") from None
    plain = array.dtype.kind in "biufc"
    if not plain or _rank(array.dtype) > _rank(dtype):
        kind = f"a {type(value).__name__}" + " of strings" * (array.dtype.kind in "US" and not isinstance(value, str))
        what = f"values of {array.dtype}" if plain else kind
        raise UserError(f"input {name} expects {dtype} values, got {what}")
    result = array.astype(dtype)
    whole = "int" in array.dtype.name and "int" in dtype.name
    if whole and not np.array_equal(result.astype(array.dtype), array):
        raise UserError(f"input {name} expects {dtype} values; {array.tolist()} do not fit")
    return result


def _rank(dtype: np.dtype) -> int:
    """Which numbers hold which: bool, integers, floats, complex."""
    kinds = ("bool", "int", "float", "complex")
    return next(i for i, kind in enumerate(kinds) if kind in dtype.name)
