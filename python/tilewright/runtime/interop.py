# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries: torch tensors and all that speaks DLPack, in without copies, and out as they came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import UserError

#: Turns a NumPy result into the kind that the inputs had.
Export = Callable[[np.ndarray], Any]


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
    if type(value).__module__.partition(".")[0] == "torch" or _is_torch_subclass(value):
        return _from_torch(value, name)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name)
    return _from_python(value, name, dtype), None


def _is_torch_subclass(value: Any) -> bool:
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in type(value).__mro__)


def _from_torch(value: Any, name: str) -> tuple[np.ndarray, Export]:
    import torch

    if value.device.type != "cpu":
        raise UserError(f"input {name} is on device {value.device}; this model runs on the CPU: pass {name}.cpu()")
    value = value.detach()
    if value.dtype == torch.bfloat16:
        import ml_dtypes

        return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16), _to_torch
    return value.numpy(), _to_torch


def _to_torch(array: np.ndarray) -> Any:
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


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
    if array.dtype.kind not in "biuf" or not np.can_cast(array.dtype, dtype, "same_kind"):
        what = f"values of {array.dtype}" if array.dtype.kind in "biuf" else f"a {type(value).__name__}"
        raise UserError(f"input {name} expects {dtype} values, got {what}")
    return array.astype(dtype)
