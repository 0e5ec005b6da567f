# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a launch did: instructions, memory traffic, bank conflicts, per line of the PTX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Launch
    from tilewright.sim.ptx.program import Program
    from tilewright.sim.ptx.sync.step import Lanes, Step
    from tilewright.sim.ptx.syntax.tree import Instruction

#: bytes that a memory transaction moves
SECTOR = 32


@dataclass
class LineCount:
    """What one instruction did.

    Attributes:
        text, line, source: the instruction, its PTX line and where it came from.
        warps: warps that issued it. threads: threads that ran it.
        bytes: bytes that its threads asked for. sectors: 32-byte sectors of global memory that its warps touched.
        wavefronts: passes that its warps need on the 32 banks of shared memory. ideal: passes without conflicts.
        flops: operations of matrix units, two per multiply-add.
    """

    text: str
    line: int
    source: str | None
    warps: int = 0
    threads: int = 0
    bytes: int = 0
    sectors: int = 0
    wavefronts: int = 0
    ideal: int = 0
    flops: int = 0


@dataclass
class KernelTrace:
    """Counts of one launch."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lines: dict[int, LineCount] = field(default_factory=dict)

    def total(self, name: str) -> int:
        """Sum of a count over all lines."""
        return sum(getattr(line, name) for line in self.lines.values())

    def summary(self) -> str:
        """One paragraph: instructions, traffic, conflicts."""
        grid, block = ("x".join(map(str, size)) for size in (self.grid, self.block))
        text = f"{self.kernel}: grid {grid}, block {block}: {self.total('warps')} warp instructions, "
        text += f"{self.total('threads')} thread instructions"
        moved = self.total("sectors") * SECTOR
        if moved:
            asked = sum(line.bytes for line in self.lines.values() if line.sectors)
            text += f"\nglobal memory: {asked} bytes asked for, {moved} bytes in sectors ({asked / moved:.0%} used)"
        flops = self.total("flops")
        if flops:
            text += f"\nmatrix units: {flops} operations" + (f", {flops / moved:.1f} per byte moved" if moved else "")
        passes, ideal = self.total("wavefronts"), self.total("ideal")
        if passes:
            text += f"\nshared memory: {passes} passes, {ideal} without bank conflicts"
        return text

    def table(self, limit: int = 20, by: str = "warps") -> str:
        """The instructions with the highest counts, as text.

        Args:
            limit: how many.
            by: the count to sort by, a field of `LineCount`, or "conflicts" for passes beyond the ideal.
        """

        def key(line: LineCount) -> int:
            return line.wavefronts - line.ideal if by == "conflicts" else getattr(line, by)

        chosen = sorted(self.lines.values(), key=key, reverse=True)[:limit]
        rows = [
            f"{'line':>5} {'warps':>9} {'threads':>11} {'bytes':>11} {'sectors':>8} {'passes':>8} {'ideal':>8} "
            f"{'flops':>12}  text"
        ]
        for line in sorted(chosen, key=lambda each: each.line):
            place = f"  // {line.source}" if line.source else ""
            rows.append(
                f"{line.line:5} {line.warps:9} {line.threads:11} {line.bytes:11} {line.sectors:8} "
                f"{line.wavefronts:8} {line.ideal:8} {line.flops:12}  {line.text}{place}"
            )
        return "\n".join(rows)


class Trace:
    """Collects counts; give it to `Options(trace=...)`.

    Attributes:
        launches: one `KernelTrace` per launch, in order.
    """

    def __init__(self) -> None:
        self.launches: list[KernelTrace] = []

    def begin(self, program: Program, launch: Launch) -> None:
        """A launch begins."""
        self.launches.append(KernelTrace(program.kernel.name, launch.grid, launch.block))

    def _line(self, ins: Instruction) -> LineCount:
        lines = self.launches[-1].lines
        found = lines.get(id(ins))
        if found is None:
            found = lines[id(ins)] = LineCount(ins.text, ins.line, ins.source)
        return found

    def issue(self, place: int, ins: Instruction, lanes: Lanes) -> None:
        """An instruction is issued for lanes."""
        count = self._line(ins)
        count.warps += len(lanes.distinct_warps)
        count.threads += lanes.n

    def product(self, ins: Instruction, flops: int) -> None:
        """Matrix units do so many operations."""
        self._line(ins).flops += flops

    def copy(self, ins: Instruction, nbytes: int, sectors: int) -> None:
        """A bulk copy moves bytes from or to global memory, in so many sectors."""
        count = self._line(ins)
        count.bytes += nbytes
        count.sectors += sectors

    def access(self, step: Step, space: str, addresses: np.ndarray, nbytes: int, kind: str) -> None:
        """Lanes read or write memory."""
        count = self._line(step.ins)
        count.bytes += nbytes * step.n
        if space == "global":
            first, last = addresses // SECTOR, (addresses + nbytes - 1) // SECTOR
            touched = np.concatenate([np.stack([step.warps, first], 1), np.stack([step.warps, last], 1)])
            count.sectors += len(np.unique(touched, axis=0))
        elif space.startswith("shared"):
            passes, ideal = wavefronts(step.ids, addresses, nbytes)
            count.wavefronts += passes
            count.ideal += ideal


def wavefronts(lanes: np.ndarray, addresses: np.ndarray, nbytes: int) -> tuple[int, int]:
    """(passes, passes without conflicts) on 32 banks of 4 bytes, summed over warps.

    A pass serves each bank one word (the same word for any number of lanes). Accesses of 8 and 16 bytes go by half and
    quarter warps.
    """
    words = max(nbytes // 4, 1)
    group = lanes * words // 32
    word = (addresses // 4)[:, None] + np.arange(words)
    rows = np.stack([np.repeat(group, words), word.ravel() % 32, word.ravel()], axis=1)
    distinct = np.unique(rows, axis=0)
    cells, depth = np.unique(distinct[:, :2], axis=0, return_counts=True)
    groups = np.unique(cells[:, 0])
    passes = np.zeros(len(groups), np.int64)
    np.maximum.at(passes, np.searchsorted(groups, cells[:, 0]), depth)
    ideal = np.zeros(len(groups), np.int64)
    np.add.at(ideal, np.searchsorted(groups, distinct[:, 0]), 1)
    return int(passes.sum()), int((-(-ideal // 32)).sum())
