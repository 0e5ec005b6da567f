# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of the matrix units: what the bits of a register's elements stand for.

Matrix instructions take elements of 1 to 64 bits, packed low to high into registers (PTX ISA 9.7.14.2, "Matrix data
types"). Here they become arrays in which a product is exact: two elements of at most 11 significant bits have a product
of at most 22, which float32 holds; a sum of such products is rounded as float32 rounds. Whole numbers of up to 8 bits
are float32 as well: the largest sum, 255 * 255 * 128, is below 2**24, so that the fast float32 product is exact too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tilewright.sim.ptx.syntax import types


@dataclass(frozen=True)
class ElementType:
    """One type of a matrix instruction's operand.

    Args:
        name: as PTX spells it, without the dot.
        bits: bits of one element in a register or in memory.
        is_integer: whole numbers, whose sums are 32-bit integers.
    """

    name: str
    bits: int
    is_integer: bool = False

    @property
    def per_register(self) -> int:
        """Elements in a 32-bit register (1 for f64, whose registers have 64 bits)."""
        return max(1, 32 // self.bits)

    @property
    def storage(self) -> type:
        """The unsigned NumPy type that holds one element in memory (bytes for elements below 8 bits)."""
        return {64: np.uint64, 32: np.uint32, 16: np.uint16}.get(self.bits, np.uint8)


ELEMENT_TYPES = {
    **{name: ElementType(name, 8 * types.size(name)) for name in "f16 bf16 tf32 f32 f64 e4m3 e5m2".split()},
    **{name: ElementType(name, int(name[1:]), True) for name in "s8 u8 s4 u4 b1 s32".split()},
}

_TF32_MASK = np.uint32(0xFFFFE000)


@cache
def _byte_table(name: str) -> np.ndarray:
    """Values of all 256 bytes of an 8-bit type, float32."""
    codes = np.arange(256, dtype=np.uint8)
    return codes.view(types.NUMPY[name]).astype(np.float32)


def decode(codes: np.ndarray, element: ElementType) -> np.ndarray:
    """Values of elements of at least 8 bits, given as unsigned numbers of their width.

    tf32 drops the low 13 bits of a float32, as the matrix unit does. Returns float32 (float64 for f64).
    """
    name = element.name
    if name == "bf16":
        return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if name == "f16":
        return codes.view(np.float16).astype(np.float32)
    if name == "tf32":
        return (codes & _TF32_MASK).view(np.float32)
    if name in ("f32", "f64"):
        return codes.view(types.NUMPY[name])
    return _byte_table(name)[codes]


def unpack(registers: np.ndarray, element: ElementType) -> np.ndarray:
    """Values packed in registers: ``(..., R)`` of uint32 (uint64 for f64) to ``(..., R, elements per register)``."""
    registers = np.ascontiguousarray(registers)
    if element.bits >= 32:
        return decode(registers, element)[..., None]
    if element.bits >= 8:
        parts = registers.view(element.storage).reshape(*registers.shape, element.per_register)
        return decode(parts, element)
    shifts = np.arange(element.per_register, dtype=np.uint32) * np.uint32(element.bits)
    codes = (registers[..., None] >> shifts) & np.uint32((1 << element.bits) - 1)
    if element.name == "s4":
        return ((codes ^ 8).astype(np.int32) - 8).astype(np.float32)
    return codes.astype(np.float32)


def pack_sums(values: np.ndarray, name: str) -> np.ndarray:
    """Accumulators as registers: ``(..., n)`` values to ``(..., registers)`` of uint32 (uint64 for f64).

    ``f16`` rounds to nearest even and packs two in a register; ``s32`` expects 32-bit integers.
    """
    if name == "f16":
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values.astype(np.float16)).view(np.uint32)
    plain = np.ascontiguousarray(values.astype(types.NUMPY[name], copy=False))
    return plain.view(types.WORDS[types.size(name)])


def unpack_sums(registers: np.ndarray, name: str) -> np.ndarray:
    """Accumulators from registers: the inverse of :func:`pack_sums`, as float32, float64 or int32."""
    registers = np.ascontiguousarray(registers)
    if name == "f16":
        return registers.view(np.float16).astype(np.float32)
    return registers.view(types.NUMPY[name])
