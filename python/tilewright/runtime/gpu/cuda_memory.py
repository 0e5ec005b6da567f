# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of a GPU from a pool of the driver's, in the order of a stream."""

from __future__ import annotations

from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime.gpu import cuda_driver as cu

_ALL = 2**64 - 1
_OUT_OF_MEMORY = 2


class MemoryPool:
    """A pool of one device, apart from those of other libraries.

    Freed memory stays in it, and is given out again without a call to the system; `trim` gives it back.
    """

    def __init__(self, driver: cu.Driver, device: int) -> None:
        supported = c_int()
        driver.cuDeviceGetAttribute(byref(supported), cu.MEMORY_POOLS_SUPPORTED, device)
        if not supported.value:
            raise UnsupportedError("the GPU has no memory pools (a virtual GPU without them, or an old driver)")
        self._driver = driver
        self._sizes: dict[int, int] = {}
        properties = cu.MemPoolProperties(
            allocation_type=cu.MEM_ALLOCATION_TYPE_PINNED, location_type=cu.MEM_LOCATION_TYPE_DEVICE, location_id=device
        )
        self._pool = c_void_p()
        driver.cuMemPoolCreate(byref(self._pool), byref(properties))
        driver.cuMemPoolSetAttribute(self._pool, cu.MEMPOOL_ATTR_RELEASE_THRESHOLD, byref(c_uint64(_ALL)))

    def alloc(self, nbytes: int, stream: int | None) -> int:
        """Return the address of `nbytes`, at least 1.

        Raises:
            UserError: the GPU has not that much.
        """
        address = cu.c_address()
        arguments = (byref(address), max(nbytes, 1), self._pool, stream)
        code = self._driver.status("cuMemAllocFromPoolAsync", *arguments)
        if code == _OUT_OF_MEMORY:
            self._driver.cuStreamSynchronize(stream)  # what was freed is free then
            self.trim()  # and its fragments may make room
            code = self._driver.status("cuMemAllocFromPoolAsync", *arguments)
        if code:
            raise self._driver.error("cuMemAllocFromPoolAsync", code, self._situation(nbytes))
        self._sizes[address.value] = nbytes
        return address.value

    def free(self, address: int, stream: int | None) -> None:
        """Give memory back.

        Raises:
            UserError: the address is not one that `alloc` returned, or was freed before.
        """
        if self._sizes.pop(address, None) is None:
            raise UserError(f"{address:#x} was not allocated by this device, or was freed before")
        self._driver.cuMemFreeAsync(address, stream)

    def trim(self) -> None:
        """Give what is not in use back to the system."""
        self._driver.cuMemPoolTrimTo(self._pool, 0)

    @property
    def bytes(self) -> tuple[int, int]:
        """Bytes in use and bytes held."""
        return self._attribute(cu.MEMPOOL_ATTR_USED_MEM_CURRENT), self._attribute(cu.MEMPOOL_ATTR_RESERVED_MEM_CURRENT)

    def destroy(self) -> None:
        """Free all memory. No work may use it any more."""
        for address in self._sizes:
            self._driver.cuMemFreeAsync(address, None)
        self._sizes.clear()
        self._driver.cuMemPoolDestroy(self._pool)

    def _attribute(self, number: int) -> int:
        value = c_uint64()
        self._driver.cuMemPoolGetAttribute(self._pool, number, byref(value))
        return value.value

    def _situation(self, nbytes: int) -> str:
        free, total = c_size_t(), c_size_t()
        self._driver.cuMemGetInfo_v2(byref(free), byref(total))
        in_use = sum(self._sizes.values())
        return (
            f"asked for {nbytes / 1e6:.1f} MB; {free.value / 1e6:.0f} of {total.value / 1e6:.0f} MB are free, "
            f"models of this process use {in_use / 1e6:.0f} MB"
        )
