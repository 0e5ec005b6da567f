# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of a kernel before it runs: which registers may be read uninitialised, and which can share storage."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from tilewright.sim.ptx.syntax import registry
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

#: what the scheduler does itself, and how
CONTROL = {"bra": "bra", "brx": "brx", "ret": "exit", "exit": "exit"}
#: instructions whose first operand is read, not written
_NO_RESULT = frozenset(
    "st red bar barrier membar fence bra brx ret exit trap prefetch prefetchu discard nanosleep cp stmatrix setmaxnreg "
    "griddepcontrol pmevent brkpt applypriority tensormap multimem".split()
)
#: instructions that write their first operand and read it too
_UPDATES = frozenset(["wgmma"])

#: instructions whose registers share storage with no others: asynchronous units hold them beyond the instruction
OWN_ROWS = {"wgmma"}


def leaves(operands: Iterable[Operand]) -> Iterator[Operand]:
    """All simple operands within operands."""
    for operand in operands:
        if isinstance(operand, (Vector, Pair)):
            yield from leaves(operand.items)
        elif isinstance(operand, Memory):
            yield operand.base
            yield from leaves(operand.extra)
        else:
            yield operand


def registers(operands: Iterable[Operand]) -> set[int]:
    """Numbers of the registers within operands."""
    return {leaf.index for leaf in leaves(operands) if isinstance(leaf, Register)}


def operand_uses(ins: Instruction) -> tuple[frozenset[int], frozenset[int]]:
    """(registers that an instruction's operands read, registers that they write), its guard aside; kept with it."""
    found = ins.uses
    if found is None:
        args, head = ins.args, ins.parts[0]
        if args and head not in _NO_RESULT and not isinstance(args[0], Memory) and _has_result(ins):
            writes, reads = registers(args[:1]), registers(args[1:])
            if head in _UPDATES:
                reads |= writes
            found = frozenset(reads), frozenset(writes)
        else:
            found = frozenset(registers(args)), frozenset()
        ins.uses = found
    return found


def reads_writes(ins: Instruction) -> tuple[frozenset[int], frozenset[int]]:
    """(registers that an instruction reads, registers that it writes)."""
    reads, writes = operand_uses(ins)
    return (reads | {ins.guard.index} if ins.guard else reads), writes


def _has_result(ins: Instruction) -> bool:
    if ins.parts[0] in ("bar", "barrier"):
        return "red" in ins.parts
    return not isinstance(ins.args[0], (Immediate, Symbol, Special, Sink))


