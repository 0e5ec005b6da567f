# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of the family `gemv`, as text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from tilewright.plan.cost.sparse import CHOSEN, apart

POSITIONS = 16
"""Positions of two bits in a word."""


@dataclass(frozen=True)
class GemvKernel:
    """What the kernel is made for: y = W @ x, W [rows, depth] with n of m kept, x [depth, columns], few columns.

    Attributes:
        rows: of W.
        depth: terms of a sum.
        columns: of x, known and few.
        lanes: rows of W that a register holds.
        chunk: registers of rows that a task takes, a multiple of `streams`.
        streams: registers of rows that an iteration takes side by side: more places where memory is read at once, and
            elements of x that are spread over lanes once for all.
        n: kept elements of a window.
        m: elements of a window.
        held: type of values as they are held.
        size: bytes of a value.
        element: type of sums.
        given: element type of x.
        result: element type of y, and of what is added.
        across: x is held as [columns, depth], y as [columns, rows]; else as [depth, columns] and [rows, columns].
        adds: whether something is added to the product.
        tabled: a window of x is a table in a register, of which each lane picks an element by itself.
        ahead: vectors of values that are asked for ahead, of all streams; 0: the hardware looks ahead by itself.
    """

    rows: int
    depth: int
    columns: int
    lanes: int
    chunk: int
    streams: int
    n: int
    m: int
    held: str
    size: int
    element: str
    given: str
    result: str
    across: bool
    adds: bool
    tabled: bool
    ahead: int

    @property
    def apart(self) -> int:
        """Kept elements that nobody multiplies, between a register of rows and the next: whole iterations.

        Streams are read side by side, at the same place in each. Where rows are whole pages, so are their distances:
        what is read at once then competes for few sets of the caches and of the TLB, and for banks of memory. Measured
        on an AVX-512 VM: 1.06 times as fast with 16 cache lines between rows of 128 KiB, four streams; with AVX2, two
        streams, 1.01. Where positions gather, gathers take longer than memory does: no gain (1.00), so that rows touch.
        """
        if self.streams == 1 or not self.chosen:
            return 0
        vector = self.lanes * self.size
        return apart(self.windows * self.n * vector, self.kept * vector) // vector

    @property
    def reach(self) -> int:
        """Kept elements from a register of rows to the next, a multiple of an iteration's."""
        return self.windows * self.n + self.apart

    @property
    def groups(self) -> int:
        """Registers of rows, whole iterations of zeros at the end."""
        return -(-self.rows // (self.lanes * self.streams)) * self.streams

    @property
    def sums(self) -> list[tuple[int, int]]:
        """A stream and a column for each register of sums."""
        return list(itertools.product(range(self.streams), range(self.columns)))

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
        return f"memref<{self.groups}x{self.reach}x{self.lanes}x{self.held}>"

    @property
    def positions(self) -> str:
        """The type of positions, one for each value or a word for each iteration."""
        if self.chosen:
            return f"memref<{self.groups}x{self.reach // self.kept}x{self.lanes}xi32>"
        return f"memref<{self.groups}x{self.reach}x{self.lanes}xi{self.position}>"


def gemv_text(k: GemvKernel) -> str:
    """The kernel as text: arguments are values, positions, x, what is added if it is, y."""
    x, y = _matrix(k, k.depth, k.given), _matrix(k, k.rows, k.result)
    added = f"%c: {y}, " if k.adds else ""
    numbers = {"c0": 0, "c1": 1, "clanes": k.lanes, "cchunk": k.chunk, "cgroups": k.groups, "crows": k.rows,
               "cm": k.m * k.round, "cn": k.kept, "crounds": k.windows // k.round, "cstreams": k.streams,
               "cpadded": k.windows * k.m, "cahead": k.ahead // k.streams}  # fmt: skip
    numbers |= {f"s{u}": u for u in range(max(k.kept, k.streams, k.m * k.round if k.chosen else 0))}
    numbers |= {f"l{j}": j for j in range(k.columns)}
    constants = "\n".join(f"  %{name} = arith.constant {number} : index" for name, number in numbers.items())
    steps = _chosen(k) if k.chosen else "".join(_gathered(k, u) for u in range(k.kept))
    kinds = ", ".join([_row(k, k.element)] * len(k.sums))
    return f"""
tile.kernel @KERNEL(%values: {k.values}, %positions: {k.positions}, %x: {x}, {added}%y: {y}) grid(%task) {{
{constants}
  %zero = arith.constant dense<0.0> : {_row(k, k.element)}
  %xs = tile.alloc : {_xs(k)}
{_copy(k, x)}
  %first = arith.muli %task, %cchunk : index
  %behind = arith.addi %first, %cchunk : index
  %end = arith.minsi %behind, %cgroups : index
  %taken = arith.subi %end, %first : index
  %each = arith.divui %taken, %cstreams : index
  scf.for %i = %c0 to %each step %c1 {{
{_rows(k)}
    %sums:{len(k.sums)} = scf.for %w = %c0 to %crounds step %c1
        iter_args({", ".join(f"%f0_{s}_{j} = %zero" for s, j in k.sums)}) -> ({kinds}) {{
      %start = arith.muli %w, %cm : index
      %place = arith.muli %w, %cn : index
{steps}
      scf.yield {", ".join(f"%f{k.kept}_{s}_{j}" for s, j in k.sums)} : {kinds}
    }}
{"".join(_out(k, s, j, y) for s, j in k.sums)}
  }}
  tile.return
}}
"""


def _rows(k: GemvKernel) -> str:
    """For each stream its register of rows, its first row, and how many rows there are from it on.

    The next register is the neighbour of the last one: the hardware looks ahead in each stream without a break.
    """
    return "".join(
        f"""
    %before{s} = arith.muli %each, %s{s} : index
    %begin{s} = arith.addi %first, %before{s} : index
    %g{s} = arith.addi %begin{s}, %i : index
    %row{s} = arith.muli %g{s}, %clanes : index
    %left{s} = arith.subi %crows, %row{s} : index"""
        for s in range(k.streams)
    )


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


def _value(k: GemvKernel, u: int, s: int) -> tuple[str, list[str]]:
    """The value of one kept element of each row of a stream, of the type of sums, and what loads it."""
    held, wide, name = _row(k, k.held), _row(k, k.element), f"{u}_{s}"
    lines = [f"%h{name} = tile.load %values[%g{s}, %p{u}, %c0] : {k.values}, {held}"]
    if k.ahead:
        lines.append(f"memref.prefetch %values[%g{s}, %q{u}, %c0], read, locality<3>, data : {k.values}")
    if held == wide:
        return f"%h{name}", lines
    return f"%v{name}", [*lines, f"%v{name} = tile.convert %h{name} : {held} -> {wide}"]


def _place(u: int) -> list[str]:
    """Where a kept element lies in rows, and what is asked for meanwhile."""
    return [f"%p{u} = arith.addi %place, %s{u} : index", f"%q{u} = arith.addi %p{u}, %cahead : index"]


def _gathered(k: GemvKernel, u: int) -> str:
    """One kept element of each row: values and positions are read once for all columns of x."""
    wide, places, bits = _row(k, k.element), _row(k, "i32"), _row(k, f"i{k.position}")
    lines = _place(u)
    for s in range(k.streams):
        value, loads = _value(k, u, s)
        lines += [
            *loads,
            f"%b{u}_{s} = tile.load %positions[%g{s}, %p{u}, %c0] : {k.positions}, {bits}",
            f"%i{u}_{s} = tile.convert %b{u}_{s} : {bits} -> {places}",
        ]
        for j in range(k.columns):
            lines += [
                f"%x{u}_{s}_{j} = tile.load %xs[%l{j}, %start] dims [1] indices %i{u}_{s} along 0 "
                f": {_xs(k)}, {wide} (indices {places})",
                f"%f{u + 1}_{s}_{j} = math.fma {value}, %x{u}_{s}_{j}, %f{u}_{s}_{j} : {wide}",
            ]
    return _lines(lines)


def _chosen(k: GemvKernel) -> str:
    """The kept elements whose positions share a word: each bit of it is a condition for all rows."""
    words = _row(k, "i32")
    lines = [f"%no = arith.constant dense<0> : {words}", f"%two_bits = arith.constant dense<3> : {words}"]
    lines += [f"%word{s} = tile.load %positions[%g{s}, %w, %c0] : {k.positions}, {words}" for s in range(k.streams)]
    for window in range(k.round):
        lines += _table(k, window) if k.tabled else _spread(k, window)
        for u in range(window * k.n, (window + 1) * k.n):
            lines += _place(u)
            for s in range(k.streams):
                lines += _chosen_step(k, u, s, window)
    return _lines(lines)


def _spread(k: GemvKernel, window: int) -> list[str]:
    """Each element of a window of x in all lanes of a register."""
    lines = []
    for i, j in itertools.product(range(window * k.m, (window + 1) * k.m), range(k.columns)):
        lines += [
            f"%a{i}_{j} = arith.addi %start, %s{i} : index",
            f"%e{i}_{j} = memref.load %xs[%l{j}, %a{i}_{j}] : {_xs(k)}",
            f"%r{i}_{j} = tile.splat %e{i}_{j} : {k.element} -> {_row(k, k.element)}",
        ]
    return lines


def _table(k: GemvKernel, window: int) -> list[str]:
    """Each window of x as a buffer of its own."""
    at, lines = window * k.m, []
    lines.append(f"%a{at} = arith.addi %start, %s{at} : index")
    for j in range(k.columns):
        lines.append(f"%r{at}_{j} = memref.subview %xs[{j}, %a{at}] [1, {k.m}] [1, 1] : {_xs(k)} to {_window(k)}")
    return lines


def _picked(k: GemvKernel, u: int, s: int, window: int, column: int) -> tuple[str, list[str]]:
    """The element of a window that a position names, for each row, and what picks it."""
    words, name = _row(k, "i32"), f"{u}_{s}"
    lines = [
        f"%bit{name} = arith.constant dense<{2 * u}> : {words}",
        f"%t{name} = arith.shrui %word{s}, %bit{name} : {words}",
        f"%i{name} = arith.andi %t{name}, %two_bits : {words}",
    ]
    x, table = f"%x{name}_{column}", f"%r{window * k.m}_{column}"
    kinds = f"{_window(k)}, {_row(k, k.element)} (indices {words})"
    return x, [*([] if column else lines), f"{x} = tile.load {table}[%c0] indices %i{name} along 0 : {kinds}"]


def _chosen_step(k: GemvKernel, u: int, s: int, window: int) -> list[str]:
    """A kept element of each row of a stream times the element of x that its position chooses."""
    value, lines = _value(k, u, s)
    for bit in range(0 if k.tabled else (k.m - 1).bit_length()):
        lines += _condition(k, u, s, bit)
    for j in range(k.columns):
        elements = [f"%r{window * k.m + i}_{j}" for i in range(k.m)]
        x, steps = _picked(k, u, s, window, j) if k.tabled else _choice(k, u, s, elements, j)
        lines += [*steps, f"%f{u + 1}_{s}_{j} = math.fma {value}, {x}, %f{u}_{s}_{j} : {_row(k, k.element)}"]
    return lines


def _condition(k: GemvKernel, u: int, s: int, bit: int) -> list[str]:
    """Whether a bit of a position is set, for each row."""
    words, at = _row(k, "i32"), 2 * u + bit
    number = (1 << at) - (1 << 32 if at == 31 else 0)
    return [
        f"%bit{at}_{s} = arith.constant dense<{number}> : {words}",
        f"%t{at}_{s} = arith.andi %word{s}, %bit{at}_{s} : {words}",
        f"%c{at}_{s}_set = arith.cmpi ne, %t{at}_{s}, %no : {words}",
    ]


def _choice(k: GemvKernel, u: int, s: int, elements: list[str], column: int) -> tuple[str, list[str]]:
    """Of up to four elements of a window the one that a position names, for each row, and what chooses it."""
    kinds = f"{_row(k, 'i1')}, {_row(k, k.element)}"
    steps: list[str] = []
    for bit in range((len(elements) - 1).bit_length()):
        chosen = []
        for pair, (no, yes) in enumerate(zip(elements[::2], [*elements[1::2], elements[-1]], strict=False)):
            chosen.append(f"%x{u}_{s}_{column}_{bit}_{pair}")
            steps.append(f"{chosen[-1]} = tile.select %c{2 * u + bit}_{s}_set, {yes}, {no} : {kinds}")
        elements = chosen
    return elements[0], steps


def _lines(lines: list[str]) -> str:
    return "".join(f"      {line}\n" for line in lines)


def _out(k: GemvKernel, s: int, j: int, y: str) -> str:
    """A column's sums of the rows of a register."""
    wide, part, at = _row(k, k.element), _row(k, k.result), _at(k, j, f"%row{s}")
    dims, name = f"dims [{1 if k.across else 0}] valid (%left{s})", f"{s}_{j}"
    value, lines = f"%sums#{k.sums.index((s, j))}", []
    if k.adds:
        lines.append(f"%a{name} = tile.load %c{at} {dims} : {y}, {part}")
        if part != wide:
            lines.append(f"%aw{name} = tile.convert %a{name} : {part} -> {wide}")
        lines.append(f"%more{name} = arith.addf {value}, {f'%a{name}' if part == wide else f'%aw{name}'} : {wide}")
        value = f"%more{name}"
    if part != wide:
        lines.append(f"%n{name} = tile.convert {value} : {wide} -> {part}")
        value = f"%n{name}"
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


def _window(k: GemvKernel) -> str:
    return f'memref<{k.m}x{k.element}, strided<[1], offset: ?>, #tile.level<"l1">>'
