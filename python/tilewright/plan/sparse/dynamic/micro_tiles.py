# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that find live micro-tiles: one tells which hold an element other than zero, one lists these in order.

PIT (SOSP 2023, section 4) lets arriving blocks take slots by an atomic counter. Here a running sum gives each live
micro-tile its place, so that lists are ascending and equal from run to run; dead ones fill the list from its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Neighbours along the last dimension that one task looks at where micro-tiles are one element wide there.
GROUP = 64
#: Elements that a task holds at once.
_HELD = 2048
#: Micro-tiles that are put in order at once.
_LISTED = 64


def memref(shape: Sequence[int], element: str) -> str:
    """The type of a buffer; sizes below zero are open."""
    return f"memref<{'x'.join([*('?' if size < 0 else str(size) for size in shape), element])}>"


def group_of(unit: Sequence[int]) -> int:
    """How many micro-tiles along the last dimension a task of :func:`flags_text` looks at."""
    return GROUP if unit[-1] == 1 else 1


def chunk_of(unit: Sequence[int]) -> list[int]:
    """Sizes of the part of a task's elements that is held at once."""
    left, chunk = _HELD, []
    for size in reversed([*unit[:-1], unit[-1] * group_of(unit)]):
        chunk.append(min(size, 256, max(left, 1)))
        left //= chunk[-1]
    return chunk[::-1]


def flags_text(shape: Sequence[int], element: str, unit: Sequence[int], grid: Sequence[int]) -> str:
    """A kernel that writes one byte per micro-tile: whether it holds an element that is not zero (NaN is not).

    Args:
        shape: of the tensor; below zero where open.
        element: its element type, as text.
        unit: sizes of a micro-tile.
        grid: sizes of the flags, as far as known. The launch has a task per flag, but for the last dimension: one for
            :func:`group_of` flags.
    """
    rank, group, chunk = len(unit), group_of(unit), chunk_of(unit)
    source, flags = memref(shape, element), memref(grid, "i8")
    steps = [*unit[:-1], unit[-1] * group]
    looped = [d for d in range(rank) if steps[d] > chunk[d]]
    kept = f"{'1x' * (rank - 1)}{group}"
    tile = f"{'x'.join(map(str, chunk))}"
    dims = [d for d in range(rank) if d < rank - 1 or group == 1]
    lines = [f"tile.kernel @KERNEL(%x: {source}, %flags: {flags}) grid({_names('i', rank)}) {{"]
    lines += [f"%c{n} = arith.constant {n} : index" for n in sorted({*range(rank), *steps, *chunk, 0, 1, group})]
    for d in range(rank):
        lines += [
            f"%size{d} = memref.dim %x, %c{d} : {source}",
            f"%start{d} = arith.muli %i{d}, %c{steps[d]} : index",
            f"%inside{d} = arith.subi %size{d}, %start{d} : index",
            f"%part{d} = arith.minsi %inside{d}, %c{steps[d]} : index",
        ]
    lines.append(f"%none = arith.constant dense<0> : !tile.tile<{kept}xi32>")
    for depth, d in enumerate(looped):
        before = f"%acc{depth - 1}" if depth else "%none"
        lines.append(
            f"%found{depth} = scf.for %o{d} = %c0 to %part{d} step %c{chunk[d]} iter_args(%acc{depth} = {before})"
            f" -> (!tile.tile<{kept}xi32>) {{"
        )
    for d in range(rank):
        if d in looped:
            lines += [f"%at{d} = arith.addi %start{d}, %o{d} : index", f"%left{d} = arith.subi %part{d}, %o{d} : index"]
    parts = {d: (f"%at{d}", f"%left{d}") if d in looped else (f"%start{d}", f"%part{d}") for d in range(rank)}
    bounds = f"valid ({', '.join(left for _, left in parts.values())})"
    if all(size >= 0 and size % steps[d] == 0 and steps[d] % chunk[d] == 0 for d, size in enumerate(shape)):
        bounds = ""  # masks of loads take most of the time
    place = ", ".join(at for at, _ in parts.values())
    seen = [f"%t = tile.load %x[{place}] {bounds} : {source}, !tile.tile<{tile}x{element}>"]
    value, found = _any(tile, element, chunk, dims)
    seen += found
    if looped:
        value, seen = _once(seen, value, f"%acc{len(looped) - 1}", f"!tile.tile<{kept}xi32>", rank, group)
    lines += seen
    for depth in reversed(range(len(looped))):
        lines += [f"scf.yield {value} : !tile.tile<{kept}xi32>", "}"]
        value = f"%found{depth}"
    places = ", ".join([*(f"%i{d}" for d in range(rank - 1)), "%first"])
    lines += [
        f"%byte = tile.convert {value} : !tile.tile<{kept}xi32> -> !tile.tile<{kept}xi8>",
        f"%first = arith.muli %i{rank - 1}, %c{group} : index",
        f"%flagged = memref.dim %flags, %c{rank - 1} : {flags}",
        "%rest = arith.subi %flagged, %first : index",
        f"tile.store %byte, %flags[{places}] valid ({', '.join(['%c1'] * (rank - 1) + ['%rest'])})"
        f" : !tile.tile<{kept}xi8>, {flags}",
        "tile.return",
        "}",
    ]
    return "\n".join(lines)


def _any(tile: str, element: str, chunk: Sequence[int], dims: Sequence[int]) -> tuple[str, list[str]]:
    """Lines that tell of %t where an element is not zero, one number over all dimensions `dims`; its name."""
    kind = f"!tile.tile<{tile}xi32>"
    lines = [*not_zero(tile, element), f"%one = tile.convert %is unsigned : !tile.tile<{tile}xi1> -> {kind}"]
    if not dims:
        return "%one", lines
    reduced = "x".join("1" if d in dims else str(size) for d, size in enumerate(chunk))
    return "%any", [*lines, f"%any = tile.reduce or %one dims {dims} : {kind} -> !tile.tile<{reduced}xi32>"]


