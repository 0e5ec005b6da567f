# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of the kernel of the family `rows_in_lanes` that sums two rows at once, as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PairsKernel:
    """What the text follows from.

    Attributes:
        rows: of the sparse matrix.
        blocks: of the depth.
        count: kept elements of a row in a block.
        shared: those at the same positions in both rows of each pair, at least.
        element: type of values.
        lanes: elements of a register.
        vectors: registers of a row of sums.
        ys: type of %ys, the sums of all rows of a task.
        xb: type of %xb, a block of the dense operand in the nearest cache.
        flat: type of the same as a vector: positions are places of elements in it.
    """

    rows: int
    blocks: int
    count: int
    shared: int
    element: str
    lanes: int
    vectors: int
    ys: str
    xb: str
    flat: str

    @property
    def vector(self) -> str:
        """The type of a register."""
        return f"!tile.tile<{self.lanes}x{self.element}>"

    @property
    def sums(self) -> list[str]:
        """Which of both rows, and which register of it, for each register of sums."""
        return [f"{s}_{v}" for s in range(2) for v in range(self.vectors)]

    @property
    def half(self) -> int:
        """Pairs of a block."""
        return -(-self.rows // 2)

    @property
    def places(self) -> int:
        """Positions of a pair."""
        return 2 * self.count - self.shared

    def arguments(self) -> dict[str, str]:
        """Values, of both rows side by side; positions, first those in common; rows of pairs; what is in common."""
        pairs = self.blocks * self.half
        return {
            "values": f"memref<{pairs * self.count * 2}x{self.element}>",
            "positions": f"memref<{pairs * self.places}xi16>",
            "order": f"memref<{pairs * 2}xi32>",
            "common": f"memref<{pairs}xi32>",
        }

    def text(self, block: str, again: bool) -> str:
        """A loop over the pairs of rows from %first to %end.

        Args:
            block: the block of the depth.
            again: whether there are sums so far, that these are added to.
        """
        before, loads = ["%none"] * len(self.sums), ""
        if again:
            before = [f"%before{name}" for name in self.sums]
            loads = "".join(
                f"\n          %before{name} = tile.load %ys[%place{name[0]}, %cv{name[2:]}] : {self.ys}, {self.vector}"
                for name in self.sums
            )
        stores = "".join(
            f"\n          tile.store %sum#{i}, %ys[%place{name[0]}, %cv{name[2:]}] : {self.vector}, {self.ys}"
            for i, name in enumerate(self.sums)
        )
        between = [f"%both#{i}" for i in range(len(self.sums))]
        middle = self._loop("both", "%c0", "%shared", before, self._both)
        final = self._loop("sum", "%shared", "%ccount_of_list", between, self._each)
        numbers = {"two": 2, "half": self.half, "places": self.places, "kept": 2 * self.count,
                   "count_of_list": self.count}  # fmt: skip
        numbers |= {f"v{v}": v * self.lanes for v in range(self.vectors)}
        constants = "".join(f"\n        %c{name} = arith.constant {n} : index" for name, n in numbers.items())
        constants += f"\n        %none = arith.constant dense<0.0> : {self.vector}"
        return f"""{constants}
        %pair_first = arith.divui %first, %ctwo : index
        %end_up = arith.addi %end, %c1 : index
        %pair_end = arith.divui %end_up, %ctwo : index
        %block_pairs = arith.muli {block}, %chalf : index
        %xf = memref.collapse_shape %xb [[0, 1]] : {self.xb} into {self.flat}
        scf.for %pair = %pair_first to %pair_end step %c1 {{
          %list = arith.addi %block_pairs, %pair : index
          %shared32 = memref.load %common[%list] : {self.arguments()["common"]}
          %shared = arith.index_cast %shared32 : i32 to index
          %at_order = arith.muli %list, %ctwo : index
          %at_value = arith.muli %list, %ckept : index
          %at_place = arith.muli %list, %cplaces : index{self._rows()}{loads}
{middle}
{final}{stores}
        }}"""

    def _rows(self) -> str:
        kind, lines = self.arguments()["order"], []
        for s in range(2):
            lines += [
                f"%at_order{s} = arith.addi %at_order, %c{s} : index",
                f"%row32_{s} = memref.load %order[%at_order{s}] : {kind}",
                f"%row_{s} = arith.index_cast %row32_{s} : i32 to index",
                f"%place{s} = arith.subi %row_{s}, %first : index",
            ]
        return "".join(f"\n          {line}" for line in lines)

    def _loop(self, name: str, start: str, stop: str, before: list[str], step: Callable[[], str]) -> str:
        """Registers of sums, `%name#0` and so on, over places of a list."""
        kinds = ", ".join([self.vector] * len(self.sums))
        given = ", ".join(f"%f{one} = {value}" for one, value in zip(self.sums, before, strict=True))
        return f"""
          %{name}:{len(self.sums)} = scf.for %p = {start} to {stop} step %c1
              iter_args({given}) -> ({kinds}) {{
            %twice = arith.muli %p, %ctwo : index
            %v0 = arith.addi %at_value, %twice : index
            %v1 = arith.addi %v0, %c1 : index{step()}
            scf.yield {", ".join(f"%g{one}" for one in self.sums)} : {kinds}
          }}"""

    def _both(self) -> str:
        """One row of the dense operand for both rows of sums.

        A register of it is used up before the next one is read: on CPUs with 16 registers there is room for one.
        """
        lines = ["%w = arith.addi %at_place, %p : index", *self._value(0), *self._value(1), *self._at(0, "%w")]
        for v in range(self.vectors):
            lines += [*self._x(0, v), self._add(0, 0, v), self._add(1, 0, v)]
        return _lines(lines)

    def _each(self) -> str:
        """A row of the dense operand for each."""
        lines = [
            "%more = arith.subi %twice, %shared : index",
            "%w0 = arith.addi %at_place, %more : index",
            "%w1 = arith.addi %w0, %c1 : index",
        ]
        for s in range(2):
            lines += [*self._value(s), *self._at(s, f"%w{s}")]
            for v in range(self.vectors):
                lines += [*self._x(s, v), self._add(s, s, v)]
        return _lines(lines)

    def _at(self, s: int, place: str) -> list[str]:
        """Where the row of the dense operand begins that a position names."""
        return [
            f"%at16_{s} = memref.load %positions[{place}] : {self.arguments()['positions']}",
            f"%at{s} = arith.index_castui %at16_{s} : i16 to index",
        ]

    def _x(self, s: int, v: int) -> list[str]:
        return [
            f"%at{s}_{v} = arith.addi %at{s}, %cv{v} : index",
            f"%x{s}_{v} = tile.load %xf[%at{s}_{v}] : {self.flat}, {self.vector}",
        ]

    def _value(self, s: int) -> list[str]:
        return [
            f"%value{s} = memref.load %values[%v{s}] : {self.arguments()['values']}",
            f"%wide{s} = tile.splat %value{s} : {self.element} -> {self.vector}",
        ]

    def _add(self, s: int, x: int, v: int) -> str:
        return f"%g{s}_{v} = math.fma %wide{s}, %x{x}_{v}, %f{s}_{v} : {self.vector}"


def _lines(lines: list[str]) -> str:
    return "".join(f"\n            {line}" for line in lines)
