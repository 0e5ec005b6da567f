# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel's hot loops are made of: loops found in the disassembly of the compiled model's code."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{\w+\}\s+)?([a-z]\w*)\s*(.*?)\s*(?:[#<].*)?$")
_TARGET = re.compile(r"^(?:0x)?([0-9a-f]+)")
_STACK = re.compile(r"\(%[re]sp\b")
_FRAME = re.compile(r"\(%rbp\b")
_MEMORY = re.compile(r"\([^)]*\)")
_MULTIPLY = re.compile(r"^(vfn?m(add|sub|addsub|subadd)\d+[ps][sdh]|vdpbf16ps|vpdp\w+|tdp\w+)$")
_MOVES_OVER = re.compile(r"^v(perm|pshuf|shuf|unpck|pack|align|blend|insert|extract|broadcast|pbroadcast|pblend|pperm)")

_ONLY_READ = ("cmp", "test", "prefetch", "j", "vcomi", "vucomi")  # also with memory as their last operand


@dataclass(frozen=True)
class Instruction:
    """One line of a disassembly."""

    address: int
    name: str
    operands: str

    @property
    def target(self) -> int | None:
        """Where a jump goes to."""
        match = _TARGET.match(self.operands) if self.name.startswith("j") else None
        return int(match.group(1), 16) if match else None

    @property
    def multiplies(self) -> bool:
        """Whether it is a packed multiply-add or a dot product."""
        return bool(_MULTIPLY.match(self.name)) and not self.name.endswith(("ss", "sd", "sh"))

    @property
    def stores(self) -> bool:
        """Whether the last operand (the destination in AT&T syntax) is in memory."""
        return self.operands.endswith(")") and not self.name.startswith(
            ("cmp", "test", "prefetch", "j", "vcomi", "vucomi")
        )


@dataclass(frozen=True)
class Loop:
    """An innermost loop of a kernel."""

    kernel: str
    body: tuple[Instruction, ...]
    framed: bool  # rbp is a frame pointer

    def on_stack(self, instruction: Instruction) -> bool:
        """Whether an operand is at a fixed place of the stack frame."""
        text = instruction.operands
        return bool(_STACK.search(text) or (self.framed and _FRAME.search(text))) and instruction.name != "lea"

    @property
    def multiplies(self) -> int:
        """Number of packed multiply-adds and dot products."""
        return sum(i.multiplies for i in self.body)

    @property
    def vectors(self) -> int:
        """Number of vector instructions."""
        return sum(i.name.startswith("v") for i in self.body)

    @property
    def spills(self) -> tuple[int, int]:
        """Stores to the stack and loads from it."""
        on_stack = [i for i in self.body if self.on_stack(i)]
        stores = sum(i.stores for i in on_stack)
        return stores, len(on_stack) - stores

    def counts(self) -> dict[str, int]:
        """Instructions by kind; one that loads and multiplies counts as both."""
        found: Counter[str] = Counter()
        for i in self.body:
            vector, memory = i.name.startswith("v"), bool(_MEMORY.search(i.operands)) and not i.name.startswith("j")
            found["multiply-adds"] += i.multiplies
            found["vector stores"] += vector and memory and i.stores
            found["broadcast loads"] += memory and ("broadcast" in i.name or "{1to" in i.operands)
            found["vector loads"] += vector and memory and not i.stores and "roadcast" not in i.name + i.operands
            found["shuffles"] += bool(_MOVES_OVER.match(i.name)) and not memory
            found["other vector"] += vector and not (i.multiplies or memory or _MOVES_OVER.match(i.name))
            found["prefetches"] += i.name.startswith("prefetch")
            found["scalar"] += not vector and not i.name.startswith("prefetch")
        return {name: number for name, number in found.items() if number}

    def listing(self) -> str:
        """The instructions, those that touch the stack frame marked with *."""
        return "\n".join(f"  {'*' if self.on_stack(i) else ' '} {i.name:16s} {i.operands}" for i in self.body)


def parse(text: str) -> list[Instruction]:
    """The instructions of a disassembly by (llvm-)objdump."""
    matches = filter(None, map(_LINE.match, text.splitlines()))
    return [Instruction(int(m.group(1), 16), m.group(2), m.group(3)) for m in matches]


def innermost_loops(kernel: str, code: Sequence[Instruction]) -> list[Loop]:
    """Loops, from the target of a backward jump to the jump, that contain no other."""
    first = code[0].address if code else 0
    spans = {(i.target, i.address) for i in code if i.target is not None and first <= i.target <= i.address}
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    framed = any(i.name.startswith("mov") and i.operands.replace(" ", "") == "%rsp,%rbp" for i in code)
    return [Loop(kernel, tuple(i for i in code if a <= i.address <= b), framed) for a, b in sorted(inner)]


def hot_loops(loops: Iterable[Loop]) -> list[Loop]:
    """Of one kernel's loops those with at least half as many multiply-adds as the one with the most.

    A kernel without any (a sum, a copy) has one hot loop: that with the most vector instructions.
    """
    ordered = sorted(loops, key=lambda loop: (-loop.multiplies, -loop.vectors))
    if not ordered or ordered[0].multiplies == 0:
        return ordered[:1]
    return [loop for loop in ordered if 2 * loop.multiplies >= ordered[0].multiplies]


def disassemble(code: Path, kernel: str) -> list[Instruction]:
    """One function of a shared object. Raises FileNotFoundError where no disassembler is installed."""
    tool = next(filter(None, map(shutil.which, ("llvm-objdump-22", "llvm-objdump", "objdump"))), None)
    if tool is None:
        raise FileNotFoundError("no disassembler found (llvm-objdump-22, llvm-objdump, objdump)")
    chosen = f"--disassemble-symbols={kernel}" if "llvm" in tool else f"--disassemble={kernel}"
    command = [tool, "-d", "--no-show-raw-insn", chosen, str(code)]
    return parse(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def describe(loop: Loop, listing: bool = True) -> str:
    """A loop as text: its size, what it is made of, its spills, its instructions."""
    stores, loads = loop.spills
    spills = f"SPILLS: {stores} stores, {loads} loads" if stores or loads else "no spills"
    made = ", ".join(f"{number} {name}" for name, number in loop.counts().items())
    head = f"{loop.kernel}: hot loop of {len(loop.body)} instructions: {made}; {spills}"
    return f"{head}\n{loop.listing()}" if listing else head


def model_loops(model: object) -> list[Loop]:
    """The hot loops of all kernels of a compiled model."""
    code = model._artifact.code_path()  # type: ignore[attr-defined]
    kernels = [kernel.name for kernel in model.kernels]  # type: ignore[attr-defined]
    return [loop for name in kernels for loop in hot_loops(innermost_loops(name, disassemble(code, name)))]
