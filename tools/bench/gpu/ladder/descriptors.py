# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix descriptors as the compiler emits them, read out of the PTX of a kernel that it lowered.

Probes multiply with these, so that a wrong encoder (lib/Conversion/AsyncToGPU/WgmmaOperands.cpp) shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.\w+\.(\w+)\.\w+ \{[^}]*\}, (?:\{[^}]*\}|(%rd\d+)), (%rd\d+), p"
    r"(?:, 1, 1)?((?:, [01])*);"
)
_MOVED = re.compile(r"\b(?:or\.b64|add\.s64)\s+(%rd\d+), (%rd\d+), (-?\d+);")


@dataclass(frozen=True)
class Operand:
    """A matrix descriptor as the compiler emits it, without its address, and what it adds per instruction, bytes."""

    bits: int
    advance: int
    k_major: bool


def matrix_operands(ptx: str) -> tuple[int, str, Operand | None, Operand]:
    """What the first two products of a kernel read.

    Returns:
        Columns, element type, the left operand (None: registers), the right one.

    Raises:
        ValueError: the kernel has no wgmma, or one whose descriptor is not made of constants.
    """
    found = list(_WGMMA.finditer(ptx))
    if not found:
        raise ValueError("the kernel has no wgmma")
    made = {target: (source, int(number)) for target, source, number in _MOVED.findall(ptx)}
    first, second = found[0], found[1 if len(found) > 1 else 0]
    turned = [int(digit) for digit in re.findall(r"[01]", first[6])]
    right = _operand(made, first[5], second[5], not (turned and turned[-1]))
    left = _operand(made, first[4], second[4], not (len(turned) > 1 and turned[0])) if first[4] else None
    return int(first[1]), first[3], left, right


def _operand(made: dict[str, tuple[str, int]], first: str, second: str, k_major: bool) -> Operand:
    bits, next_bits = (_constants(made, register) for register in (first, second))
    if not bits >> 32:
        raise ValueError(f"the descriptor in {first} is not made of constants")
    return Operand(bits, (next_bits - bits) % 2**64 * 16, k_major)


def _constants(made: dict[str, tuple[str, int]], register: str) -> int:
    """The sum of constants that a register is made with, without what varies."""
    total = 0
    while register in made:
        register, number = made[register]
        total += number % 2**64
        if number % 2**64 >> 32:
            break  # what is before is the address
    return total % 2**64
