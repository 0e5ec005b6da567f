# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of other libraries through DLPack capsules, by ctypes: no compiled part, any Python.

Source: DLPack 1.1, ``dlpack.h`` and its Python specification. Both forms of capsules are read and written, those with a
version (what a consumer asks for by ``max_version``) and the older ones.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import UnsupportedError, UserError

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_VERSION = (1, 0)
_READ_ONLY = 1

#: (code, bits) of DLDataType, for each element type.
TYPES = {
    **{f"i{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": (2, bits) for bits in (16, 32, 64)},
    "bf16": (4, 16),
    "c64": (5, 64),
    "c128": (5, 128),
    "i1": (6, 8),
    "f8e4m3fn": (10, 8),
    "f8e4m3fnuz": (11, 8),
    "f8e5m2": (12, 8),
    "f8e5m2fnuz": (13, 8),
    "f8e8m0fnu": (14, 8),
}
_NAMES = {value: name for name, value in TYPES.items()}


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", _DELETER)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", _DELETER),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    ]


# Capsules keep pointers to their names: these objects live on.
_PLAIN, _WITH_VERSION = b"dltensor", b"dltensor_versioned"
_FORMS = {_PLAIN: _Managed, _WITH_VERSION: _Versioned}
_USED = {name: b"used_" + name for name in _FORMS}


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = ctypes.pythonapi[name]
    function.restype, function.argtypes = result, arguments
    return function


_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, c_char_p)
_get_pointer = _function("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
_set_name = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, c_char_p)
_new = _function("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
# A destructor runs while its capsule goes away: it gets the address only and must not make a reference.
# (`pythonapi[...]` returns a new object at each look-up, so the same function may have two signatures.)
_dying_is_valid = _function("PyCapsule_IsValid", ctypes.c_int, c_void_p, c_char_p)
_dying_pointer = _function("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)


@dataclass
class Imported:
    """Memory of another library, given back with the last reference.

    Attributes:
        device: (type, number), as ``__dlpack_device__``.
        address: of element 0.
        dtype: element type by its name in :mod:`tilewright.core.dtypes`.
        shape: sizes.
        strides: in elements.
        read_only: whether it must not be written.
    """

    device: tuple[int, int]
    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    read_only: bool
    _release: Callable[[], None]

    def __del__(self):
        self._release()


def read(value: Any, stream: int | None = None) -> Imported:
    """Take an object's tensor through ``__dlpack__``, without a copy.

    Args:
        value: the object.
        stream: of the reader, for tensors of a GPU: its handle, 1 for the legacy default stream.

    Raises:
        UserError: the object refuses.
        UnsupportedError: an element type that models do not have.
    """
    options = {} if stream is None else {"stream": stream}
    try:
        try:
            capsule = value.__dlpack__(max_version=_VERSION, **options)
        except TypeError:  # from before DLPack 1.0
            capsule = value.__dlpack__(**options)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"a {type(value).__name__} cannot be read through DLPack: {error}") from None
    name = next((name for name in _FORMS if _is_valid(capsule, name)), None)
    if name is None:
        raise UserError(f"__dlpack__ of {type(value).__name__} returned no capsule of a tensor")
    managed = _FORMS[name].from_address(_get_pointer(capsule, name))
    _set_name(capsule, _USED[name])
    return _imported(managed)


def _imported(managed: Any) -> Imported:
    tensor, place = managed.tensor, ctypes.addressof(managed)

    def release() -> None:
        if managed.deleter:
            managed.deleter(place)

    shape = tuple(tensor.shape[: tensor.ndim])
    dtype = _NAMES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        kind = (tensor.code, tensor.bits, tensor.lanes)
        release()
        raise UnsupportedError(f"DLPack element type (code, bits, lanes) = {kind} is not one of models: {list(TYPES)}")
    return Imported(
        (tensor.device_type, tensor.device_id),
        (tensor.data or 0) + tensor.byte_offset,
        dtype,
        shape,
        tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _contiguous(shape),
        isinstance(managed, _Versioned) and bool(managed.flags & _READ_ONLY),
        release,
    )


def write(
    owner: Any,
    device: tuple[int, int],
    address: int,
    dtype: str,
    shape: tuple[int, ...],
    max_version: tuple[int, int] | None = None,
) -> Any:
    """Return a capsule of contiguous memory that `owner` keeps alive.

    Raises:
        UnsupportedError: DLPack has no such element type.
    """
    if dtype not in TYPES:
        raise UnsupportedError(f"DLPack has no element type {dtype}")
    versioned = max_version is not None and max_version[0] >= _VERSION[0]
    managed = _Versioned(*_VERSION) if versioned else _Managed()
    rank = len(shape)
    numbers = (c_int64 * max(2 * rank, 1))(*shape, *_contiguous(shape))
    start = ctypes.addressof(numbers)
    tensor = managed.tensor
    tensor.data, tensor.device_type, tensor.device_id, tensor.ndim = address or None, *device, rank
    tensor.code, tensor.bits, tensor.lanes = *TYPES[dtype], 1
    tensor.shape = ctypes.cast(start, POINTER(c_int64))
    tensor.strides = ctypes.cast(start + 8 * rank, POINTER(c_int64))
    managed.deleter = _delete
    place = ctypes.addressof(managed)
    _exported[place] = (managed, numbers, owner)
    return _new(place, _WITH_VERSION if versioned else _PLAIN, ctypes.cast(_destroy, c_void_p))


#: What consumers hold, by the address of its structure.
_exported: dict[int, tuple[Any, ...]] = {}


@_DELETER
def _delete(place):
    _exported.pop(place, None)


@_DELETER
def _destroy(capsule):
    """Free what a capsule holds that nobody consumed."""
    for name in _FORMS:
        if _dying_is_valid(capsule, name):
            _exported.pop(_dying_pointer(capsule, name), None)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))
