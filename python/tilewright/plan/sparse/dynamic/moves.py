# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of `sparse_tile.gather` and `scatter` that stand alone: PIT's SRead and SWrite (SOSP 2023, section 4).

An index that is no slice is never followed: the bound of its load or store is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.plan.sparse.dynamic.micro_tiles import memref

#: Elements along the last dimension that a task moves at once.
WIDTH = 256
#: Slices that a task moves, one after the other, where a task has a thread: starting one costs as much as moving a few.
SLICES = 16


def gather_text(source: Sequence[int], count: int, element: str, axis: int) -> str:
    """A kernel that copies slices side by side, zeros for indices that are none.

    Its arguments are the source, the indices and the result; its grid the result's dimensions, the last in steps of
    :data:`WIDTH`.

    Args:
        source: sizes of the source; below zero where open.
        count: number of indices.
        element: type of the elements, as text.
        axis: the dimension of which slices are taken.
    """
    rank = len(source)
    result = [count if d == axis else size for d, size in enumerate(source)]
    x, y, indices = memref(source, element), memref(result, element), memref([count], "i32")
    row = f"!tile.tile<{'1x' * (rank - 1)}{WIDTH}x{element}>"
    read = _gathered(x, indices, element, rank) if axis == rank - 1 else _picked(x, indices, row, rank, axis)
    return f"""tile.kernel @KERNEL(%x: {x}, %indices: {indices}, %y: {y}) grid({_coordinates(rank)}) {{
      {_columns("%y", y, rank)}
      %axis = arith.constant {axis} : index
      %size = memref.dim %x, %axis : {x}
      {read}
      tile.store %t, %y[{_place(rank)}] valid ({_bounds(rank, "%left")}) : {row}, {y}
      tile.return
    }}"""


def scatter_text(source: Sequence[int], init: Sequence[int], element: str, axis: int, add: bool) -> str:
    """A kernel that puts slices to their places; those of indices that are none go nowhere.

    Its arguments are the source, the indices and the tensor that is changed; its grid the source's dimensions, the last
    in steps of :data:`WIDTH`. Where :func:`is_ordered`, there is one task along the axis, in which slices follow each
    other: sums do not depend on the run.

    Args:
        source: sizes of the source; below zero where open.
        init: sizes of what is changed.
        element: type of the elements, as text.
        axis: the dimension of which slices are placed.
        add: whether they are added to what is there.
    """
    rank = len(source)
    x, y, indices = memref(source, element), memref(init, element), memref([source[axis]], "i32")
    row = f"!tile.tile<{'1x' * (rank - 1)}{1 if axis == rank - 1 else WIDTH}x{element}>"
    ordered = is_ordered(rank, axis, add)
    moved = f"""{_index("%s" if ordered else f"%i{axis}", indices, "%c1" if axis == rank - 1 else "%left")}
      %t = tile.load %x[{_place(rank, axis, "%s" if ordered else f"%i{axis}")}] valid ({_bounds(rank, "%bound")})
          : {x}, {row}
      tile.store %t, %y[{_place(rank, axis, "%safe")}] valid ({_bounds(rank, "%bound")}) {"reduce add" if add else ""}
          : {row}, {y}"""
    loop = f"scf.for %s = %c0 to %n step %c1 {{\n{moved}\n}}" if ordered else moved
    return f"""tile.kernel @KERNEL(%x: {x}, %indices: {indices}, %y: {y}) grid({_coordinates(rank)}) {{
      {_columns("%x", x, rank)}
      %axis = arith.constant {axis} : index
      %n = memref.dim %x, %axis : {x}
      %size = memref.dim %y, %axis : {y}
      {loop}
      tile.return
    }}"""


def is_ordered(rank: int, axis: int, add: bool) -> bool:
    """Whether one task of :func:`scatter_text` places all slices, in order."""
    return add or axis == rank - 1


def piece_of(size: int) -> int | None:
    """Elements of a slice of so many that a task of :func:`pieces_text` moves; None where no piece fits.

    A piece is whole: masked stores of pieces that may end early are slow without AVX-512 (a dozen cycles on Zen).
    """
    whole = [piece for piece in range(8, min(size, WIDTH) + 1, 8) if size % piece == 0]
    return max(whole, default=None)


