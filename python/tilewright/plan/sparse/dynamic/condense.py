# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for CPUs that multiply what is live of a matrix `a`, in a few rows at once (PIT, SOSP 2023, section 4).

SRead is the packing that a product on a CPU wants anyway: the live columns of some rows, or the live rows of some
columns, are laid side by side where they are found. The product reads them in order, and of the packed panels of `b`
the rows that the list names. SWrite are the addresses that results are stored to.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plan.sparse.dynamic.micro_tiles import memref, not_zero

#: Columns that are looked at at once.
_LOOKED = 64
#: Groups of rows that one task multiplies: their packed columns stay in the second-level cache.
GROUPS = 64


@dataclass(frozen=True)
class Geometry:
    """Sizes of a product's kernels.

    Attributes:
        m, k, n: of the product; `m` below zero where open.
        rows: that are multiplied at once, as many as registers hold.
        width: columns of a panel of `b`.
        element: type of `a`'s elements, as text.
        wide: type that products are summed in.
        result: type of the result's elements.
        limit: live columns up to which a group of rows is packed; more are read where they are.
    """

    m: int
    k: int
    n: int
    rows: int
    width: int
    element: str
    wide: str
    result: str
    limit: int = 0

    @property
    def groups(self) -> int:
        """Groups of rows; below zero where open."""
        return -1 if self.m < 0 else -(-self.m // self.rows)

    @property
    def panels(self) -> int:
        """Panels of `b`."""
        return -(-self.n // self.width)

    def tile(self, rows: int, columns: int, kind: str | None = None) -> str:
        """The type of a tile, of the wide type where none is given."""
        return f"!tile.tile<{rows}x{columns}x{kind or self.wide}>"

    def converted(self, name: str, result: str, shape: tuple[int, int], kinds: tuple[str, str]) -> str:
        """A line that converts a tile; it only renames where the types are the same."""
        source, target = (self.tile(*shape, kind) for kind in kinds)
        return f"%{result} = tile.convert %{name} : {source} -> {target}"


def condense_columns_text(g: Geometry) -> str:
    """A kernel that lists the live columns of each group of rows, and packs them where they are few.

    Arguments: `a` [m, k]; packed [groups, k + 1, rows]; the lists [groups, k + 1]; counts [groups]. What is at the end
    of a list and its packed columns is of no meaning. The grid are the groups.
    """
    a, packed = memref([g.m, g.k], g.element), memref([g.groups, g.k + 1, g.rows], g.wide)
    lists, counts = memref([g.groups, g.k + 1], "i32"), memref([g.groups], "i32")
    seen, numbers = f"{g.rows}x{_LOOKED}", f"!tile.tile<{_LOOKED}xi32>"
    whole = g.m > 0 and g.m % g.rows == 0 and g.k % _LOOKED == 0
    bounds = "" if whole else "valid (%below, %left)"  # masks of loads take most of the time
    return f"""tile.kernel @KERNEL(%a: {a}, %packed: {packed}, %lists: {lists}, %counts: {counts}) grid(%i) {{
      {_constants(g)}
      %m = memref.dim %a, %c0 : {a}
      %row = arith.muli %i, %rows : index
      %below = arith.subi %m, %row : index
      %looked = arith.constant {_LOOKED} : index
      %all = arith.constant {_LOOKED} : i32
      %lanes = tile.iota dim 0 : {numbers}
      %start = arith.constant 0 : i32
      %found = scf.for %p = %c0 to %k step %looked iter_args(%before = %start) -> (i32) {{
        %left = arith.subi %k, %p : index
        %t = tile.load %a[%row, %p] {bounds} : {a}, !tile.tile<{seen}x{g.element}>
        {" ".join(line + chr(10) for line in not_zero(seen, g.element))}
        %any = tile.reduce or %is dims [0] : !tile.tile<{seen}xi1> -> !tile.tile<1x{_LOOKED}xi1>
        %live = tile.reshape %any : !tile.tile<1x{_LOOKED}xi1> -> !tile.tile<{_LOOKED}xi1>
        %ones = tile.convert %live unsigned : !tile.tile<{_LOOKED}xi1> -> {numbers}
        %sum = tile.reduce add %ones dims [0] : {numbers} -> !tile.tile<1xi32>
        %more = tile.extract %sum [0] : !tile.tile<1xi32> -> i32
        %next = arith.addi %before, %more : i32
        %pi = arith.index_cast %p : index to i32
        %ps = tile.splat %pi : i32 -> {numbers}
        %named = arith.addi %ps, %lanes : {numbers}
        %is_all = arith.cmpi eq, %more, %all : i32
        %is_some = arith.cmpi ne, %more, %start : i32
        scf.if %is_all {{
          %to = arith.index_cast %before : i32 to index
          tile.store %named, %lists[%i, %to] : {numbers}, {lists}
        }} else {{
          scf.if %is_some {{
            %sums = tile.scan add %ones dim 0 exclusive : {numbers}
            %befores = tile.splat %before : i32 -> {numbers}
            %nexts = tile.splat %next : i32 -> {numbers}
            %front = arith.addi %befores, %sums : {numbers}
            %place = tile.select %live, %front, %nexts : !tile.tile<{_LOOKED}xi1>, {numbers}
            tile.store %named, %lists[%i, %c0] indices %place along 0 valid (%left)
                : {numbers}, {lists} (indices {numbers})
          }}
        }}
        scf.yield %next : i32
      }}
      %counted = tile.splat %found : i32 -> !tile.tile<1xi32>
      tile.store %counted, %counts[%i] : !tile.tile<1xi32>, {counts}
      %count = arith.index_cast %found : i32 to index
      %few = arith.cmpi ule, %count, %limit : index
      %packs = arith.select %few, %count, %c0 : index
      scf.for %p = %c0 to %packs step %c1 {{
        {_number("%lists[%i, %p]", lists)}
        %column = tile.load %a[%row, %at] valid (%below, %c1) : {a}, {g.tile(g.rows, 1, g.element)}
        {g.converted("column", "wide_column", (g.rows, 1), (g.element, g.wide))}
        tile.store %wide_column, %packed[%i, %p, %c0] dims [2, 1] : {g.tile(g.rows, 1)}, {packed}
      }}
      tile.return
    }}"""


def columns_product_text(g: Geometry, init: bool) -> str:
    """A kernel that multiplies listed columns of `a` with the same rows of `b`, a group of rows after the other.

    Arguments: `a` [m, k], packed, lists and counts as :func:`condense_columns_text` leaves them; `b` in panels [panels,
    k, width]; the result [m, n], which holds what is added to where `init`. Grid: panels, and :data:`GROUPS` groups.
    """
    a, packed = memref([g.m, g.k], g.element), memref([g.groups, g.k + 1, g.rows], g.wide)
    lists, counts = memref([g.groups, g.k + 1], "i32"), memref([g.groups], "i32")
    b, c = memref([g.panels, g.k, g.width], g.wide), memref([g.m, g.n], g.result)
    sums = g.tile(g.rows, g.width)
    return f"""tile.kernel @KERNEL(%a: {a}, %packed: {packed}, %lists: {lists}, %counts: {counts}, %b: {b}, %c: {c})
        grid(%j, %q) {{
      {_constants(g)}
      %m = memref.dim %a, %c0 : {a}
      %all = memref.dim %counts, %c0 : {counts}
      %step = arith.constant {GROUPS} : index
      %first = arith.muli %q, %step : index
      %behind = arith.addi %first, %step : index
      %end = arith.minsi %behind, %all : index
      {_panel(g)}
      scf.for %i = %first to %end step %c1 {{
        %row = arith.muli %i, %rows : index
        %below = arith.subi %m, %row : index
        %ct = tile.load %counts[%i] : {counts}, !tile.tile<1xi32>
        %cx = tile.extract %ct [0] : !tile.tile<1xi32> -> i32
        %count = arith.index_cast %cx : i32 to index
        {_begin(g, init, c, "%c[%row, %column] valid (%below, %right)")}
        %few = arith.cmpi ule, %count, %limit : index
        %sum = scf.if %few -> ({sums}) {{
          %part = scf.for %p = %c0 to %count step %c1 iter_args(%acc = %begin) -> ({sums}) {{
            {_number("%lists[%i, %p]", lists)}
            %x = tile.load %packed[%i, %p, %c0] dims [2, 1] : {packed}, {g.tile(g.rows, 1)}
            {_multiply(g, "%at", b)}
          }}
          scf.yield %part : {sums}
        }} else {{
          %part = scf.for %p = %c0 to %k step %c1 iter_args(%acc = %begin) -> ({sums}) {{
            %read = tile.load %a[%row, %p] valid (%below, %c1) : {a}, {g.tile(g.rows, 1, g.element)}
            {g.converted("read", "x", (g.rows, 1), (g.element, g.wide))}
            {_multiply(g, "%p", b)}
          }}
          scf.yield %part : {sums}
        }}
        {g.converted("sum", "stored", (g.rows, g.width), (g.wide, g.result))}
        tile.store %stored, %c[%row, %column] valid (%below, %right) : {g.tile(g.rows, g.width, g.result)}, {c}
      }}
      tile.return
    }}"""


def condense_rows_text(g: Geometry, depth: int) -> str:
    """A kernel that packs, of each `depth` columns, the live rows, in groups.

    Arguments: `a` [m, k]; live rows [m, blocks] and counts [1, blocks] as `sparse_tile.index` lists them; packed
    [blocks, groups, depth, rows]. Grid: blocks of columns, groups.
    """
    blocks = -(-g.k // depth)
    a, packed = memref([g.m, g.k], g.element), memref([blocks, g.groups, depth, g.rows], g.wide)
    live, counts = memref([g.m, blocks], "i32"), memref([1, blocks], "i32")
    indices, held = f"!tile.tile<{g.rows}xi32>", min(depth, 16)
    return f"""tile.kernel @KERNEL(%a: {a}, %live: {live}, %counts: {counts}, %packed: {packed}) grid(%s, %i) {{
      {_constants(g)}
      {_group(live, counts, indices)}
      %depth = arith.constant {depth} : index
      %held = arith.constant {held} : index
      %start = arith.muli %s, %depth : index
      %inside = arith.subi %k, %start : index
      %deep = arith.minsi %inside, %depth : index
      %some = arith.cmpi sgt, %full, %c0 : index
      %columns = arith.select %some, %deep, %c0 : index
      scf.for %p = %c0 to %columns step %held {{
        %at = arith.addi %start, %p : index
        %left = arith.subi %deep, %p : index
        %t = tile.load %a[%c0, %at] indices %list along 0 valid (%full, %left)
            : {a}, {g.tile(g.rows, held, g.element)} (indices {indices})
        {g.converted("t", "wide", (g.rows, held), (g.element, g.wide))}
        tile.store %wide, %packed[%s, %i, %p, %c0] dims [3, 2] valid (%rows, %left)
            : {g.tile(g.rows, held)}, {packed}
      }}
      tile.return
    }}"""


def rows_product_text(g: Geometry, depth: int, init: bool) -> str:
    """A kernel that multiplies packed live rows, block of columns after block, into the rows that they are.

    Arguments: live rows, counts and packed rows as :func:`condense_rows_text` has them; `b` in panels; the result [m,
    n], which holds what is added to where `init`. Grid: panels.

    Rows of several blocks are summed in a buffer of the task, where `m` is known: rows of the result lie a multiple of
    a page apart for many sizes, and would push each other out of the caches.
    """
    blocks = -(-g.k // depth)
    packed, live = memref([blocks, g.groups, depth, g.rows], g.wide), memref([g.m, blocks], "i32")
    counts, indices = memref([1, blocks], "i32"), f"!tile.tile<{g.rows}xi32>"
    b, c = memref([g.panels, g.k, g.width], g.wide), memref([g.m, g.n], g.result)
    sums, own = g.tile(g.rows, g.width), g.m > 0
    kept, held = (memref([g.groups * g.rows, g.width], g.wide), g.wide) if own else (c, g.result)
    place = f"{'%sums[%c0, %c0]' if own else '%c[%c0, %column]'} indices %list along 0 valid (%full, %bound)"
    return f"""tile.kernel @KERNEL(%live: {live}, %counts: {counts}, %packed: {packed}, %b: {b}, %c: {c}) grid(%j) {{
      {_constants(g)}
      %m = memref.dim %c, %c0 : {c}
      %depth = arith.constant {depth} : index
      %blocks = arith.constant {blocks} : index
      {_panel(g)}
      %bound = arith.{"addi %width, %c0" if own else "addi %right, %c0"} : index
      {f"%sums = tile.alloc {{alignment = 64 : i64}} : {kept}" if own else ""}
      {_copied_rows(g, c, kept, init, True) if own else "" if init else _zeros(g, c)}
      scf.for %s = %c0 to %blocks step %c1 {{
        %start = arith.muli %s, %depth : index
        %inside = arith.subi %k, %start : index
        %deep = arith.minsi %inside, %depth : index
        %nt = tile.load %counts[%c0, %s] : {counts}, !tile.tile<1xi32>
        %nx = tile.extract %nt [0] : !tile.tile<1xi32> -> i32
        %n = arith.index_cast %nx : i32 to index
        %groups = arith.ceildivsi %n, %rows : index
        scf.for %i = %c0 to %groups step %c1 {{
          {_group(live, counts, indices)}
          %before_it = tile.load {place} : {kept}, {g.tile(g.rows, g.width, held)} (indices {indices})
          {g.converted("before_it", "begin", (g.rows, g.width), (held, g.wide))}
          %sum = scf.for %p = %c0 to %deep step %c1 iter_args(%acc = %begin) -> ({sums}) {{
            %at = arith.addi %start, %p : index
            %x = tile.load %packed[%s, %i, %p, %c0] dims [3, 2] : {packed}, {g.tile(g.rows, 1)}
            {_multiply(g, "%at", b)}
          }}
          {g.converted("sum", "stored", (g.rows, g.width), (g.wide, held))}
          tile.store %stored, {place} : {g.tile(g.rows, g.width, held)}, {kept} (indices {indices})
        }}
      }}
      {_copied_rows(g, c, kept, init, False) if own else ""}
      tile.return
    }}"""


def _copied_rows(g: Geometry, c: str, kept: str, init: bool, begins: bool) -> str:
    """The task's columns of the result, to its own buffer and back; they begin as zeros where there is no `init`."""
    narrow, wide = g.tile(g.rows, g.width, g.result), g.tile(g.rows, g.width)
    there = f"%c[%r, %column] valid (%over, %right) : {c}, {narrow}"
    if not begins:
        moved = f"""%w = tile.load %sums[%r, %c0] : {kept}, {wide}
        {g.converted("w", "t", (g.rows, g.width), (g.wide, g.result))}
        tile.store %t, %c[%r, %column] valid (%over, %right) : {narrow}, {c}"""
    elif init:
        moved = f"""%t = tile.load {there}
        {g.converted("t", "w", (g.rows, g.width), (g.result, g.wide))}
        tile.store %w, %sums[%r, %c0] : {wide}, {kept}"""
    else:
        moved = f"""%w = arith.constant dense<0.0> : {wide}
        tile.store %w, %sums[%r, %c0] : {wide}, {kept}"""
    return f"""scf.for %r = %c0 to %m step %rows {{
        %over = arith.subi %m, %r : index
        {moved}
      }}"""


def panels_text(g: Geometry, element: str) -> str:
    """A kernel that packs a `b` [k, n] that a run brings into panels [panels, k, width]. Grid: panels."""
    b, packed = memref([g.k, g.n], element), memref([g.panels, g.k, g.width], g.wide)
    return f"""tile.kernel @KERNEL(%b: {b}, %packed: {packed}) grid(%j) {{
      {_constants(g)}
      {_panel(g)}
      scf.for %p = %c0 to %k step %c1 {{
        %t = tile.load %b[%p, %column] valid (%c1, %right) : {b}, {g.tile(1, g.width, element)}
        {g.converted("t", "wide", (1, g.width), (element, g.wide))}
        tile.store %wide, %packed[%j, %p, %c0] : {g.tile(1, g.width)}, {packed}
      }}
      tile.return
    }}"""


def _constants(g: Geometry) -> str:
    return f"""%c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %k = arith.constant {g.k} : index
      %rows = arith.constant {g.rows} : index
      %limit = arith.constant {g.limit} : index"""


def _panel(g: Geometry) -> str:
    """Where the columns of panel %j begin, and how many are right of there."""
    return f"""%width = arith.constant {g.width} : index
      %all_columns = arith.constant {g.n} : index
      %column = arith.muli %j, %width : index
      %right = arith.subi %all_columns, %column : index"""


def _number(place: str, kind: str) -> str:
    """An entry of a list as %at."""
    return f"""%nt = tile.load {place} : {kind}, !tile.tile<1xi32>
        %nx = tile.extract %nt [0] : !tile.tile<1xi32> -> i32
        %at = arith.index_castui %nx : i32 to index"""


def _group(live: str, counts: str, indices: str) -> str:
    """The rows of group %i of column block %s as %list, of which %full count."""
    return f"""%gt = tile.load %counts[%c0, %s] : {counts}, !tile.tile<1xi32>
      %gx = tile.extract %gt [0] : !tile.tile<1xi32> -> i32
      %live_rows = arith.index_cast %gx : i32 to index
      %before = arith.muli %i, %rows : index
      %full = arith.subi %live_rows, %before : index
      %list = tile.load %live[%before, %s] dims [0] valid (%full) : {live}, {indices}"""


def _begin(g: Geometry, init: bool, c: str, place: str) -> str:
    """What sums begin with, as %begin."""
    if not init:
        return f"%begin = arith.constant dense<0.0> : {g.tile(g.rows, g.width)}"
    return f"""%held_before = tile.load {place} : {c}, {g.tile(g.rows, g.width, g.result)}
        {g.converted("held_before", "begin", (g.rows, g.width), (g.result, g.wide))}"""


def _multiply(g: Geometry, at: str, b: str) -> str:
    """One step of a sum: %x times a row of the panel, and the end of the loop's body."""
    x, y, sums = g.tile(g.rows, 1), g.tile(1, g.width), g.tile(g.rows, g.width)
    return f"""%y = tile.load %b[%j, {at}, %c0] : {b}, {y}
            %next = tile.mma %x, %y, %acc : {x}, {y}, {sums}
            scf.yield %next : {sums}"""


def _zeros(g: Geometry, c: str) -> str:
    """The panel's columns of the result, emptied."""
    return f"""%none = arith.constant dense<0.0> : {g.tile(g.rows, g.width, g.result)}
      scf.for %r = %c0 to %m step %rows {{
        %over = arith.subi %m, %r : index
        tile.store %none, %c[%r, %column] valid (%over, %right) : {g.tile(g.rows, g.width, g.result)}, {c}
      }}"""
