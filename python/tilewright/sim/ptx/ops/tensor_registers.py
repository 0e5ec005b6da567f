# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16 bits between shared memory and the registers of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.numbers.fragments import matrix_registers, matrix_rows
from tilewright.sim.ptx.syntax.registry import opcode

if TYPE_CHECKING:
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.registry import Run
    from tilewright.sim.ptx.syntax.tree import Instruction, Operand

_MODIFIERS = ("sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta", "b16")


def _count(ins: Instruction, decode: Decoder, vector: Operand) -> int:
    """Number of matrices; checks the modifiers (8-bit and 6-bit forms are of sm_100) and the vector's length."""
    decode.known(*_MODIFIERS)
    counts = [int(part[1:]) for part in ins.parts if part in ("x1", "x2", "x4")]
    if len(counts) != 1 or not ins.has("m8n8") or not ins.has("b16"):
        raise decode.unsupported("only matrices .m8n8 of .b16, .x1, .x2 or .x4 of them, are known")
    found = len(vector.items) if hasattr(vector, "items") else 1
    if found != counts[0]:
        decode.wrong(f".x{counts[0]} goes with {counts[0]} registers, not {found}")
    return counts[0]


def _space(ins: Instruction) -> str:
    return "shared" if ins.has("shared") or ins.has("shared::cta") else "generic"


def _row_lanes(step: Step, count: int) -> tuple[Step, np.ndarray]:
    """The lanes that give the rows' addresses, the first 8 per matrix of each warp, and their mask."""
    mask = (step.ids & 31) < 8 * count
    return (step if count == 4 else step.narrowed(mask)), mask


@opcode("ldmatrix", sync=32)
def ldmatrix(ins: Instruction, decode: Decoder) -> Run:
    """Loads 1, 2 or 4 matrices of 8 rows of 16 bytes: lane 8 i + r gives the address of row r of matrix i."""
    decode.arity(2)
    count = _count(ins, decode, ins.args[0])
    transposed, space = ins.has("trans"), _space(ins)
    address, write = decode.address(ins.args[1]), decode.targets(ins.args[0], "b32")

    def run(step: Step) -> None:
        lanes, mask = _row_lanes(step, count)
        words = step.machine.load(lanes, space, address(step)[mask], 8, 2)
        rows = words.view(np.uint16).reshape(-1, count, 8, 8)
        write(step, matrix_registers(rows, transposed).reshape(step.n, count))

    return run


@opcode("stmatrix", sync=32)
def stmatrix(ins: Instruction, decode: Decoder) -> Run:
    """Stores 1, 2 or 4 matrices: the inverse of ldmatrix."""
    decode.arity(2)
    count = _count(ins, decode, ins.args[1])
    transposed, space = ins.has("trans"), _space(ins)
    address, read = decode.address(ins.args[0]), decode.sources(ins.args[1], "b32")

    def run(step: Step) -> None:
        lanes, mask = _row_lanes(step, count)
        rows = matrix_rows(read(step).reshape(-1, 32, count), transposed)
        words = np.ascontiguousarray(rows).view(np.uint64).reshape(-1, 2)
        step.machine.store(lanes, space, address(step)[mask], words)

    return run


@opcode("movmatrix", sync=32)
def movmatrix(ins: Instruction, decode: Decoder) -> Run:
    """Transposes one matrix that a warp holds in registers."""
    decode.arity(2)
    decode.known("sync", "aligned", "m8n8", "trans", "b16")
    read, write = decode.source(ins.args[1], "b32"), decode.target(ins.args[0], "b32")

    def run(step: Step) -> None:
        rows = matrix_rows(step.full(read(step)).reshape(-1, 32, 1), False)
        write(step, np.ascontiguousarray(matrix_registers(rows, True)).reshape(step.n))

    return run
