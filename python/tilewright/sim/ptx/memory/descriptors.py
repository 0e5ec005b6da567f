# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix descriptors: the 64 bits by which a wgmma finds an operand in shared memory.

Source: PTX ISA 9.7.15.5.1.2, "Shared memory matrix layout" (canonical layouts, strides, descriptor format).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.sim.ptx.memory.swizzle import swizzle

_SWIZZLE_OF_CODE = {0: 0, 1: 128, 2: 64, 3: 32}
_CODE_OF_SWIZZLE = {mode: code for code, mode in _SWIZZLE_OF_CODE.items()}
_REPEAT = 1024  # every swizzle pattern repeats after that many bytes
_RESERVED = ((1 << 16) - (1 << 14)) | ((1 << 32) - (1 << 30)) | ((1 << 49) - (1 << 46)) | ((1 << 62) - (1 << 52))


@dataclass(frozen=True)
class MatrixDescriptor:
    """The fields of a matrix descriptor, in bytes.

    Args:
        address: start of the matrix in the shared window, a multiple of 16 below 2**18.
        leading: leading-dimension byte offset.
        stride: stride-dimension byte offset.
        base_offset: row of the swizzle pattern at which the matrix starts, 0 if aligned to the pattern.
        swizzle: 0, 32, 64 or 128.
    """

    address: int
    leading: int
    stride: int
    base_offset: int
    swizzle: int

    @staticmethod
    def decode(bits: int) -> MatrixDescriptor:
        """The descriptor in 64 bits. Raises ValueError where bits that must be zero are set."""
        if bits & _RESERVED:
            raise ValueError(f"matrix descriptor {bits:#018x} has bits set outside its fields ({bits & _RESERVED:#x})")
        return MatrixDescriptor(
            address=(bits & 0x3FFF) << 4,
            leading=((bits >> 16) & 0x3FFF) << 4,
            stride=((bits >> 32) & 0x3FFF) << 4,
            base_offset=(bits >> 49) & 7,
            swizzle=_SWIZZLE_OF_CODE[bits >> 62],
        )

    def encode(self) -> int:
        """The 64 bits of the descriptor."""
        fields = (self.address & 0x3FFFF) >> 4 | (self.leading >> 4) << 16 | (self.stride >> 4) << 32
        return fields | self.base_offset << 49 | _CODE_OF_SWIZZLE[self.swizzle] << 62

    def addresses(self, outer: int, depth: int, element_bytes: int, k_major: bool = True) -> np.ndarray:
        """Byte address of each element: ``(outer, depth)``, outer = rows of A or columns of B, depth = k.

        Args:
            outer: extent along m or n.
            depth: extent along k.
            element_bytes: 1, 2 or 4.
            k_major: whether elements that follow each other along k do so in memory; the other order exists for
                16-bit elements only.
        """
        low = self.address % _REPEAT
        strides = (self.leading, self.stride, self.base_offset, self.swizzle)
        return self.address - low + _offsets(low, *strides, outer, depth, element_bytes, k_major)

    def chunks(self, outer: int, depth: int, element_bytes: int, k_major: bool = True) -> np.ndarray:
        """Addresses of the operand's 16-byte chunks, flat, in the order of its elements (k fastest if k_major).

        Not k_major: the order is (outer / 8, depth), each chunk eight elements along m or n.
        """
        low = self.address % _REPEAT
        strides = (self.leading, self.stride, self.base_offset, self.swizzle)
        return self.address - low + _chunk_offsets(low, *strides, outer, depth, element_bytes, k_major)


@lru_cache(maxsize=1024)
def _chunk_offsets(low, leading, stride, base_offset, mode, outer, depth, size, k_major) -> np.ndarray:
    found = _offsets(low, leading, stride, base_offset, mode, outer, depth, size, k_major)
    chunks = found[:, :: 16 // size] if k_major else found[:: 16 // size, :]
    offsets = np.ascontiguousarray(chunks).ravel()
    offsets.setflags(write=False)
    return offsets


@lru_cache(maxsize=1024)
def _offsets(low, leading, stride, base_offset, mode, outer, depth, size, k_major) -> np.ndarray:
    """Addresses of a matrix that starts at ``low`` bytes after a multiple of the swizzle's period."""
    rows, columns = np.arange(outer)[:, None], np.arange(depth)[None, :]
    plain = _k_major if k_major else _mn_major
    offsets = swizzle(low + plain(rows, columns, leading, stride, mode, size), mode, base_offset)
    offsets.setflags(write=False)
    return offsets


def _k_major(rows, columns, leading, stride, mode, size):
    """((8,m),(T,2k)):((1T,SBO),(1,LBO)) without a swizzle, ((8,m),(T,2k)):((qT,SBO),(1,T)) with one of 16 q bytes."""
    at = columns * size
    if mode == 0:
        return rows % 8 * 16 + rows // 8 * stride + at // 16 * leading + at % 16
    return rows % 8 * mode + rows // 8 * stride + at


def _mn_major(rows, columns, leading, stride, mode, size):
    """((T,1,m),(8,k)):((1,T,SBO),(1T,LBO)) without a swizzle, ((T,q,m),(8,k)):((1,T,LBO),(qT,SBO)) with one."""
    at = rows * size
    if mode == 0:
        return at % 16 + at // 16 * stride + columns % 8 * 16 + columns // 8 * leading
    return at % mode + at // mode * leading + columns % 8 * mode + columns // 8 * stride
