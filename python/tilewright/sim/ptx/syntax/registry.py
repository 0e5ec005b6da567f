# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which decoder belongs to which mnemonic: the extension point of the emulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.core.errors import UnsupportedError

if TYPE_CHECKING:
    from tilewright.sim.ptx.program import Program
    from tilewright.sim.ptx.sync.step import Step, Wait
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.tree import Instruction

    Run = Callable[[Step], Wait | None]
    Decode = Callable[[Instruction, Decoder], Run]


@dataclass(frozen=True)
class Entry:
    """A registered family: how it is decoded, and which lanes must run it together.

    Attributes:
        decode: makes the run function of one instruction.
        sync: 1 (any lanes), 32 (whole warps), 128 (whole warpgroups).
        spin: programs poll with it: lanes that ran it let others go first.
        pure: a function of its operands alone: undefined operands make undefined results, and that is no error yet.
    """

    decode: Decode
    sync: int = 1
    spin: bool = False
    pure: bool = False


OPCODES: dict[str, Entry] = {}

#: called with each decoded program; they may replace the run functions of `program.ops`
INSTRUMENTS: list[Callable[[Program], None]] = []


def opcode(*prefixes: str, sync: int = 1, spin: bool = False, pure: bool = False) -> Callable[[Decode], Decode]:
    """Register a decoder for mnemonics that begin with one of `prefixes` (whole dotted parts; the longest prefix wins).

    Args:
        prefixes: such as "ldmatrix" or "cp.async.bulk.tensor".
        sync: how many lanes must run it in step: 1, 32 (a warp) or 128 (a warpgroup).
        spin: whether waiting loops are made of it (a load with acquire, nanosleep): lanes that ran it step back.
        pure: whether it is a function of its operands alone, see `definedness`.

    A run function may have attributes of its own that go before these: `sync`, `spin`, and `members`, the reader of a
    member mask: then the lanes that the mask names run it together, be it a part of a warp.
    """

    def register(decode: Decode) -> Decode:
        for prefix in prefixes:
            if prefix in OPCODES:
                raise ValueError(f"two decoders for {prefix}")
            OPCODES[prefix] = Entry(decode, sync, spin, pure)
        return decode

    return register


def entry(instruction: Instruction) -> Entry:
    """The family of an instruction.

    Raises:
        UnsupportedError: the emulator does not know it.
    """
    parts = instruction.parts
    for count in range(len(parts), 0, -1):
        found = OPCODES.get(".".join(parts[:count]))
        if found:
            return found
    raise UnsupportedError(
        f"{instruction.where()}: the emulator does not know '{instruction.op}' ({len(OPCODES)} families are "
        "registered; add a decoder in python/tilewright/sim/ptx/ops)",
        ir=instruction.text,
    )