def pieces_text(shape: Sequence[int], other: Sequence[int], element: str, scatters: bool) -> str:
    """A kernel that moves slices [size] of two tensors [slices, size], each in whole pieces (:func:`piece_of`).

    Its arguments are the source, the indices and the result (zeros for indices that are none), or, where it scatters,
    the tensor that is changed; its grid the listed slices in steps of :data:`SLICES`, and pieces.

    Args:
        shape: sizes of the source; below zero where open.
        other: sizes of the result.
        element: type of the elements, as text.
        scatters: whether the result is indexed, not the source.
    """
    listed = shape[0] if scatters else other[0]
    x, y, indices = memref(shape, element), memref(other, element), memref([listed], "i32")
    row = f"!tile.tile<1x{piece_of(shape[1])}x{element}>"
    read, written = ("%s", "%index") if scatters else ("%index", "%s")
    nothing = "" if scatters else f"else {{\ntile.store %zeros, %y[%s, %first] : {row}, {y}\n}}"
    zero = "0.0" if element.startswith(("f", "bf")) else "false" if element == "i1" else "0"
    return f"""tile.kernel @KERNEL(%x: {x}, %indices: {indices}, %y: {y}) grid(%i0, %i1) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %slices = arith.constant {SLICES} : index
      %piece = arith.constant {piece_of(shape[1])} : index
      %n = memref.dim %indices, %c0 : {indices}
      %size = memref.dim {"%y" if scatters else "%x"}, %c0 : {y if scatters else x}
      %zeros = arith.constant dense<{zero}> : {row}
      %first = arith.muli %i1, %piece : index
      %from = arith.muli %i0, %slices : index
      %next = arith.addi %from, %slices : index
      %to = arith.minsi %next, %n : index
      scf.for %s = %from to %to step %c1 {{
        %list = tile.load %indices[%s] : {indices}, !tile.tile<1xi32>
        %number = tile.extract %list [0] : !tile.tile<1xi32> -> i32
        %index = arith.index_cast %number : i32 to index
        %is = arith.cmpi ult, %index, %size : index
        scf.if %is {{
          %t = tile.load %x[{read}, %first] : {x}, {row}
          tile.store %t, %y[{written}, %first] : {row}, {y}
        }} {nothing}
      }}
      tile.return
    }}"""


def _coordinates(rank: int) -> str:
    return ", ".join(f"%i{d}" for d in range(rank))


def _columns(name: str, kind: str, rank: int) -> str:
    """%first, where the columns of a task begin, and %left, how many there are from there on."""
    return f"""%c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %width = arith.constant {WIDTH} : index
      %d = arith.constant {rank - 1} : index
      %all = memref.dim {name}, %d : {kind}
      %first = arith.muli %i{rank - 1}, %width : index
      %left = arith.subi %all, %first : index"""


def _place(rank: int, axis: int = -1, at: str = "") -> str:
    """The offsets of a task's row, with another one along an axis."""
    return ", ".join(at if d == axis else "%first" if d == rank - 1 else f"%i{d}" for d in range(rank))


def _bounds(rank: int, last: str) -> str:
    return ", ".join(["%c1"] * (rank - 1) + [last])


def _index(at: str, indices: str, bound: str) -> str:
    """%safe, the slice that an index names, and %bound: zero where there is none."""
    return f"""%list = tile.load %indices[{at}] : {indices}, !tile.tile<1xi32>
      %number = tile.extract %list [0] : !tile.tile<1xi32> -> i32
      %index = arith.index_cast %number : i32 to index
      %is = arith.cmpi ult, %index, %size : index
      %safe = arith.select %is, %index, %c0 : index
      %bound = arith.select %is, {bound}, %c0 : index"""


def _picked(x: str, indices: str, row: str, rank: int, axis: int) -> str:
    """Part of a slice as %t."""
    return f"""{_index(f"%i{axis}", indices, "%left")}
      %t = tile.load %x[{_place(rank, axis, "%safe")}] valid ({_bounds(rank, "%bound")}) : {x}, {row}"""


def _gathered(x: str, indices: str, element: str, rank: int) -> str:
    """Elements along the last dimension as %t: each lane has an index of its own."""
    shape, numbers = f"{'1x' * (rank - 1)}{WIDTH}", f"!tile.tile<{WIDTH}xi32>"
    zero = "0.0" if element.startswith(("f", "bf")) else "false" if element == "i1" else "0"
    offsets = ", ".join([f"%i{d}" for d in range(rank - 1)] + ["%c0"])
    return f"""%list = tile.load %indices[%first] valid (%left) : {indices}, {numbers}
      %sizei = arith.index_cast %size : index to i32
      %sizes = tile.splat %sizei : i32 -> {numbers}
      %is = arith.cmpi ult, %list, %sizes : {numbers}
      %none = arith.constant dense<0> : {numbers}
      %safe = tile.select %is, %list, %none : !tile.tile<{WIDTH}xi1>, {numbers}
      %any = arith.cmpi ne, %size, %c0 : index
      %bound = arith.select %any, %left, %c0 : index
      %read = tile.load %x[{offsets}] indices %safe along {rank - 1} valid ({_bounds(rank, "%bound")})
          : {x}, !tile.tile<{shape}x{element}> (indices {numbers})
      %row = tile.reshape %is : !tile.tile<{WIDTH}xi1> -> !tile.tile<{shape}xi1>
      %zeros = arith.constant dense<{zero}> : !tile.tile<{shape}x{element}>
      %t = tile.select %row, %read, %zeros : !tile.tile<{shape}xi1>, !tile.tile<{shape}x{element}>"""
