# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libcuda through ctypes: the signatures and structures that the run-time uses, and errors as exceptions.

Source: CUDA driver API 13.0 (``cuda.h``). Every function here exists since driver 525 (CUDA 12.0); versioned names are
those that ``cuda.h`` maps the plain ones to. Where a toolkit is installed, a test compares all of it with ``cuda.h``.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

from tilewright.core import config
from tilewright.core.errors import UserError
from tilewright.runtime.gpu import cuda_errors

#: Addresses in device memory (CUdeviceptr).
c_address = c_uint64

# CUdevice_attribute
MAX_THREADS_PER_BLOCK = 1
MAX_GRID_DIM_X = 5
MULTIPROCESSOR_COUNT = 16
COMPUTE_CAPABILITY_MAJOR = 75
COMPUTE_CAPABILITY_MINOR = 76
MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
MEMORY_POOLS_SUPPORTED = 115
CLUSTER_LAUNCH = 120
# CUfunction_attribute
FUNC_MAX_THREADS_PER_BLOCK = 0
FUNC_SHARED_SIZE_BYTES = 1
FUNC_LOCAL_SIZE_BYTES = 3
FUNC_NUM_REGS = 4
FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
# CUjit_option
JIT_INFO_LOG_BUFFER = 3
JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4
JIT_ERROR_LOG_BUFFER = 5
JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
JIT_GENERATE_LINE_INFO = 13
# CUlaunchAttributeID
LAUNCH_ATTRIBUTE_COOPERATIVE = 2
LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4
# others
STREAM_NON_BLOCKING = 1
STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
MEM_ALLOCATION_TYPE_PINNED = 1
MEM_LOCATION_TYPE_DEVICE = 1
MEMPOOL_ATTR_RELEASE_THRESHOLD = 4
MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5
MEMPOOL_ATTR_USED_MEM_CURRENT = 7
ERROR_NOT_READY = 600
# CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
TENSOR_MAP_TYPES = {
    **{name: 0 for name in ("u8", "i8", "i1", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu")},
    **{"u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9},
}
TENSOR_MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
TENSOR_MAP_L2_PROMOTION_128B = 2
TENSOR_MAP_FILLS = {"zero": 0, "nan": 1}


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id and a union of 64 bytes, of which clusters use three words."""

    _fields_ = [("id", c_int), ("pad", c_ubyte * 4), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig. `grid` counts CTAs."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


class MemPoolProperties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = [
        ("allocation_type", c_int),
        ("handle_types", c_int),
        ("location_type", c_int),
        ("location_id", c_int),
        ("security", c_void_p),
        ("max_size", c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", c_ubyte * 54),
    ]


_pointer = POINTER(c_void_p)
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (_pointer, c_int),
    "cuDevicePrimaryCtxRelease_v2": (c_int,),
    "cuCtxGetCurrent": (_pointer,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuModuleLoadDataEx": (_pointer, c_char_p, c_uint, POINTER(c_int), _pointer),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (_pointer, c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemPoolCreate": (_pointer, POINTER(MemPoolProperties)),
    "cuMemPoolDestroy": (c_void_p,),
    "cuMemPoolSetAttribute": (c_void_p, c_int, c_void_p),
    "cuMemPoolGetAttribute": (c_void_p, c_int, c_void_p),
    "cuMemPoolTrimTo": (c_void_p, c_size_t),
    "cuMemAllocFromPoolAsync": (POINTER(c_address), c_size_t, c_void_p, c_void_p),
    "cuMemFreeAsync": (c_address, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_address, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_address, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_address, c_address, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_address, c_ubyte, c_size_t, c_void_p),
    "cuTensorMapEncodeTiled": (
        c_void_p,
        c_int,
        c_uint,
        c_void_p,
        POINTER(c_uint64),
        POINTER(c_uint64),
        POINTER(c_uint),
        POINTER(c_uint),
        c_int,
        c_int,
        c_int,
        c_int,
    ),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), c_void_p, c_int, c_size_t),
    "cuOccupancyMaxActiveClusters": (POINTER(c_int), c_void_p, POINTER(LaunchConfig)),
    "cuLaunchKernelEx": (POINTER(LaunchConfig), c_void_p, _pointer, _pointer),
    "cuStreamCreate": (_pointer, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, _pointer),
    "cuEventCreate": (_pointer, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventQuery": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuGraphInstantiateWithFlags": (_pointer, c_void_p, ctypes.c_ulonglong),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
}


class Driver:
    """The loaded library. ``driver.cuInit(0)`` and all others raise what they return; see `driver()`."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise UserError(
                f"cannot load the CUDA driver ({error}): install NVIDIA's driver (535 or newer), set "
                f"{config.libcuda.name} to its libcuda, or use emulate=True, which needs no GPU"
            ) from None
        for name, arguments in PROTOTYPES.items():
            setattr(self, name, self._bind(path, name, arguments))
        self.cuInit(0)

    def __getattr__(self, name: str) -> Any:  # for type checkers: the functions are set in the constructor
        raise AttributeError(f"{name} is not in the table of prototypes")

    def _bind(self, path: str, name: str, arguments: tuple[Any, ...]) -> Any:
        try:
            function = self._library[name]
        except AttributeError:
            raise UserError(f"{path} has no {name}: install NVIDIA's driver 535 (CUDA 12.2) or newer") from None
        function.argtypes = arguments
        function.restype = c_int

        def call(*values: Any) -> None:
            code = function(*values)
            if code:
                raise self.error(name, code)

        return call

    def status(self, name: str, *values: Any) -> int:
        """Call a function and return its code instead of raising it."""
        return self._library[name](*values)

    def error(self, name: str, code: int, detail: str = "") -> Exception:
        """Return the exception of a code that a function returned."""
        texts = []
        for query in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            known = self._library[query](code, ctypes.byref(text)) == 0 and text.value is not None
            texts.append((text.value or b"").decode() if known else f"code {code}")
        return cuda_errors.make(name, code, texts[0], texts[1], detail)

    @property
    def version(self) -> tuple[int, int]:
        """The newest CUDA version that the driver supports."""
        number = c_int()
        self.cuDriverGetVersion(ctypes.byref(number))
        return number.value // 1000, number.value % 1000 // 10


def library_path() -> str:
    """Return the name or path by which libcuda is loaded."""
    return config.libcuda.get() or ("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


_lock = threading.Lock()


def driver() -> Driver:
    """Return the driver, loaded and initialized once per process and path.

    Raises:
        UserError: no driver, one that is too old, or no GPU.
    """
    with _lock:
        return _load(library_path())


@functools.cache
def _load(path: str) -> Driver:
    return Driver(path)
