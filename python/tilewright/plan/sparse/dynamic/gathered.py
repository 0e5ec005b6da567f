# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for GPUs that gather what is live of `a` as they load it, and scatter as they store (PIT, SOSP 2023).

A thread block multiplies a dense tile whose rows or columns are those that a list names: SRead and SWrite are the
indices of its loads and stores.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plan.sparse.dynamic.micro_tiles import memref


@dataclass(frozen=True)
class Block:
    """What a thread block multiplies.

    Attributes:
        m, k, n: sizes of the product; `m` below zero where open.
        rows, columns, depth: of its tiles.
        a, b, c: element types.
    """

    m: int
    k: int
    n: int
    rows: int
    columns: int
    depth: int
    a: str
    b: str
    c: str

    @property
    def groups(self) -> int:
        """Blocks of rows; below zero where open."""
        return -1 if self.m < 0 else -(-self.m // self.rows)

    def tiles(self) -> tuple[str, str, str]:
        """Types of the tiles of a, b and c."""
        shapes = (self.rows, self.depth, self.a), (self.depth, self.columns, self.b), (self.rows, self.columns, self.c)
        x, y, z = (f"!tile.tile<{rows}x{columns}x{kind}>" for rows, columns, kind in shapes)
        return x, y, z

    def buffers(self) -> tuple[str, str, str]:
        """Types of a, b and c."""
        return memref([self.m, self.k], self.a), memref([self.k, self.n], self.b), memref([self.m, self.n], self.c)


def gathered_columns_text(g: Block, init: bool) -> str:
    """A kernel that multiplies the listed columns of each block of rows with the same rows of `b`.

    Arguments: `a`; the lists [groups, k] and counts [groups, 1] as `sparse_tile.index` makes them; `b`; the result,
    which holds what is added to where `init`. Grid: blocks of rows, blocks of columns.
    """
    (x, y, z), (a, b, c) = g.tiles(), g.buffers()
    lists, counts = memref([g.groups, g.k], "i32"), memref([g.groups, 1], "i32")
    indices = f"!tile.tile<{g.depth}xi32>"
    return f"""tile.kernel @KERNEL(%a: {a}, %lists: {lists}, %counts: {counts}, %b: {b}, %c: {c}) grid(%i, %j) {{
      {_places(g, a)}
      %row = arith.muli %i, %rows : index
      %below = arith.subi %m, %row : index
      {_count("%counts[%i, %c0]", counts)}
      {_begin(init, f"%c[%row, %column] valid (%below, %right) : {c}, {z}", z)}
      %sum = scf.for %p = %c0 to %count step %depth iter_args(%acc = %begin) -> ({z}) {{
        %left = arith.subi %count, %p : index
        %list = tile.load %lists[%i, %p] valid (%left) : {lists}, {indices}
        %x = tile.load %a[%row, %c0] indices %list along 1 valid (%below, %left) : {a}, {x} (indices {indices})
        %y = tile.load %b[%c0, %column] indices %list along 0 valid (%left, %right) : {b}, {y} (indices {indices})
        %next = tile.mma %x, %y, %acc : {x}, {y}, {z}
        scf.yield %next : {z}
      }}
      tile.store %sum, %c[%row, %column] valid (%below, %right) : {z}, {c}
      tile.return
    }}"""


def gathered_rows_text(g: Block, init: bool) -> str:
    """A kernel that multiplies the listed rows, and stores results to the rows that they are.

    Arguments: `a`; the list [m, 1] and its count [1, 1] as `sparse_tile.index` makes them; `b`; the result, which holds
    what other rows keep, and is added to where `init`. Grid: blocks of listed rows, blocks of columns.
    """
    (x, y, z), (a, b, c) = g.tiles(), g.buffers()
    lists, indices = memref([g.m, 1], "i32"), f"!tile.tile<{g.rows}xi32>"
    held = f"%c[%c0, %column] indices %list along 0 valid (%full, %right) : {c}, {z} (indices {indices})"
    return f"""tile.kernel @KERNEL(%a: {a}, %lists: {lists}, %counts: memref<1x1xi32>, %b: {b}, %c: {c}) grid(%i, %j) {{
      {_places(g, a)}
      %first = arith.muli %i, %rows : index
      {_count("%counts[%c0, %c0]", "memref<1x1xi32>")}
      %full = arith.subi %count, %first : index
      %some = arith.cmpi sgt, %full, %c0 : index
      scf.if %some {{
        %list = tile.load %lists[%first, %c0] dims [0] valid (%full) : {lists}, {indices}
        {_begin(init, held, z)}
        %sum = scf.for %p = %c0 to %k step %depth iter_args(%acc = %begin) -> ({z}) {{
          %left = arith.subi %k, %p : index
          %x = tile.load %a[%c0, %p] indices %list along 0 valid (%full, %left) : {a}, {x} (indices {indices})
          %y = tile.load %b[%p, %column] valid (%left, %right) : {b}, {y}
          %next = tile.mma %x, %y, %acc : {x}, {y}, {z}
          scf.yield %next : {z}
        }}
        tile.store %sum, %c[%c0, %column] indices %list along 0 valid (%full, %right) : {z}, {c} (indices {indices})
      }}
      tile.return
    }}"""


def _places(g: Block, a: str) -> str:
    return f"""%c0 = arith.constant 0 : index
      %k = arith.constant {g.k} : index
      %n = arith.constant {g.n} : index
      %rows = arith.constant {g.rows} : index
      %columns = arith.constant {g.columns} : index
      %depth = arith.constant {g.depth} : index
      %m = memref.dim %a, %c0 : {a}
      %column = arith.muli %j, %columns : index
      %right = arith.subi %n, %column : index"""


def _count(place: str, kind: str) -> str:
    return f"""%ct = tile.load {place} : {kind}, !tile.tile<1x1xi32>
      %cx = tile.extract %ct [0, 0] : !tile.tile<1x1xi32> -> i32
      %count = arith.index_cast %cx : i32 to index"""


def _begin(init: bool, place: str, z: str) -> str:
    return f"%begin = tile.load {place}" if init else f"%begin = arith.constant dense<0.0> : {z}"