class Flow:
    """Data flow over the instructions of a kernel."""

    def __init__(self, kernel: Kernel, code: list[Instruction]) -> None:
        self.kernel, self.code = kernel, code
        self.uses = [reads_writes(ins) for ins in code]
        if kernel.code:
            self.uses = [(reads, writes | self._red(ins)) for (reads, writes), ins in zip(self.uses, code, strict=True)]
        self._blocks()
        self.tracked = self._tracked()

    def _red(self, ins: Instruction) -> set[int]:
        if ins.parts[0] in ("bar", "barrier") and "red" in ins.parts:
            return registers(ins.args[:1])
        return set()

    def _blocks(self) -> None:
        starts = {0}
        for at, ins in enumerate(self.code):
            if ins.parts[0] in CONTROL:
                starts.add(at + 1)
                starts.update(targets(ins))
        self.starts = sorted(start for start in starts if start < len(self.code))
        self.ends = [*self.starts[1:], len(self.code)]
        block_of = {start: number for number, start in enumerate(self.starts)}
        self.next: list[list[int]] = []
        for end in self.ends:
            last = self.code[end - 1]
            following = [block_of[target] for target in targets(last)]
            stops = last.parts[0] in CONTROL and last.guard is None
            if not stops and end < len(self.code):
                following.append(block_of[end])
            self.next.append(following)

    def _tracked(self) -> frozenset[int]:
        """Registers that a path reads before it writes them, and those that copies of them go to."""
        everything = (1 << len(self.kernel.registers)) - 1
        entry = [everything] * len(self.starts)
        entry[0] = 0
        work = [0]
        seen = {0}
        while work:
            block = work.pop()
            out = entry[block] | self._written(block)
            for following in self.next[block]:
                met = entry[following] & out
                if met != entry[following] or following not in seen:
                    entry[following] = met
                    seen.add(following)
                    work.append(following)
        found: set[int] = set()
        for block in seen:
            self._unwritten_reads(block, entry[block], found)
        return frozenset(self._copies(found))

    def _copies(self, found: set[int]) -> set[int]:
        """With the registers that are computed from watched ones, see `definedness`."""
        pure = [
            uses
            for uses, ins in zip(self.uses, self.code, strict=True)
            if ins.parts[0] not in CONTROL and registry.entry(ins).pure
        ]
        more = bool(found)
        while more:
            more = False
            for reads, writes in pure:
                if reads & found and not writes <= found:
                    found, more = found | writes, True
        return found

    def _written(self, block: int) -> int:
        bits = 0
        for at in range(self.starts[block], self.ends[block]):
            if self.code[at].guard is None:
                for register in self.uses[at][1]:
                    bits |= 1 << register
        return bits

    def _unwritten_reads(self, block: int, known: int, found: set[int]) -> None:
        for at in range(self.starts[block], self.ends[block]):
            reads, writes = self.uses[at]
            found.update(register for register in reads if not known >> register & 1)
            if self.code[at].guard is None:
                for register in writes:
                    known |= 1 << register

    # ---- storage ---------------------------------------------------------

    def rows(self) -> tuple[list[int], list[str]]:
        """(row of each register, type of each row): a linear scan over the ranges in which registers are alive."""
        first, last = self._ranges()
        kinds = [_storage(kind) for kind in self.kernel.registers]
        order = sorted(
            (register for register in range(len(kinds)) if first[register] <= last[register]), key=lambda r: first[r]
        )
        row_of, rows = [-1] * len(kinds), []
        free: dict[str, list[int]] = {}
        alive: list[tuple[int, int]] = []
        for register in order:
            while alive and alive[0][0] < first[register]:
                _, other = heapq.heappop(alive)
                free.setdefault(kinds[other], []).append(row_of[other])
            spare = free.get(kinds[register])
            if spare:
                row_of[register] = spare.pop()
            else:
                row_of[register] = len(rows)
                rows.append(kinds[register])
            heapq.heappush(alive, (last[register], register))
        for register, kind in enumerate(kinds):  # registers that nothing uses
            if row_of[register] < 0:
                if kind not in rows:
                    rows.append(kind)
                row_of[register] = rows.index(kind)
        return row_of, rows

    def _ranges(self) -> tuple[list[int], list[int]]:
        """First and last instruction at which each register is alive."""
        count = len(self.kernel.registers)
        first, last = [len(self.code)] * count, [-1] * count
        for at, (reads, writes) in enumerate(self.uses):
            for register in reads | writes:
                first[register] = min(first[register], at)
                last[register] = max(last[register], at)
        for ins in self.code:
            if ins.parts[0] in OWN_ROWS:
                for register in registers(ins.args):
                    first[register], last[register] = 0, len(self.code)
        live_in = self._live_in()
        for block, start in enumerate(self.starts):
            out = 0
            for following in self.next[block]:
                out |= live_in[following]
            for register in _members(live_in[block]):
                first[register] = min(first[register], start)
                last[register] = max(last[register], start)
            for register in _members(out):
                first[register] = min(first[register], self.ends[block] - 1)
                last[register] = max(last[register], self.ends[block] - 1)
        return first, last

    def _live_in(self) -> list[int]:
        gen, kill = [], []
        for block, start in enumerate(self.starts):
            used, written = 0, 0
            for at in range(start, self.ends[block]):
                reads, writes = self.uses[at]
                for register in reads:
                    used |= (1 << register) & ~written
                if self.code[at].guard is None:
                    for register in writes:
                        written |= 1 << register
            gen.append(used)
            kill.append(written)
        live = list(gen)
        changed = True
        while changed:
            changed = False
            for block in reversed(range(len(self.starts))):
                out = 0
                for following in self.next[block]:
                    out |= live[following]
                new = gen[block] | (out & ~kill[block])
                if new != live[block]:
                    live[block], changed = new, True
        return live


def targets(ins: Instruction) -> tuple[int, ...]:
    """Where a branch goes."""
    if ins.target is None:
        return ()
    return ins.target if isinstance(ins.target, tuple) else (ins.target,)


def _members(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _storage(kind: str) -> str:
    from tilewright.sim.ptx.syntax import types

    return "pred" if kind == "pred" else f"b{8 * types.size(kind)}"
