# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules and kernels of the CUDA driver: loading with the assembler's log, what a kernel needs, its shared memory."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_int, c_void_p
from dataclasses import dataclass, field

from tilewright.core.errors import UserError
from tilewright.runtime.gpu import cuda_driver as cu
from tilewright.runtime.gpu.cuda_resources import Owner, Resource

_LOG_BYTES = 1 << 16
#: Dynamic shared memory that a kernel may use without asking (CUDA programming guide, "Shared Memory", 8.x and 9.0).
_DEFAULT_SHARED = 48 << 10


@dataclass(frozen=True)
class KernelInfo:
    """What the driver says of a loaded kernel.

    Attributes:
        registers: per thread.
        local_bytes: per thread, in memory: spilled registers and arrays.
        shared_bytes: per CTA, static.
        threads: of the largest CTA that it can be launched with.
    """

    registers: int
    local_bytes: int
    shared_bytes: int
    threads: int


@dataclass
class Kernel:
    """A kernel's handle; `dynamic_shared` is what the driver was told to allow so far, `residents` what it said."""

    handle: c_void_p
    name: str
    info: KernelInfo
    module: Module
    dynamic_shared: int = _DEFAULT_SHARED
    residents: dict[tuple[int, int], int] = field(default_factory=dict)


class Module(Resource):
    """Loaded code.

    Attributes:
        log: what the assembler said (empty for a cubin).
        kernels: those that were looked up, while someone has them (they keep the module).
    """

    def __init__(self, owner: Owner, image: bytes) -> None:
        super().__init__(owner, "cuModuleUnload")
        self.driver = owner.driver
        self.log = _load(self, image)
        self.kernels: weakref.WeakValueDictionary[str, Kernel] = weakref.WeakValueDictionary()


def _load(module: Module, image: bytes) -> str:
    info, errors = ctypes.create_string_buffer(_LOG_BYTES), ctypes.create_string_buffer(_LOG_BYTES)
    options = {
        cu.JIT_INFO_LOG_BUFFER: ctypes.addressof(info),
        cu.JIT_INFO_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
        cu.JIT_ERROR_LOG_BUFFER: ctypes.addressof(errors),
        cu.JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
        cu.JIT_GENERATE_LINE_INFO: 1,
    }
    code = module.driver.status(
        "cuModuleLoadDataEx",
        byref(module.handle),
        image,  # bytes objects end in NUL, as PTX must
        len(options),
        (c_int * len(options))(*options),
        (c_void_p * len(options))(*options.values()),
    )
    if code:
        raise module.driver.error("cuModuleLoadDataEx", code, errors.value.decode(errors="replace").strip())
    return info.value.decode(errors="replace").strip()


def kernel(module: Module, name: str) -> Kernel:
    """Look a kernel up, once.

    Raises:
        UserError: the module has none of that name.
    """
    known = module.kernels.get(name)
    if known is not None:
        return known
    driver, handle = module.driver, c_void_p()
    if driver.status("cuModuleGetFunction", byref(handle), module.handle, name.encode()):
        raise UserError(f"the code has no kernel {name!r}: program and code are of different models; compile it again")
    figures = [
        _attribute(driver, handle, number)
        for number in (
            cu.FUNC_NUM_REGS,
            cu.FUNC_LOCAL_SIZE_BYTES,
            cu.FUNC_SHARED_SIZE_BYTES,
            cu.FUNC_MAX_THREADS_PER_BLOCK,
        )
    ]
    found = module.kernels[name] = Kernel(handle, name, KernelInfo(*figures), module)
    return found


def allow_shared(kernel: Kernel, nbytes: int) -> None:
    """Allow a kernel `nbytes` of dynamic shared memory, which must be asked for beyond 48 KiB in all."""
    if nbytes + kernel.info.shared_bytes > kernel.dynamic_shared:
        kernel.module.driver.cuFuncSetAttribute(kernel.handle, cu.FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes)
        kernel.dynamic_shared = nbytes + kernel.info.shared_bytes


def resident(kernel: Kernel, threads: int, nbytes: int) -> int:
    """How many CTAs of so many threads, with `nbytes` of dynamic shared memory, a multiprocessor holds at a time."""
    key = threads, nbytes
    if key not in kernel.residents:
        allow_shared(kernel, nbytes)
        count = c_int()
        kernel.module.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(count), kernel.handle, threads, nbytes)
        kernel.residents[key] = count.value
    return kernel.residents[key]


def _attribute(driver: cu.Driver, handle: c_void_p, number: int) -> int:
    value = c_int()
    driver.cuFuncGetAttribute(byref(value), number, handle)
    return value.value
