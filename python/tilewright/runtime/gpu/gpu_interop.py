# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors on a GPU, in and out without copies: of torch, and all that speaks DLPack or the CUDA array interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.dtypes import from_numpy, named, to_numpy
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime import dlpack
from tilewright.runtime.gpu.cuda import CudaDevice
from tilewright.runtime.gpu.gpu_memory import Memory, View, row_major
from tilewright.runtime.interop import is_torch

#: Names that streams have in both protocols, where they are no handles.
_LEGACY, _PER_THREAD = 1, 2


@dataclass(frozen=True)
class GpuTensor:
    """A tensor of someone else's on the GPU.

    Attributes:
        view: its elements.
        keep: what owns the memory, for as long as work uses it.
        read_only: whether it must not be written.
    """

    view: View
    keep: Any
    read_only: bool = False


class GpuArray:
    """A result on the GPU, which other libraries read through DLPack or the CUDA array interface.

    Work that makes it may still run; both protocols order the reader behind it.
    """

    def __init__(self, device: CudaDevice, view: View) -> None:
        self._device = device
        self._view = view
        #: Of the work that makes it.
        self._stream = device.stream
        #: Streams of readers, which may still read when the memory is given back.
        self._readers: set[int] = set()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self._view.sizes

    @property
    def dtype(self) -> np.dtype:
        """Element type, as NumPy names it."""
        return to_numpy(self._view.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._view.nbytes

    def numpy(self) -> np.ndarray:
        """Return a copy on the host."""
        array = np.empty(self.shape, self.dtype)
        if array.nbytes:
            with self._device.on_stream(self._stream):
                self._device.download(self._view.address, memoryview(array.reshape(-1).view(np.uint8)))
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Support ``np.asarray(result)``."""
        if copy is False:
            raise ValueError("this array lies on a GPU: NumPy needs a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array by version 3 of the CUDA array interface."""
        if self.dtype.isbuiltin != 1:
            raise AttributeError(f"the CUDA array interface has no element type {self.dtype}; use DLPack")
        self._readers.add(_LEGACY)  # where the reader works is not told: it waits for the stream named below
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._view.address if self.nbytes else 0, False),
            "strides": None,
            "version": 3,
            "stream": self._stream or _LEGACY,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return (CUDA, number of the GPU)."""
        return (dlpack.CUDA, self._device.ordinal)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule; a reader on another stream waits for the work that makes the array.

        Raises:
            BufferError: a copy or another device is asked for.
        """
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("only the memory itself can be given, on the GPU that holds it")
        if stream != -1:
            reader = _LEGACY if stream is None else stream
            if _handle(reader) != self._stream:
                with self._device.on_stream(self._stream):
                    self._device.let_wait(_handle(reader))
                self._readers.add(reader)
        return dlpack.write(
            self, self.__dlpack_device__(), self._view.address, from_numpy(self.dtype), self.shape, max_version
        )

    def __del__(self):
        if self._device.closed:
            return
        if self._readers:
            self._device.synchronize_all()
        else:  # a reader on the stream that makes it may have more work there than this device knows of
            self._device.wait_for(self._stream)

    def __repr__(self) -> str:
        """Return type, sizes and place."""
        return f"<tilewright.GpuArray {self._view.dtype}{list(self.shape)} on GPU {self._device.ordinal}>"


def is_on_gpu(value: Any) -> bool:
    """Whether a value lies in the memory of an NVIDIA GPU."""
    if isinstance(value, np.ndarray | np.generic):
        return False
    if is_torch(value):
        return value.is_cuda
    if hasattr(value, "__cuda_array_interface__"):
        return True
    kind = getattr(value, "__dlpack_device__", None)
    return kind is not None and kind()[0] in (dlpack.CUDA, dlpack.CUDA_MANAGED)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the sizes of a tensor on a GPU, of whatever library."""
    told = getattr(value, "shape", None)
    return tuple(value.__cuda_array_interface__["shape"] if told is None else told)


def read(value: Any, name: str, device: CudaDevice) -> GpuTensor:
    """Return a tensor on the GPU as it lies there; later work of `device` is ordered behind what makes it.

    Args:
        value: a torch tensor, or an object with ``__dlpack__`` or ``__cuda_array_interface__``.
        name: of the input, for errors.
        device: that will read it.

    Raises:
        UserError: it lies on another GPU, or with gaps.
        UnsupportedError: an element type that models do not have.
    """
    if is_torch(value):
        tensor, place = _from_torch(value), value.device.index
    elif hasattr(value, "__dlpack__"):
        tensor, place = _from_dlpack(value, device)
    else:
        tensor, place = _from_interface(value, device), device.ordinal
    if place != device.ordinal:
        raise UserError(f"input {name} lies on GPU {place}, the model on GPU {device.ordinal}: move one of them")
    if not tensor.view.is_contiguous:
        raise UserError(
            f"input {name} of sizes {list(tensor.view.sizes)} has strides {list(tensor.view.strides)}; models take "
            "contiguous tensors: pass a contiguous copy"
        )
    return tensor


def torch_empty(like: Any) -> Callable[[str, tuple[int, ...]], Any]:
    """Return a function that makes uninitialized torch tensors (element type, sizes) beside the tensor `like`."""
    import torch

    return lambda dtype, shape: torch.empty(shape, dtype=getattr(torch, _torch_name(dtype)), device=like.device)


def torch_from(array: GpuArray) -> Any:
    """Return a torch tensor of the array's memory."""
    import torch

    return torch.from_dlpack(array)


def current_stream(value: Any) -> int:
    """Return the handle of the stream on which torch works with a tensor's GPU."""
    import torch

    return torch.cuda.current_stream(value.device).cuda_stream


def _torch_name(dtype: str) -> str:
    return to_numpy(dtype).name


def _from_torch(value: Any) -> GpuTensor:
    dtype = named(str(value.dtype).partition(".")[2])
    if dtype is None:
        raise UnsupportedError(f"models have no element type {value.dtype}")
    view = View(Memory(None, value.data_ptr()), dtype, 0, tuple(value.shape), tuple(value.stride()))
    return GpuTensor(view, value)


def _from_dlpack(value: Any, device: CudaDevice) -> tuple[GpuTensor, int]:
    found = dlpack.read(value, device.stream or _LEGACY)
    view = View(Memory(None, found.address), found.dtype, 0, found.shape, found.strides)
    return GpuTensor(view, found, found.read_only), found.device[1]


def _from_interface(value: Any, device: CudaDevice) -> GpuTensor:
    told = value.__cuda_array_interface__
    if told.get("mask") is not None:
        raise UnsupportedError("masked arrays are not supported")
    dtype = np.dtype(told["typestr"])
    name = from_numpy(dtype)
    shape = tuple(told["shape"])
    gaps = told.get("strides")
    strides = row_major(shape) if gaps is None else tuple(step // dtype.itemsize for step in gaps)
    stream = told.get("stream")
    if stream is not None:
        device.wait_for(_handle(stream))
    address, read_only = told["data"]
    return GpuTensor(View(Memory(None, address), name, 0, shape, strides), value, read_only)


def _handle(stream: int) -> int:
    """A stream's handle from its name in the protocols.

    Raises:
        UserError: 0, which both protocols forbid.
    """
    if stream == 0:
        raise UserError("stream 0 has two meanings: say 1 for the legacy and 2 for the per-thread default stream")
    return 0 if stream == _LEGACY else stream
