# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From PTX text to modules: directives, variables, the frame of a kernel. Bodies are read by `body.py`."""

from __future__ import annotations

import re

from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.body import BodyParser
from tilewright.sim.ptx.syntax.scanner import Scanner, split
from tilewright.sim.ptx.syntax.tree import Function, Kernel, Module, Parameter
from tilewright.sim.ptx.syntax.variables import variable_of

_WORD = re.compile(r"\.?[\w$%]+")
_LINE = re.compile(r"[^\n]*")
_LINKAGE = (".visible", ".extern", ".weak", ".common")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s*(.*?)([\w$]+)\s*(?:\[\s*(\d*)\s*\])?\s*$", re.S)
_FUNCTION = re.compile(r"\.func\s*([\w$]+)\s*(?=\()")
_DIRECTIVE = re.compile(r"\.(\w+)((?:\s*\d+\s*,?)*)")


def parse(text: str | bytes) -> Module:
    """Read a PTX file.

    Raises:
        UserError: the text is not PTX as LLVM writes it; the message names the line.
    """
    if isinstance(text, bytes):
        text = text.rstrip(b"\0").decode()
    return _ModuleParser(text).parse()


class _ModuleParser:
    def __init__(self, text: str) -> None:
        self.scan = Scanner(text)
        self.module = Module(text=text)
        self.files: dict[int, str] = {}
        self.entries: list[tuple[Kernel, int]] = []

    def parse(self) -> Module:
        while self.scan.skip():
            start = self.scan.position
            found = self.scan.take(_WORD)
            if not found:
                raise self.scan.error(f"'{self.scan.peek()}' is not expected at the top level")
            self._top(found.group(), start)
        if not self.module.version:
            raise self.scan.error("the text has no .version: this is not a PTX file", 0)
        for kernel, position in self.entries:  # what they call may stand behind them
            self.scan.position = position
            BodyParser(self.scan, kernel, self.files).parse()
        return self.module

    def _top(self, word: str, start: int) -> None:
        if word in _LINKAGE:
            return
        if word in (".version", ".target", ".address_size", ".file"):
            self._head(word, self._taken(_LINE).strip())
        elif word == ".section":
            self.scan.until("{")
            self.scan.position -= 1
            self.scan.block()
        elif word == ".entry":
            self._entry()
        elif word == ".func":
            self._function(start)
        elif word in (".shared", ".global", ".const"):
            self.scan.position = start
            variable = variable_of(self.scan, self.scan.until(";"))
            self.module.variables[variable.name] = variable
        elif word == ".pragma":
            self.scan.until(";")
        else:
            raise self.scan.error(f"'{word}' is not a directive that the emulator knows", start)

    def _taken(self, pattern: re.Pattern[str]) -> str:
        found = self.scan.take(pattern)
        if not found:
            raise self.scan.error(f"'{self.scan.peek()}' is not expected here")
        return found.group()

    def _head(self, word: str, rest: str) -> None:
        if word == ".version":
            self.module.version = rest
        elif word == ".target":
            self.module.target = rest.split(",")[0].strip()
        elif word == ".file":
            number, name = rest.split(None, 1)
            self.files[int(number)] = name.split(",")[0].strip().strip('"')
        elif rest.rstrip(";") != "64":
            raise self.scan.error(f"address size {rest}: the emulator has 64-bit addresses only")

    def _function(self, start: int) -> None:
        """What kernels may call: a body without results. Others are harmless until something calls them."""
        self.scan.position = start
        found = self.scan.take(_FUNCTION)
        names = self._parameters() if found else ()
        while self.scan.peek() not in ("{", ";"):
            self.scan.position += 1
            if not self.scan.peek():
                raise self.scan.error(".func without a body or ';'", start)
        if self.scan.peek() == ";":
            self.scan.position += 1
            return
        if found:
            self.module.functions[found.group(1)] = Function(names, self.scan.position + 1)
        self.scan.block()

    def _parameters(self) -> tuple[str, ...]:
        """Names of a function's parameters."""
        return tuple(text.split("[")[0].split()[-1] for text in split(self.scan.block("(", ")")))

    def _entry(self) -> None:
        self.scan.skip()
        kernel = Kernel(self._taken(_WORD), module=self.module)
        self.scan.skip()
        if self.scan.peek() == "(":
            for text in split(self.scan.block("(", ")")):
                self._parameter(kernel, text)
        header = self.scan.until("{")
        for name, numbers in _DIRECTIVE.findall(header):
            kernel.directives[name] = [int(number) for number in re.findall(r"\d+", numbers)]
        self.module.kernels[kernel.name] = kernel
        self.entries.append((kernel, self.scan.position))
        self.scan.position -= 1
        self.scan.block()

    def _parameter(self, kernel: Kernel, text: str) -> None:
        found = _PARAMETER.match(" ".join(text.split()))
        if not found or found.group(2) not in types.NUMPY:
            raise self.scan.error(f"parameter '{text.strip()}' cannot be read")
        align, type_name, _, name, count = found.groups()
        element = types.size(type_name)
        size = element * int(count) if count else element
        alignment = int(align or element)
        offset = -(-kernel.parameter_bytes // alignment) * alignment
        kernel.parameters.append(Parameter(name, offset, size, alignment))
        kernel.parameter_bytes = offset + size
