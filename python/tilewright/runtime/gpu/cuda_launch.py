# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters, launches and TMA descriptors in the form that the CUDA driver reads."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_uint, c_uint64, c_void_p

from tilewright.core.errors import UserError
from tilewright.runtime.gpu import cuda_driver as cu
from tilewright.runtime.gpu import tensor_map as rules
from tilewright.runtime.gpu.cuda_module import Kernel, allow_shared
from tilewright.runtime.gpu.gpu_device import Extent


class Parameters:
    """Values of a launch in one block of memory, each aligned as its size wants (64 bytes at most), with addresses.

    The driver copies them when it gets the launch (or records it in a graph): they may go right after.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        offsets, end = [], 0
        for value in values:
            end += -end % _alignment(len(value))
            offsets.append(end)
            end += len(value)
        self._memory = ctypes.create_string_buffer(end + rules.ALIGNMENT)
        base = ctypes.addressof(self._memory)
        base += -base % rules.ALIGNMENT
        for offset, value in zip(offsets, values, strict=True):
            ctypes.memmove(base + offset, value, len(value))
        self.addresses = (c_void_p * max(len(values), 1))(*(base + offset for offset in offsets))


def _alignment(nbytes: int) -> int:
    """The largest power of two that divides the size, at most a descriptor's alignment."""
    return min(nbytes & -nbytes, rules.ALIGNMENT) or 1


def launch(
    driver: cu.Driver,
    kernel: Kernel,
    grid: Extent,
    block: Extent,
    cluster: Extent,
    shared_bytes: int,
    params: Sequence[bytes],
    stream: int,
    together: bool = False,
) -> None:
    """Start a kernel on a stream of the current context. UserError where its registers leave no room for the block."""
    info = kernel.info
    if block[0] * block[1] * block[2] > info.threads:
        what = f"kernel {kernel.name}: CTAs of {block} threads; its {info.registers} registers a thread"
        raise UserError(f"{what} leave room for {info.threads}")
    allow_shared(kernel, shared_bytes)
    config = _config(grid, block, cluster, shared_bytes, stream, together)
    values = Parameters(params)
    code = driver.status("cuLaunchKernelEx", byref(config), kernel.handle, values.addresses, None)
    if code:
        what = f"kernel {kernel.name}, grid {grid}, block {block}, cluster {cluster}, {shared_bytes} bytes shared"
        what += ", all CTAs at the same time" if together else ""
        raise driver.error("cuLaunchKernelEx", code, f"{what}, {kernel.info}")


def _config(
    grid: Extent, block: Extent, cluster: Extent, shared_bytes: int, stream: int, together: bool
) -> cu.LaunchConfig:
    wanted: dict[int, Sequence[int]] = {}
    if cluster != (1, 1, 1):
        wanted[cu.LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] = cluster
    if together:
        wanted[cu.LAUNCH_ATTRIBUTE_COOPERATIVE] = (1,)
    attributes = (cu.LaunchAttribute * max(len(wanted), 1))()
    for attribute, (number, value) in zip(attributes, wanted.items(), strict=False):
        attribute.id = number
        attribute.value[: len(value)] = value
    extents = (c_uint * 3)(*grid), (c_uint * 3)(*block)
    return cu.LaunchConfig(*extents, shared_bytes, stream or None, attributes, len(wanted))


def resident_clusters(driver: cu.Driver, kernel: Kernel, block: Extent, cluster: Extent, shared_bytes: int) -> int:
    """How many clusters of a kernel the GPU holds at a time: fewer than its CTAs would be, as a GPC's units are cut."""
    allow_shared(kernel, shared_bytes)
    count = c_int()
    config = _config(cluster, block, cluster, shared_bytes, 0, False)
    driver.cuOccupancyMaxActiveClusters(byref(count), kernel.handle, byref(config))
    return count.value


def encode_tensor_map(
    driver: cu.Driver,
    element: str,
    address: int,
    dims: Sequence[int],
    strides_bytes: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    fill: str,
    steps: Sequence[int] = (),
) -> bytes:
    """Return a descriptor; the arguments satisfy :func:`tilewright.runtime.gpu.tensor_map.check`.

    Lines of 128 bytes are brought to L2: boxes are read by several CTAs, and shorter lines waste what memory sends.
    """
    memory = ctypes.create_string_buffer(rules.SIZE + rules.ALIGNMENT)
    place = ctypes.addressof(memory)
    place += -place % rules.ALIGNMENT
    rank = len(dims)
    driver.cuTensorMapEncodeTiled(
        place,
        cu.TENSOR_MAP_TYPES[element],
        rank,
        address,
        (c_uint64 * rank)(*dims),
        (c_uint64 * max(rank - 1, 1))(*strides_bytes),
        (c_uint * rank)(*box),
        (c_uint * rank)(*(steps or [1] * rank)),
        0,  # no interleave
        cu.TENSOR_MAP_SWIZZLES[swizzle],
        cu.TENSOR_MAP_L2_PROMOTION_128B,
        cu.TENSOR_MAP_FILLS[fill],
    )
    return ctypes.string_at(place, rules.SIZE)
