# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mma.sync and mma.sp.sync: products of small matrices by a warp.

Source: PTX ISA 9.7.14.5 (mma) and 9.7.14.6 (mma.sp). The shapes of Volta (m8n8k4 of f16) and those of sm_100 and later
(.kind, .block_scale) are not known here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.numbers import fragments
from tilewright.sim.ptx.numbers.element_types import pack_sums, unpack, unpack_sums
from tilewright.sim.ptx.numbers.products import Product
from tilewright.sim.ptx.ops.tensor_sparse import Metadata
from tilewright.sim.ptx.syntax.registry import opcode

if TYPE_CHECKING:
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.registry import Run
    from tilewright.sim.ptx.syntax.tree import Instruction, Operand

_SHAPE = re.compile(r"m(8|16)n8k(\d+)$")
_DENSE_16 = {1: (128, 256), 4: (32, 64), 8: (16, 32), 16: (8, 16), 32: (4, 8), 64: (4, 8, 16)}
_DENSE_8 = {1: (128,), 4: (32,), 8: (16,), 64: (4,)}
_SPARSE = {4: (64, 128), 8: (32, 64), 16: (16, 32), 32: (8, 16)}


def _product(ins: Instruction, decode: Decoder) -> tuple[Product, int, int]:
    """Types, rows and depth of an instruction; raises for shapes and types that PTX does not have."""
    shapes = [m for part in ins.parts if (m := _SHAPE.match(part))]
    if len(shapes) != 1 or not (ins.has("row") and ins.has("col")):
        raise decode.unsupported("only .m16n8 and .m8n8 shapes with .row.col are known")
    rows, depth = int(shapes[0][1]), int(shapes[0][2])
    after = [part for part in ins.parts[ins.parts.index("col") + 1 :] if part != "satfinite"]
    if len(after) not in (4, 6) or after[0] != after[3]:
        raise decode.unsupported("modifiers other than .dtype.atype.btype.ctype are not known")
    bitwise = after[4] if len(after) == 6 and after[5] == "popc" else "".join(after[4:])
    try:
        product = Product.make(after[0], after[1], after[2], ins.has("satfinite"), bitwise)
    except ValueError as error:
        raise decode.unsupported(str(error)) from None
    table = _SPARSE if ins.op.startswith("mma.sp") else _DENSE_16 if rows == 16 else _DENSE_8
    if depth not in table.get(product.a.bits, ()):
        raise decode.unsupported(f"no shape .{shapes[0][0]} of .{after[1]}")
    return product, rows, depth


def _registers(decode: Decoder, operand: Operand, bits: int, word: str, what: str):
    """Reader of an operand's registers, whose number is checked."""
    found = len(operand.items) if hasattr(operand, "items") else 1
    expected = bits // (64 if word == "b64" else 32)
    if found != expected:
        decode.wrong(f"{what} has {expected} registers, not {found}")
    return decode.sources(operand, word)


@opcode("mma.sync", sync=32)
def mma(ins: Instruction, decode: Decoder) -> Run:
    """d = a * b + c by each warp."""
    decode.arity(4)
    product, rows, depth = _product(ins, decode)
    word, sums = _words(product)
    lane_bits = product.a.bits * depth // 32
    read_a = _registers(decode, ins.args[1], rows * lane_bits, word, "a")
    read_b = _registers(decode, ins.args[2], 8 * lane_bits, word, "b")
    read_c = _registers(decode, ins.args[3], rows * 8 * _sum_bits(product) // 32, sums, "c")
    write = decode.targets(ins.args[0], sums)

    def run(step: Step) -> None:
        a = fragments.a_matrix(unpack(_warps(read_a(step)), product.a), rows)
        _finish(step, product, a, rows, read_b, read_c, write)

    return run


@opcode("mma.sp", "mma.sp::ordered_metadata", sync=32)
def mma_sparse(ins: Instruction, decode: Decoder) -> Run:
    """d = a * b + c where half of a's elements are zeros, left out, and metadata says where the others belong."""
    decode.arity(6)
    product, rows, depth = _product(ins, decode)
    if product.a.bits == 4:
        raise decode.unsupported("sparse products of 4-bit elements are not known")
    word, sums = _words(product)
    lane_bits = product.a.bits * depth // 32
    read_a = _registers(decode, ins.args[1], rows * lane_bits // 2, word, "a")
    read_b = _registers(decode, ins.args[2], 8 * lane_bits, word, "b")
    read_c = _registers(decode, ins.args[3], rows * 8 * _sum_bits(product) // 32, sums, "c")
    ordered = "ordered_metadata" in ins.op
    metadata = Metadata.of(decode, (ins.args[4], ins.args[5]), depth, product.a.bits, ordered)
    write = decode.targets(ins.args[0], sums)

    def run(step: Step) -> None:
        stored = fragments.a_matrix(unpack(_warps(read_a(step)), product.a), rows)
        _finish(step, product, metadata.expand(step, stored), rows, read_b, read_c, write)

    return run


def _words(product: Product) -> tuple[str, str]:
    """Types of the registers of operands and of accumulators."""
    return ("b64" if product.a.bits == 64 else "b32"), ("b64" if product.accumulator == "f64" else "b32")


def _sum_bits(product: Product) -> int:
    return {"f16": 16, "f64": 64}.get(product.accumulator, 32)


def _warps(registers: np.ndarray) -> np.ndarray:
    return registers.reshape(-1, 32, registers.shape[1])


def _finish(step: Step, product: Product, a: np.ndarray, rows: int, read_b, read_c, write) -> None:
    b = fragments.b_matrix(unpack(_warps(read_b(step)), product.b))
    c = fragments.c_matrix(unpack_sums(_warps(read_c(step)), product.accumulator), rows)
    d = product.multiply(a, b, c)
    if step.machine.trace is not None:
        step.machine.trace.product(step.ins, 2 * a.size * 8)
    registers = pack_sums(fragments.c_fragment(d), product.accumulator)
    write(step, registers.reshape(step.n, -1))
