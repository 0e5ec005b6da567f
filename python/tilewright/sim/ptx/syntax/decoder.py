# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands as functions of a step: reading and writing registers by PTX's rules of sizes and signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.special import SPECIAL
from tilewright.sim.ptx.syntax.tree import (
    Immediate,
    Instruction,
    Kernel,
    Memory,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)

if TYPE_CHECKING:
    from tilewright.sim.ptx.sync.step import Step

    Read = Callable[[Step], Any]
    Write = Callable[[Step, np.ndarray], None]


class Decoder:
    """What decoders of one instruction use. `tracked`: the registers whose initialisation is watched at run time."""

    def __init__(self, kernel: Kernel, ins: Instruction, tracked: frozenset[int] = frozenset()) -> None:
        self.kernel = kernel
        self.ins = ins
        self.tracked = tracked

    def unsupported(self, message: str) -> UnsupportedError:
        """The error for a form that the emulator does not know: raise it."""
        return UnsupportedError(f"{self.ins.where()}: {message}: '{self.ins.op}'", ir=self.ins.text)

    def wrong(self, message: str) -> NoReturn:
        """Raise the error for an instruction that PTX does not allow."""
        raise UserError(f"{self.ins.where()}: {message}", ir=self.ins.text)

    def arity(self, *counts: int) -> int:
        """Check the number of operands and return it."""
        found = len(self.ins.args)
        if found not in counts:
            self.wrong(f"'{self.ins.op}' takes {' or '.join(map(str, counts))} operands, not {found}")
        return found

    def known(self, *names: str) -> None:
        """Check that the mnemonic has no other parts behind its first than `names`."""
        for part in self.ins.parts[1:]:
            if part not in names:
                raise self.unsupported(f"modifier .{part} is not known")

    def type(self, position: int = -1) -> str:
        """The type that stands at a place of the mnemonic."""
        name = self.ins.parts[position]
        if name not in types.NUMPY:
            raise self.unsupported(f".{name} is not a type that the emulator knows here")
        return name

    def dtype(self, name: str) -> np.dtype:
        """The NumPy type of a PTX type."""
        return types.NUMPY[name]

    def constant(self, operand: Operand) -> int:
        """The value of an operand that must be an integer literal."""
        if not isinstance(operand, Immediate):
            self.wrong("an operand must be a literal here")
        return operand.value

    # ---- reading ---------------------------------------------------------

    def source(self, operand: Operand, name: str) -> Read:
        """A function that gives an operand's values as type `name`: (n,), or a NumPy scalar where all lanes agree."""
        if isinstance(operand, Register):
            return self._register(operand, name)
        if isinstance(operand, Immediate):
            value = immediate(operand, name)
            return lambda step: value
        if isinstance(operand, Special):
            return self._special(operand, name)
        if isinstance(operand, Symbol):
            return self._symbol(operand, name)
        if isinstance(operand, Vector):
            return self._pack(operand, name)
        self.wrong("an operand cannot be read")

    def sources(self, operand: Operand, name: str) -> Read:
        """A function that gives a vector operand's values: (n, k). A single operand counts as a vector of one."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        reads = [self.source(item, name) for item in items]
        dtype = types.NUMPY[name]

        def read(step: Step) -> np.ndarray:
            out = np.empty((step.n, len(reads)), dtype)
            for column, each in enumerate(reads):
                out[:, column] = each(step)
            return out

        return read

    def address(self, operand: Operand) -> Read:
        """A function that gives the address of `[base+offset]`: int64 (n,)."""
        if not isinstance(operand, Memory):
            self.wrong("an operand must be an address here")
        base, offset = operand.base, operand.offset
        if isinstance(base, Register):
            if types.size(base.type) == 4:
                inner = self._register(base, "u32")
                return lambda step: inner(step).astype(np.int64) + offset
            inner = self._register(base, "s64")
            return (lambda step: inner(step) + offset) if offset else inner
        inner = self.source(base, "u64")
        return lambda step: np.broadcast_to(np.asarray(inner(step)).astype(np.int64) + offset, step.n)

    def _register(self, operand: Register, name: str) -> Read:
        index = operand.index
        read = self._raw(operand, name)
        if index not in self.tracked:
            return read

        def checked(step: Step) -> np.ndarray:
            step.machine.require_register(step, index)
            return read(step)

        return checked

    def _raw(self, operand: Register, name: str) -> Read:
        index, dtype = operand.index, types.NUMPY[name]
        if operand.type == "pred":
            if operand.negated:
                return lambda step: ~step.registers[index][step.sel]
            return lambda step: step.registers[index][step.sel]
        width = types.size(operand.type)
        if width == dtype.itemsize:
            return lambda step: step.registers[index][step.sel].view(dtype)
        if width < dtype.itemsize:
            self.wrong(f"register {operand.name} (.{operand.type}) is too narrow for .{name}")
        word = types.WORDS[dtype.itemsize]
        return lambda step: step.registers[index][step.sel].astype(word).view(dtype)

    def _special(self, operand: Special, name: str) -> Read:
        read = SPECIAL.get(operand.name)
        if read is None:
            raise self.unsupported(f"the special register {operand.name} is not known")
        dtype = types.NUMPY[name]
        word = types.WORDS[dtype.itemsize]
        return lambda step: np.asarray(read(step)).astype(word).view(dtype)

    def _symbol(self, operand: Symbol, name: str) -> Read:
        dtype, symbol, offset = types.NUMPY[name], operand.name, operand.offset
        if symbol not in known_symbols(self.kernel):
            self.wrong(f"'{symbol}' is not declared")
        word = types.WORDS[dtype.itemsize]
        return lambda step: (step.machine.symbol(step, symbol) + np.int64(offset)).astype(word).view(dtype)

    def _pack(self, operand: Vector, name: str) -> Read:
        count = len(operand.items)
        total = types.size(name)
        if total % count:
            self.wrong(f"{count} items do not fill a .{name}")
        word = types.WORDS[total // count]
        reads = [self.source(item, f"b{8 * total // count}") for item in operand.items]
        dtype = types.NUMPY[name]

        def read(step: Step) -> np.ndarray:
            out = np.empty((step.n, count), word)
            for column, each in enumerate(reads):
                out[:, column] = each(step)
            return out.view(dtype)[:, 0]

        return read

    # ---- writing ---------------------------------------------------------

    def target(self, operand: Operand, name: str) -> Write:
        """A function that writes values of type `name` (n,), or a scalar, to an operand."""
        if isinstance(operand, Sink):
            return lambda step, values: None
        if isinstance(operand, Vector):
            return self._unpack(operand, name)
        if not isinstance(operand, Register) or operand.negated:
            self.wrong("an operand cannot be written")
        write = self._store(operand, name)
        index = operand.index
        if index not in self.tracked:
            return write

        def marked(step: Step, values: np.ndarray) -> None:
            step.machine.defined[index][step.sel] = True
            write(step, values)

        return marked

    def targets(self, operand: Operand, name: str) -> Write:
        """A function that writes (n, k) values to a vector operand."""
        items = operand.items if isinstance(operand, Vector) else (operand,)
        writes = [self.target(item, name) for item in items]

        def write(step: Step, values: np.ndarray) -> None:
            for column, each in enumerate(writes):
                each(step, values[:, column])

        return write

    def _store(self, operand: Register, name: str) -> Write:
        index, dtype = operand.index, types.NUMPY[name]
        if operand.type == "pred":

            def put_predicate(step: Step, values: np.ndarray) -> None:
                step.registers[index][step.sel] = values

            return put_predicate
        width = types.size(operand.type)
        word = types.WORDS[width]
        if dtype.itemsize > width:
            self.wrong(f"register {operand.name} (.{operand.type}) is too narrow for .{name}")
        if dtype.itemsize == width:

            def put(step: Step, values: np.ndarray) -> None:
                if values.dtype is not dtype and values.dtype.itemsize != width:
                    values = values.astype(dtype)
                if not values.flags.c_contiguous:
                    values = values.copy()
                step.registers[index][step.sel] = values.view(word)

            return put
        wide = types.SIGNED[width] if types.is_signed(name) else word
        narrow = types.SIGNED[dtype.itemsize] if types.is_signed(name) else types.WORDS[dtype.itemsize]

        def extend(step: Step, values: np.ndarray) -> None:
            if not values.flags.c_contiguous:
                values = values.copy()
            step.registers[index][step.sel] = values.view(narrow).astype(wide).view(word)

        return extend

    def _unpack(self, operand: Vector, name: str) -> Write:
        count = len(operand.items)
        part = types.size(name) // count
        writes = [self.target(item, f"b{8 * part}") for item in operand.items]

        def write(step: Step, values: np.ndarray) -> None:
            columns = np.ascontiguousarray(step.full(values)).view(types.WORDS[part]).reshape(step.n, count)
            for column, each in enumerate(writes):
                each(step, columns[:, column])

        return write


def known_symbols(kernel: Kernel) -> set[str]:
    """Names that operands of a kernel may use."""
    module = kernel.module
    return {p.name for p in kernel.parameters} | set(kernel.variables) | set(module.variables if module else ())


def immediate(operand: Immediate, name: str) -> np.generic:
    """A literal as a scalar of a type: integers wrap, floats keep their bits or are converted between f32 and f64."""
    dtype = types.NUMPY[name]
    if name == "pred":
        return np.bool_(operand.value != 0)
    if operand.kind == "int":
        if types.is_float(
            name
        ):  # an integer literal is the number for a float type of PTX only if written as float; bits otherwise
            word = types.WORDS[dtype.itemsize]
            return word.type(operand.value & ((1 << (8 * word.itemsize)) - 1)).view(dtype)
        word = types.WORDS[dtype.itemsize]
        return word.type(operand.value & ((1 << (8 * word.itemsize)) - 1)).view(dtype)
    bits = np.uint32 if operand.kind == "f32" else np.uint64
    value = bits(operand.value).view(np.float32 if operand.kind == "f32" else np.float64)
    if dtype.itemsize == value.dtype.itemsize:
        return value.view(dtype)
    return value.astype(types.NUMPY["f32" if dtype.itemsize == 4 else "f64" if dtype.itemsize == 8 else name]).view(
        dtype
    )