def _once(seen: list[str], value: str, before: str, kept: str, rank: int, group: int) -> tuple[str, list[str]]:
    """Lines that look at a part unless the one micro-tile of a task is known to be live; the name of what they find."""
    both = f"%both = arith.ori {before}, {value} : {kept}"
    if group > 1:
        return "%both", [*seen, both]
    ask = [
        f"%known = tile.extract {before} [{', '.join(['0'] * rank)}] : {kept} -> i32",
        "%nothing = arith.constant 0 : i32",
        "%open = arith.cmpi eq, %known, %nothing : i32",
        f"%now = scf.if %open -> ({kept}) {{",
    ]
    end = [f"scf.yield %both : {kept}", "} else {", f"scf.yield {before} : {kept}", "}"]
    return "%now", [*ask, *seen, both, *end]


def not_zero(tile: str, element: str) -> list[str]:
    """Lines that compare %t with zero; small floats are widened first."""
    kind, value, lines = element, "%t", []
    if element.startswith(("f", "bf")) and element not in ("f32", "f64"):
        kind, value = "f32", "%wide"
        lines.append(f"%wide = tile.convert %t : !tile.tile<{tile}x{element}> -> !tile.tile<{tile}xf32>")
    floats = kind.startswith("f")
    zero = "0.0" if floats else ("false" if kind == "i1" else "0")
    test = "cmpf une" if floats else "cmpi ne"
    lines.append(f"%zeros = arith.constant dense<{zero}> : !tile.tile<{tile}x{kind}>")
    lines.append(f"%is = arith.{test}, {value}, %zeros : !tile.tile<{tile}x{kind}>")
    return lines


def _names(letter: str, count: int) -> str:
    return ", ".join(f"%{letter}{d}" for d in range(count))


def list_text(grid: Sequence[int], axis: int) -> str:
    """A kernel that lists the live micro-tiles along an axis, ascending, then -1, and counts them.

    Each task does one row of micro-tiles: its coordinates are the other dimensions (one that says nothing where
    there are none).

    Args:
        grid: sizes of the flags, as far as known.
        axis: the dimension that is listed.
    """
    rank, width = len(grid), _LISTED
    flags, live = memref(grid, "i8"), memref(grid, "i32")
    count = memref([1 if d == axis else size for d, size in enumerate(grid)], "i32")
    others = [d for d in range(rank) if d != axis]
    at = ", ".join("%k" if d == axis else f"%i{d}" for d in range(rank))
    start = ", ".join("%c0" if d == axis else f"%i{d}" for d in range(rank))
    tile = f"!tile.tile<{width}xi32>"
    return f"""tile.kernel @KERNEL(%flags: {flags}, %live: {live}, %count: {count})
        grid({", ".join(f"%i{d}" for d in others) or "%i"}) {{
      %c0 = arith.constant 0 : index
      %axis = arith.constant {axis} : index
      %width = arith.constant {width} : index
      %n = memref.dim %flags, %axis : {flags}
      %zero = arith.constant dense<0> : !tile.tile<{width}xi8>
      %none = arith.constant dense<-1> : {tile}
      %lanes = tile.iota dim 0 : {tile}
      %ni = arith.index_cast %n : index to i32
      %one = arith.constant 1 : i32
      %last = arith.subi %ni, %one : i32
      %lasts = tile.splat %last : i32 -> {tile}
      %start = arith.constant 0 : i32
      %found = scf.for %k = %c0 to %n step %width iter_args(%before = %start) -> (i32) {{
        %left = arith.subi %n, %k : index
        %t = tile.load %flags[{at}] dims [{axis}] valid (%left) : {flags}, !tile.tile<{width}xi8>
        %is = arith.cmpi ne, %t, %zero : !tile.tile<{width}xi8>
        %ones = tile.convert %is unsigned : !tile.tile<{width}xi1> -> {tile}
        %sums = tile.scan add %ones dim 0 exclusive : {tile}
        %ki = arith.index_cast %k : index to i32
        %ks = tile.splat %ki : i32 -> {tile}
        %numbers = arith.addi %ks, %lanes : {tile}
        %befores = tile.splat %before : i32 -> {tile}
        %front = arith.addi %befores, %sums : {tile}
        %dead = arith.subi %numbers, %front : {tile}
        %back = arith.subi %lasts, %dead : {tile}
        %place = tile.select %is, %front, %back : !tile.tile<{width}xi1>, {tile}
        %what = tile.select %is, %numbers, %none : !tile.tile<{width}xi1>, {tile}
        tile.store %what, %live[{start}] dims [{axis}] indices %place along 0 valid (%left)
            : {tile}, {live} (indices {tile})
        %sum = tile.reduce add %ones dims [0] : {tile} -> !tile.tile<1xi32>
        %more = tile.extract %sum [0] : !tile.tile<1xi32> -> i32
        %next = arith.addi %before, %more : i32
        scf.yield %next : i32
      }}
      %counted = tile.splat %found : i32 -> !tile.tile<{"1x" * rank}i32>
      tile.store %counted, %count[{start}] : !tile.tile<{"1x" * rank}i32>, {count}
      tile.return
    }}"""


def tasks_of(flags: int, unit: Sequence[int]) -> int:
    """Tasks of :func:`flags_text` along the last dimension, for a number of flags there."""
    return math.ceil(flags / group_of(unit))
