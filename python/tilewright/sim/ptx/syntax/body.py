# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The body of a kernel: scopes of registers and labels, instructions, source locations; functions that it calls."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.scanner import Scanner, literal, split
from tilewright.sim.ptx.syntax.tree import (
    Immediate,
    Instruction,
    Kernel,
    Memory,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from tilewright.sim.ptx.syntax.variables import variable_of

_LABEL = re.compile(r"([A-Za-z_$][\w$]*)\s*:(?!:)")
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)[^\n]*")
_GUARD = re.compile(r"@(!?)\s*(%?[\w$]+)\s+(.*)$", re.S)
_MNEMONIC = re.compile(r"([A-Za-z][\w.:]*)\s*(.*)$", re.S)
_ADDRESS = re.compile(r"([%\w$]+)\s*(?:\+\s*(-?\s*\d+|-?0[xX][0-9a-fA-F]+)|(-\s*\d+))?\s*$")
_DEEPEST = 16  # calls of functions by functions
_MANY = re.compile(r"(%?[\w$]+)<(\d+)>$")


@functools.lru_cache(maxsize=1 << 16)
def _pieces(text: str) -> tuple[str, bool, str, tuple[str, ...]] | None:
    """(guard or "", whether it is negated, mnemonic, operands) of an instruction; None where it is none.

    Kept, since whoever loads one text loads others that differ in a line (models again, faults on purpose).
    """
    found = _GUARD.match(text)
    guard, negated, rest = (found.group(2), bool(found.group(1)), found.group(3)) if found else ("", False, text)
    found = _MNEMONIC.match(rest)
    return (guard, negated, found.group(1), tuple(split(found.group(2)))) if found else None


