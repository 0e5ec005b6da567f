# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of the family `gemv`, as text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tilewright.plan.cost.sparse import CHOSEN

POSITIONS = 16
"""Positions of two bits in a word."""

_AHEAD = 128
"""Vectors of values that are asked for ahead: two pages, where the hardware stops looking ahead at the end of each."""


@dataclass(frozen=True)
class GemvKernel:
    """What the kernel is made for: y = W @ x, W [rows, depth] with n of m kept, x [depth, columns], few columns.

    Attributes:
        rows: of W.
        depth: terms of a sum.
        columns: of x, known and few.
        lanes: rows of W that a register holds.
        chunk: registers of rows that a task takes.
        n: kept elements of a window.
        m: elements of a window.
        held: type of values as they are held.
        element: type of sums.
        given: element type of x.
        result: element type of y, and of what is added.
        across: x is held as [columns, depth], y as [columns, rows]; else as [depth, columns] and [rows, columns].
        adds: whether something is added to the product.
    """

    rows: int
    depth: int
    columns: int
    lanes: int
    chunk: int
    n: int
    m: int
    held: str
    element: str
    given: str
    result: str
    across: bool
    adds: bool

    @property
    def groups(self) -> int:
        """Registers of rows."""
        return -(-self.rows // self.lanes)

    @property
    def round(self) -> int:
        """Windows of an iteration: those whose positions share a word, or one."""
        return POSITIONS // self.n if self.chosen else 1

    @property
    def position(self) -> int:
        """Bits of a position that gathers."""
        return 16 if self.m > 128 else 8

    @property
    def windows(self) -> int:
        """Windows of a row, whole iterations."""
        return -(-self.depth // (self.m * self.round)) * self.round

    @property
    def kept(self) -> int:
        """Kept elements of an iteration."""
        return self.n * self.round

    @property
    def chosen(self) -> bool:
        """Whether positions choose between registers."""
        return self.m <= CHOSEN

    @property
    def values(self) -> str:
        """The type of values: kept elements of as many rows as a register has lanes side by side."""
        return f"memref<{self.groups}x{self.windows * self.n}x{self.lanes}x{self.held}>"

    @property
    def positions(self) -> str:
        """The type of positions, one for each value or a word for each iteration."""
        if self.chosen:
            return f"memref<{self.groups}x{self.windows // self.round}x{self.lanes}xi32>"
        return f"memref<{self.groups}x{self.windows * self.n}x{self.lanes}xi{self.position}>"


def gemv_text(k: GemvKernel) -> str:
    """The kernel as text: arguments are values, positions, x, what is added if it is, y."""
    x, y = _matrix(k, k.depth, k.given), _matrix(k, k.rows, k.result)
    added = f"%c: {y}, " if k.adds else ""
    numbers = {"c0": 0, "c1": 1, "clanes": k.lanes, "cchunk": k.chunk, "cgroups": k.groups, "crows": k.rows,
               "cm": k.m * k.round, "cn": k.kept, "crounds": k.windows // k.round,
               "cpadded": k.windows * k.m, "cahead": _AHEAD}  # fmt: skip
    numbers |= {f"s{u}": u for u in range(max(k.kept, k.m * k.round if k.chosen else 0))}
    numbers |= {f"l{j}": j for j in range(k.columns)}
    constants = "\n".join(f"  %{name} = arith.constant {number} : index" for name, number in numbers.items())
    steps = _chosen(k) if k.chosen else "".join(_gathered(k, u) for u in range(k.kept))
    sums = [f"%f0_{j}" for j in range(k.columns)]
    kinds = ", ".join([_row(k, k.element)] * k.columns)
    last = ", ".join(f"%f{k.kept}_{j}" for j in range(k.columns))
    return f"""
tile.kernel @KERNEL(%values: {k.values}, %positions: {k.positions}, %x: {x}, {added}%y: {y}) grid(%task) {{
{constants}
  %zero = arith.constant dense<0.0> : {_row(k, k.element)}
  %xs = tile.alloc : {_xs(k)}
{_copy(k, x)}
  %first = arith.muli %task, %cchunk : index
  %behind = arith.addi %first, %cchunk : index
  %end = arith.minsi %behind, %cgroups : index
  scf.for %g = %first to %end step %c1 {{
    %row = arith.muli %g, %clanes : index
    %left = arith.subi %crows, %row : index
    %sums:{k.columns} = scf.for %w = %c0 to %crounds step %c1
        iter_args({", ".join(f"{name} = %zero" for name in sums)}) -> ({kinds}) {{
      %start = arith.muli %w, %cm : index
      %place = arith.muli %w, %cn : index
{steps}
      scf.yield {last} : {kinds}
    }}
{"".join(_out(k, j, y) for j in range(k.columns))}
  }}
  tile.return
}}
"""


def _copy(k: GemvKernel, x: str) -> str:
    """The columns of x one after the other in the nearest cache, of the type of sums, zeros behind the depth."""
    part, wide = _row(k, k.given), _row(k, k.element)
    convert = "" if part == wide else f"%wide = tile.convert %t : {part} -> {wide}"
    return "".join(
        f"""
  scf.for %i = %c0 to %cpadded step %clanes {{
    %rest_given = arith.constant {k.depth} : index
    %inside = arith.subi %rest_given, %i : index
    %rest = arith.subi %cpadded, %i : index
    %t = tile.load %x{_at(k, j, "%i")} dims [{1 if k.across else 0}] valid (%inside) : {x}, {part}
    {convert}
    tile.store {"%wide" if convert else "%t"}, %xs[%l{j}, %i] valid (%rest) : {wide}, {_xs(k)}
  }}"""
        for j in range(k.columns)
    )


def _value(k: GemvKernel, u: int) -> tuple[str, list[str]]:
    """The value of one kept element of each row, of the type of sums, and what loads it."""
    held, wide = _row(k, k.held), _row(k, k.element)
    lines = [
        f"%p{u} = arith.addi %place, %s{u} : index",
        f"%h{u} = tile.load %values[%g, %p{u}, %c0] : {k.values}, {held}",
        f"%q{u} = arith.addi %p{u}, %cahead : index",
        f"memref.prefetch %values[%g, %q{u}, %c0], read, locality<3>, data : {k.values}",
    ]
    if held == wide:
        return f"%h{u}", lines
    return f"%v{u}", [*lines, f"%v{u} = tile.convert %h{u} : {held} -> {wide}"]


def _gathered(k: GemvKernel, u: int) -> str:
    """One kept element of each row: values and positions are read once for all columns of x."""
    wide, places, bits = _row(k, k.element), _row(k, "i32"), _row(k, f"i{k.position}")
    value, lines = _value(k, u)
    lines += [
        f"%b{u} = tile.load %positions[%g, %p{u}, %c0] : {k.positions}, {bits}",
        f"%i{u} = tile.convert %b{u} : {bits} -> {places}",
    ]
    for j in range(k.columns):
        lines += [
            f"%x{u}_{j} = tile.load %xs[%l{j}, %start] dims [1] indices %i{u} along 0 "
            f": {_xs(k)}, {wide} (indices {places})",
            f"%f{u + 1}_{j} = math.fma {value}, %x{u}_{j}, %f{u}_{j} : {wide}",
        ]
    return _lines(lines)


def _chosen(k: GemvKernel) -> str:
    """The kept elements whose positions share a word: each bit of it is a condition for all rows."""
    words, wide = _row(k, "i32"), _row(k, k.element)
    lines = [
        f"%word = tile.load %positions[%g, %w, %c0] : {k.positions}, {words}",
        f"%no = arith.constant dense<0> : {words}",
    ]
    for window in range(k.round):
        for i, j in itertools.product(range(k.m), range(k.columns)):
            at = window * k.m + i
            lines += [
                f"%a{at}_{j} = arith.addi %start, %s{at} : index",
                f"%e{at}_{j} = memref.load %xs[%l{j}, %a{at}_{j}] : {_xs(k)}",
                f"%r{at}_{j} = tile.splat %e{at}_{j} : {k.element} -> {wide}",
            ]
        for u in range(window * k.n, (window + 1) * k.n):
            value, loads = _value(k, u)
            lines += loads
            for bit in range((k.m - 1).bit_length()):
                lines += _condition(k, u, bit)
            for j in range(k.columns):
                x, steps = _choice(k, u, [f"%r{window * k.m + i}_{j}" for i in range(k.m)], j)
                lines += [*steps, f"%f{u + 1}_{j} = math.fma {value}, {x}, %f{u}_{j} : {wide}"]
    return _lines(lines)


def _condition(k: GemvKernel, u: int, bit: int) -> list[str]:
    """Whether a bit of a position is set, for each row."""
    words, at = _row(k, "i32"), 2 * u + bit
    number = (1 << at) - (1 << 32 if at == 31 else 0)
    return [
        f"%bit{at} = arith.constant dense<{number}> : {words}",
        f"%t{at} = arith.andi %word, %bit{at} : {words}",
        f"%c{at}_set = arith.cmpi ne, %t{at}, %no : {words}",
    ]


def _choice(k: GemvKernel, u: int, elements: list[str], column: int) -> tuple[str, list[str]]:
    """Of up to four elements of a window the one that a position names, for each row, and what chooses it."""
    kinds = f"{_row(k, 'i1')}, {_row(k, k.element)}"
    steps: list[str] = []
    for bit in range((len(elements) - 1).bit_length()):
        chosen = []
        for pair, (no, yes) in enumerate(zip(elements[::2], [*elements[1::2], elements[-1]], strict=False)):
            chosen.append(f"%x{u}_{column}_{bit}_{pair}")
            steps.append(f"{chosen[-1]} = tile.select %c{2 * u + bit}_set, {yes}, {no} : {kinds}")
        elements = chosen
    return elements[0], steps


def _lines(lines: list[str]) -> str:
    return "".join(f"      {line}\n" for line in lines)


def _out(k: GemvKernel, j: int, y: str) -> str:
    """A column's sums of the rows of a register."""
    wide, part, at = _row(k, k.element), _row(k, k.result), _at(k, j, "%row")
    dims = f"dims [{1 if k.across else 0}] valid (%left)"
    value, lines = f"%sums#{j}", []
    if k.adds:
        lines.append(f"%a{j} = tile.load %c{at} {dims} : {y}, {part}")
        if part != wide:
            lines.append(f"%aw{j} = tile.convert %a{j} : {part} -> {wide}")
        lines.append(f"%more{j} = arith.addf {value}, {f'%a{j}' if part == wide else f'%aw{j}'} : {wide}")
        value = f"%more{j}"
    if part != wide:
        lines.append(f"%n{j} = tile.convert {value} : {wide} -> {part}")
        value = f"%n{j}"
    lines.append(f"tile.store {value}, %y{at} {dims} : {part}, {y}")
    return "".join(f"    {line}\n" for line in lines)


def _at(k: GemvKernel, column: int, place: str) -> str:
    return f"[%l{column}, {place}]" if k.across else f"[{place}, %l{column}]"


def _row(k: GemvKernel, element: str) -> str:
    return f"!tile.tile<{k.lanes}x{element}>"


def _matrix(k: GemvKernel, size: int, element: str) -> str:
    return f"memref<{k.columns}x{size}x{element}>" if k.across else f"memref<{size}x{k.columns}x{element}>"


def _xs(k: GemvKernel) -> str:
    return f'memref<{k.columns}x{k.windows * k.m}x{k.element}, #tile.level<"l1">>'