class BodyParser:
    """Reads from behind the opening brace to the closing one."""

    def __init__(self, scan: Scanner, kernel: Kernel, files: dict[int, str]) -> None:
        self.scan, self.kernel, self.files = scan, kernel, files
        self.scopes: list[dict[str, int]] = [{}]
        self.path: tuple[int, ...] = (0,)
        self.opened = 0
        self.labels: dict[tuple[int, str], int] = {}
        self.tables: dict[tuple[int, str], list[str]] = {}
        self.branches: list[tuple[Instruction, tuple[int, ...]]] = []
        self.source: str | None = None
        self.operands: dict[str, Operand] = {}  # those of the registers that are declared here
        self.callers: tuple[str, ...] = ()  # functions whose bodies are being read
        self.passed: dict[str, str] = {}  # variables that parameters of calls are

    def parse(self) -> None:
        """Read the body and resolve its labels."""
        first = len(self.kernel.code)
        while self.scopes:
            if not self.scan.skip():
                raise self.scan.error(f"the body of {self.kernel.name} is never closed")
            self._item()
        for instruction, path in self.branches:
            self._resolve(instruction, path)
        if self.callers:
            self._leave(first)

    def _item(self) -> None:
        scan, char = self.scan, self.scan.peek()
        if char == "{":
            self.opened += 1
            self.scopes.append({})
            self.operands.clear()
            self.path = (*self.path, self.opened)
            scan.position += 1
        elif char == "}":
            self.scopes.pop()
            self.operands.clear()
            self.path = self.path[:-1]
            scan.position += 1
        elif char == ";":
            scan.position += 1
        else:
            self._labelled()

    def _labelled(self) -> None:
        found = self.scan.take(_LABEL)
        if found:
            self.labels[self.path[-1], found.group(1)] = len(self.kernel.code)
            self.scan.skip()
            if self.scan.text.startswith(".branchtargets", self.scan.position):
                names = self.scan.until(";")[len(".branchtargets") :]
                self.tables[self.path[-1], found.group(1)] = split(names)
            return
        found = self.scan.take(_LOC)
        if found:
            name = self.files.get(int(found.group(1)), f"file {found.group(1)}")
            self.source = f"{name}:{found.group(2)}"
            return
        start = self.scan.position
        text = " ".join(self.scan.until(";").split())
        if text.startswith("."):
            self._declare(text, start)
        else:
            self._instruction(text, start)

    def _declare(self, text: str, start: int) -> None:
        word = text.split()[0]
        if word == ".reg":
            self._registers(text, start)
        elif word in (".shared", ".local"):
            variable = variable_of(self.scan, text)
            self.kernel.variables[variable.name] = variable
        elif word == ".param":
            self._call_parameter(text, start)
        elif word != ".pragma":
            raise self.scan.error(f"'{word}' in a body is not known to the emulator", start)

    def _call_parameter(self, text: str, start: int) -> None:
        """What a call passes: bytes that belong to the thread."""
        variable = variable_of(self.scan, text.replace(".param", ".local", 1))
        name = f"{variable.name}.{len(self.kernel.variables)}"  # calls have parameters of one name
        self.kernel.variables[name] = replace(variable, name=name)
        self.passed[variable.name] = name
        self.operands.clear()

    def _registers(self, text: str, start: int) -> None:
        found = re.match(r"\.reg\s+\.(\w+)\s+(.*)", text)
        if not found or found.group(1) not in types.NUMPY:
            raise self.scan.error(f"'{text}' cannot be read", start)
        self.operands.clear()
        for name in split(found.group(2)):
            many = _MANY.match(name)
            names = [f"{many.group(1)}{k}" for k in range(int(many.group(2)))] if many else [name]
            for each in names:
                self.scopes[-1][each] = len(self.kernel.registers)
                self.kernel.registers.append(found.group(1))
                self.kernel.register_names.append(each)

    def _register(self, name: str, negated: bool = False) -> Register | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return Register(name, scope[name], self.kernel.registers[scope[name]], negated)
        return None

    def _instruction(self, text: str, start: int) -> None:
        pieces = _pieces(text)
        if pieces is None:
            raise self.scan.error(f"'{text}' is not an instruction", start)
        name, negated, op, operands = pieces
        guard = self._register(name, negated) if name else None
        if name and guard is None:
            raise self.scan.error(f"predicate {name} is not declared", start)
        args = [self._operand(part, start) for part in operands]
        op = self._of_call(op, args)
        instruction = Instruction(op, op.split("."), args, guard, self.scan.line(start), self.source, text)
        if instruction.parts[0] == "call" and self._call(args, start):
            return
        if instruction.parts[0] in ("bra", "brx"):
            self.branches.append((instruction, self.path))
        self.kernel.code.append(instruction)

    def _operand(self, text: str, start: int) -> Operand:
        found = self.operands.get(text)
        if found is None:
            found = self.operands[text] = self._new_operand(text, start)
        return found

    def _new_operand(self, text: str, start: int) -> Operand:
        if text.startswith(("{", "(")):
            return Vector(tuple(self._operand(part, start) for part in split(text[1:-1])))
        if text.startswith("["):
            return self._memory(text, start)
        if "|" in text:
            return Pair(tuple(self._operand(part.strip(), start) for part in text.split("|")))
        return self._simple(text, start)

    def _simple(self, text: str, start: int) -> Operand:
        if text == "_":
            return Sink()
        name = text[1:].strip() if text.startswith("!") else text
        register = self._register(name, text.startswith("!"))
        if register:
            return register
        value = literal(text)
        if value:
            return Immediate(*value)
        if text.startswith("%"):
            return Special(text)
        if text == "WARP_SZ":
            return Immediate(32)
        found = _ADDRESS.match(text)
        if not found:
            raise self.scan.error(f"operand '{text}' cannot be read", start)
        name = found.group(1)
        return Symbol(self.passed.get(name, name), _offset(found))

    def _memory(self, text: str, start: int) -> Memory:
        first, *extra = split(text[1:-1])
        found = _ADDRESS.match(first)
        if not found:
            raise self.scan.error(f"address '{text}' cannot be read", start)
        base = self._simple(found.group(1), start)
        if not isinstance(base, (Register, Symbol, Immediate)):
            raise self.scan.error(f"address '{text}' cannot be read", start)
        return Memory(base, _offset(found), tuple(self._operand(part, start) for part in extra))

    # Calls ------------------------------------------------------------------------------------------------------------

    def _of_call(self, op: str, args: Sequence[Operand]) -> str:
        """An access to a parameter of a call: to memory of the thread."""
        first, *rest = op.split(".")
        if first in ("ld", "st") and rest and rest[0] in ("param", "param::func"):
            if any(isinstance(arg, Memory) and _is_among(arg.base, self.passed.values()) for arg in args):
                return ".".join((first, "local", *rest[1:]))
        return op

    def _call(self, args: Sequence[Operand], start: int) -> bool:
        """Put a function in the place of its call; whether it has a body here, and no results."""
        name = args[0].name if args and isinstance(args[0], Symbol) else ""
        module = self.kernel.module
        function = module.functions.get(name) if module else None
        if function is None or len(args) > 2:
            return False
        if len(self.callers) == _DEEPEST:
            raise self.scan.error(f"calls of '{name}' are nested more than {_DEEPEST} times", start)
        given = args[1].items if len(args) == 2 and isinstance(args[1], Vector) else ()
        values = [value.name for value in given if isinstance(value, Symbol)]
        if len(values) != len(function.parameters):
            raise self.scan.error(f"'{name}' has {len(function.parameters)} parameters, the call others", start)
        inner = BodyParser(self.scan, self.kernel, self.files)
        inner.callers = (*self.callers, name)
        inner.passed = dict(zip(function.parameters, values, strict=True))
        back, self.scan.position = self.scan.position, function.start
        inner.parse()
        self.scan.position = back
        return True

    def _leave(self, first: int) -> None:
        """A function returns to behind its call: its returns are branches there."""
        end = len(self.kernel.code)
        for instruction in self.kernel.code[first:]:
            if instruction.parts[0] == "ret":
                instruction.op, instruction.parts, instruction.target = "bra", ["bra"], end

    def _resolve(self, instruction: Instruction, path: tuple[int, ...]) -> None:
        name = instruction.args[-1]
        if instruction.parts[0] == "brx":
            table = self._lookup(self.tables, name, path, instruction)
            instruction.target = tuple(self._lookup(self.labels, Symbol(n), path, instruction) for n in table)
        else:
            instruction.target = self._lookup(self.labels, name, path, instruction)

    def _lookup(self, table: dict, name: Operand, path: tuple[int, ...], instruction: Instruction):
        if isinstance(name, Symbol):
            for scope in reversed(path):
                if (scope, name.name) in table:
                    return table[scope, name.name]
        raise self.scan.error(f"line {instruction.line}: '{instruction.text}' names no label of this kernel")


def _is_among(operand: Operand, names: Collection[str]) -> bool:
    return isinstance(operand, Symbol) and operand.name in names


def _offset(found: re.Match[str]) -> int:
    text = (found.group(2) or found.group(3) or "0").replace(" ", "")
    return int(text, 0)
