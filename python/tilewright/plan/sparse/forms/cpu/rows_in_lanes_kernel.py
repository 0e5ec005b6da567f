# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of the family `rows_in_lanes`, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.plan.sparse.forms.cpu.row_pairs_kernel import PairsKernel
from tilewright.plan.sparse.forms.cpu.rows_of_blocks import Panels
from tilewright.plan.sparse.forms.cpu.rows_of_blocks_kernel import sums_of_blocks

_STRIP = 128
"""Sums of so many rows are written at once: rows of y, which lie across, get whole cache lines side by side."""


@dataclass(frozen=True)
class RowsKernel:
    """What the kernel is made for: y = W @ x, W [rows, depth] sparse, x [depth, columns].

    Attributes:
        rows: of W.
        depth: terms of a sum.
        columns: of x; below zero where a run brings them.
        width: columns of a task, a multiple of `lanes`: one row of them is held in registers.
        lanes: elements of a vector register.
        block: rows of x that lie in the nearest cache together.
        panel: blocks of x that are fetched at once, and lie in the second cache.
        chunk: rows of W that a task takes, a multiple of `lanes` unless it is all of them.
        count: kept elements of a row of W in a block; None: `starts` says where each list begins.
        unroll: kept elements whose positions share a word; `count` is a multiple.
        position: bits of a position.
        kept: how many values there are in all; below zero where it is not known.
        element: type of sums, and of the values of W.
        given: element type of x.
        result: element type of y, and of what is added.
        across: x is held as [columns, depth], else as [depth, columns].
        across_y: y, and what is added, is held as [columns, rows], else as [rows, columns].
        adds: whether something is added to the product.
        panels: rows that share blocks, which are summed first; then there is one block of the depth.
        single: whether there are kept elements beside blocks.
        packed: x comes as `lanes_kernel` leaves it, [tasks, deep, width] of `element`; else each task fetches its own.
        shared: of `count` kept elements, those at the same positions in both rows of every pair, at least; None: rows
            are not summed in pairs.
    """

    rows: int
    depth: int
    columns: int
    width: int
    lanes: int
    block: int
    panel: int
    chunk: int
    count: int | None
    unroll: int
    position: int
    kept: int
    element: str
    given: str
    result: str
    across: bool
    across_y: bool
    adds: bool
    panels: Panels | None = None
    single: bool = True
    packed: bool = False
    shared: int | None = None

    @property
    def deep(self) -> int:
        """Rows that x has where it is packed: whole blocks, in whole squares."""
        return up(self.blocks * self.block, self.lanes)

    @property
    def parts(self) -> int:
        """Tasks that the rows of W are shared out to."""
        return -(-self.rows // self.chunk)

    @property
    def blocks(self) -> int:
        """Blocks of the depth."""
        return -(-self.depth // self.block)

    @property
    def held(self) -> int:
        """Rows of x of a panel, and what fetching whole squares adds."""
        return up(self.block * min(self.panel, self.blocks), self.lanes)

    @property
    def strip(self) -> int:
        """Rows of sums that are kept until they are written."""
        return up(min(self.chunk, _STRIP) if self.blocks == 1 else self.chunk, self.lanes)

    @property
    def are_whole(self) -> bool:
        """Whether all tasks are known to have all of their columns."""
        return self.columns > 0 and self.columns % self.width == 0

    @property
    def whole(self) -> bool:
        """Whether all squares of sums are known to be whole."""
        return self.are_whole and all(size % self.lanes == 0 for size in (self.rows, self.chunk))

    @property
    def words(self) -> str:
        """The type of a word of positions."""
        return f"i{self.position * self.unroll}"


def rows_text(k: RowsKernel) -> str:
    """The kernel as text: arguments are lists of blocks, of single elements (if there are), x, what is added, y."""
    arguments = [] if k.panels is None else k.panels.arguments(k.element)
    if k.single:
        arguments += [f"%values: {_list(k.kept, k.element)}", f"%positions: {_list(_over(k.kept, k.unroll), k.words)}"]
    if k.single and k.count is None:
        arguments.append(f"%starts: memref<{k.blocks * k.rows + 1}xi32>")
    if k.shared is not None:
        arguments = [f"%{name}: {kind}" for name, kind in _pairs(k, k.shared).arguments().items()]
    arguments.append(f"%x: {packed_x(k) if k.packed else x_type(k)}")
    if k.adds:
        arguments.append(f"%c: {_y(k)}")
    arguments.append(f"%y: {_y(k)}")
    body = _fetched(k) + _in_strips(k) if k.blocks == 1 else _in_blocks(k)
    size = f"arith.constant {k.columns} : index"
    if k.columns < 0:
        size = f"memref.dim %y, %c{0 if k.across_y else 1} : {_y(k)}"
    return f"""
tile.kernel @KERNEL({", ".join(arguments)}) grid(%task, %part) {{
{_constants(k)}
{"" if k.packed else f"  %xs = tile.alloc : {_xs(k)}"}
  %ys = tile.alloc : {_ys(k)}
  %left = arith.muli %task, %cwidth : index
  %columns = {size}
  %first = arith.muli %part, %cchunk : index
  %behind = arith.addi %first, %cchunk : index
  %end = arith.minsi %behind, %crows : index
{body}
  tile.return
}}
"""


def _constants(k: RowsKernel) -> str:
    numbers = {
        "c0": 0, "c1": 1, "cwidth": k.width, "cchunk": k.chunk, "crows": k.rows, "cdepth": k.depth,
        "cblock": k.block, "cblocks": k.blocks, "clanes": k.lanes, "cunroll": k.unroll,
        "cpanel": k.panel, "cstrip": k.strip, "cheld": k.held, "ccount": (k.count or 0) // k.unroll,
    }  # fmt: skip
    lines = [f"  %{name} = arith.constant {number} : index" for name, number in numbers.items()]
    if k.panels is not None:
        numbers = {"ctogether": k.panels.rows, "cshared": k.panels.shared, "crun": k.panels.run}
        lines += [f"  %{name} = arith.constant {number} : index" for name, number in numbers.items()]
    lines += [f"  %zero = arith.constant dense<0.0> : {_row(k)}"]
    lines += [f"  %shift{u} = arith.constant {u * k.position} : {k.words}" for u in range(k.unroll)]
    lines += [f"  %mask = arith.constant {(1 << k.position) - 1} : {k.words}"]
    return "\n".join(lines)


def _in_blocks(k: RowsKernel) -> str:
    """Sums in `ys`, carried on from block to block."""
    return f"""
  scf.for %b_first = %c0 to %cblocks step %cpanel {{
    %k_first = arith.muli %b_first, %cblock : index
{_fetched(k, "%k_first")}
    %b_next = arith.addi %b_first, %cpanel : index
    %b_end = arith.minsi %b_next, %cblocks : index
    scf.for %b = %b_first to %b_end step %c1 {{
      %in_panel = arith.subi %b, %b_first : index
      %at_row = arith.muli %in_panel, %cblock : index
{_block(k, "%at_row", "%k_first")}
      %is_first = arith.cmpi eq, %b, %c0 : index
      scf.if %is_first {{
{_lists(k, "%c0", False)}
      }} else {{
{_lists(k, "%b", True)}
      }}
    }}
  }}
{_out(k, "%first", "%end")}"""


def _lists(k: RowsKernel, block: str, again: bool) -> str:
    """All lists of a block, added to the sums so far where there are some."""
    if k.shared is not None:
        return _pairs(k, k.shared).text(block, again)
    before = f"%before = tile.load %ys[%place, %c0] : {_ys(k)}, {_row(k)}" if again else ""
    return f"""
        scf.for %r = %first to %end step %c1 {{
          %place = arith.subi %r, %first : index
          {before}
{_sum(k, "%before" if again else "%zero", block)}
          tile.store %sum, %ys[%place, %c0] : {_row(k)}, {_ys(k)}
        }}"""


def _pairs(k: RowsKernel, shared: int) -> PairsKernel:
    level = "" if k.packed else ', #tile.level<"l2">'
    flat = f"memref<{k.block * k.width}x{k.element}, strided<[1], offset: ?>{level}>"
    vectors = k.width // k.lanes
    return PairsKernel(k.rows, k.blocks, k.count or 0, shared, k.element, k.lanes, vectors, _ys(k), _xb(k), flat)


def _in_strips(k: RowsKernel) -> str:
    """All terms at once, for as many rows as are written together."""
    if k.panels is not None:
        step, body = "%ctogether", _of_panel(k, k.panels)
    else:
        step = "%c1"
        body = f"""
{_sum(k, "%zero", "%c0")}
      tile.store %sum, %ys[%at, %c0] : {_row(k)}, {_ys(k)}"""
    return f"""
{_block(k)}
  scf.for %start = %first to %end step %cstrip {{
    %after = arith.addi %start, %cstrip : index
    %stop = arith.minsi %after, %end : index
    scf.for %r = %start to %stop step {step} {{
      %at = arith.subi %r, %start : index{body}
    }}
{_out(k, "%start", "%stop")}
  }}"""


def _of_panel(k: RowsKernel, panels: Panels) -> str:
    """Rows of a panel: blocks for all, then each row's single elements; rows behind the last one have none."""
    text = sums_of_blocks(panels, _row(k), _xb(k), k.element)
    for j in range(panels.rows):
        single = f"""
      %line_more{j} = arith.addi %r, %more{j} : index
      %line{j} = arith.minui %line_more{j}, %crows : index
{_sum(k, f"%block#{j}", "%c0", str(j))}"""
        text += f"""
      %more{j} = arith.constant {j} : index
      %ys_at{j} = arith.addi %at, %more{j} : index{single if k.single else ""}
      tile.store {f"%sum{j}" if k.single else f"%block#{j}"}, %ys[%ys_at{j}, %c0] : {_row(k)}, {_ys(k)}"""
    return text


def _sum(k: RowsKernel, before: str, block: str, panel: str = "") -> str:
    """%sum: a row's terms of a block, added to what came before; of row number `panel` of a panel, %sum0 and so on."""
    if panel:
        kind = f"memref<{k.rows + 1}xi32>"
        bounds = f"""
      %after_line{panel} = arith.addi %line{panel}, %c1 : index
      %next_line{panel} = arith.minui %after_line{panel}, %crows : index
      %from_i{panel} = memref.load %starts[%line{panel}] : {kind}
      %to_i{panel} = memref.load %starts[%next_line{panel}] : {kind}
      %from{panel} = arith.index_cast %from_i{panel} : i32 to index
      %to{panel} = arith.index_cast %to_i{panel} : i32 to index"""
    elif k.count is None:
        bounds = f"""
      %list_b = arith.muli {block}, %crows : index
      %list = arith.addi %list_b, %r : index
      %list_1 = arith.addi %list, %c1 : index
      %from_i = memref.load %starts[%list] : memref<{k.blocks * k.rows + 1}xi32>
      %to_i = memref.load %starts[%list_1] : memref<{k.blocks * k.rows + 1}xi32>
      %from = arith.index_cast %from_i : i32 to index
      %to = arith.index_cast %to_i : i32 to index"""
    else:
        bounds = f"""
      %list_b = arith.muli {block}, %crows : index
      %list = arith.addi %list_b, %r : index
      %from = arith.muli %list, %ccount : index
      %to = arith.addi %from, %ccount : index"""
    steps = "".join(_step(k, u) for u in range(k.unroll))
    return f"""{bounds}
      %sum{panel} = scf.for %p = %from{panel} to %to{panel} step %c1 iter_args(%f0 = {before}) -> ({_row(k)}) {{
        %word = memref.load %positions[%p] : {_list(_over(k.kept, k.unroll), k.words)}
        %v0 = arith.muli %p, %cunroll : index
{steps}
        scf.yield %f{k.unroll} : {_row(k)}
      }}"""


def _step(k: RowsKernel, u: int) -> str:
    """One kept element: its value times the row of x that it names."""
    word = "%word"
    lines = []
    if k.unroll > 1:
        lines += [
            f"%shifted{u} = arith.shrui %word, %shift{u} : {k.words}",
            f"%at{u} = arith.andi %shifted{u}, %mask : {k.words}",
        ]
        word = f"%at{u}"
    lines += [
        f"%off{u} = arith.constant {u} : index",
        f"%p{u} = arith.addi %v0, %off{u} : index",
        f"%row{u} = arith.index_castui {word} : {k.words} to index",
        f"%value{u} = memref.load %values[%p{u}] : {_list(k.kept, k.element)}",
        f"%wide{u} = tile.splat %value{u} : {k.element} -> {_row(k)}",
        f"%x{u} = tile.load %xb[%row{u}, %c0] : {_xb(k)}, {_row(k)}",
        f"%f{u + 1} = math.fma %wide{u}, %x{u}, %f{u} : {_row(k)}",
    ]
    return "".join(f"        {line}\n" for line in lines)


def _block(k: RowsKernel, row: str = "0", panel: str = "%c0") -> str:
    """%xb: the rows of x of a block, which begins at a row of the panel that begins at row `panel`."""
    if not k.packed:
        return f"  %xb = memref.subview %xs[{row}, 0] [{k.block}, {k.width}] [1, 1] : {_xs(k)} to {_xb(k)}"
    place = f"[%task, {row if row == '0' else '%xb_row'}, 0] [1, {k.block}, {k.width}] [1, 1, 1]"
    at = "" if row == "0" else f"  %xb_row = arith.addi {row}, {panel} : index\n"
    return f"{at}  %xb = memref.subview %x{place} : {packed_x(k)} to {_xb(k)}"


def _fetched(k: RowsKernel, start: str = "%c0") -> str:
    return "" if k.packed else fill(k, _xs(k), start)


def fill(k: RowsKernel, kind: str, start: str = "%c0") -> str:
    """The rows of x of a panel and the columns of the task into `xs`, zeros where there are none.

    Where x lies across, the rows that a square comes from are read on from square to square: streams.
    """
    height = k.lanes if k.across else 1
    part, wide = _tile(height, k.lanes, k.given), _tile(height, k.lanes, k.element)
    at, dims = ("[%column, %row]", "dims [1, 0] ") if k.across else ("[%row, %column]", "")
    valid = "" if k.packed and k.deep == k.depth and k.are_whole else "valid (%rows_left, %columns_left) "
    loops = [
        "scf.for %j = %c0 to %cwidth step %clanes {",
        f"scf.for %i = %c0 to %cheld step %c{'lanes' if k.across else '1'} {{",
    ]
    outer, inner = loops if k.across else reversed(loops)
    return f"""
    {outer}
      {inner}
        %column = arith.addi %left, %j : index
        %columns_left = arith.subi %columns, %column : index
        %row = arith.addi {start}, %i : index
        %rows_behind = arith.subi %cdepth, %row : index
        %rows_left = arith.maxsi %rows_behind, %c0 : index
        %t = tile.load %x{at} {dims}{valid}: {x_type(k)}, {part}
        {_converted("%w", "%t", part, wide)}
        tile.store {"%t" if part == wide else "%w"}, %xs[%i, %j] : {wide}, {kind}
      }}
    }}"""


def _out(k: RowsKernel, start: str, stop: str) -> str:
    """The rows of `ys`, which are those of W from `start` to `stop`, into y."""
    wide, part = _tile(k.lanes, k.lanes, k.element), _tile(k.lanes, k.lanes, k.result)
    turn = f"%turned = tile.transpose %held [1, 0] : {wide} -> {wide}" if k.across_y else ""
    at, left = "[%r, %column]", ("%rows_left", "%columns_left")
    if k.across_y:
        at, left = "[%column, %r]", ("%columns_left", "%rows_left")
    loops = ["scf.for %j = %c0 to %cwidth step %clanes {", f"scf.for %r = {start} to {stop} step %clanes {{"]
    outer, inner = loops if k.across_y else reversed(loops)

    def moved(valid: str) -> str:
        sums, add = ("%turned" if k.across_y else "%held"), ""
        if k.adds:
            add = f"""
        %added_n = tile.load %c{at} {valid}: {_y(k)}, {part}
        {_converted("%added", "%added_n", part, wide)}
        %more = arith.addf {sums}, {"%added_n" if part == wide else "%added"} : {wide}"""
            sums = "%more"
        return f"""{add}
        {_converted("%narrow", sums, wide, part)}
        tile.store {sums if part == wide else "%narrow"}, %y{at} {valid}: {part}, {_y(k)}"""

    return f"""
    {outer}
      {inner}
        %place = arith.subi %r, {start} : index
        %rows_left = arith.subi {stop}, %r : index
        %column = arith.addi %left, %j : index
        %columns_left = arith.subi %columns, %column : index
        %held = tile.load %ys[%place, %j] : {_ys(k)}, {wide}
        {turn}{moved("") if k.whole else _whole_or_not(moved, left)}
      }}
    }}"""


def _whole_or_not(moved: Callable[[str], str], left: tuple[str, str]) -> str:
    """A square that is written, whole or not: masked stores take AMD's cores without AVX-512 12 cycles each.

    Args:
        moved: the text, given what says how much of the square there is.
        left: how many rows and columns there are.
    """
    return f"""
        %rows_whole = arith.cmpi sge, {left[0]}, %clanes : index
        %columns_whole = arith.cmpi sge, {left[1]}, %clanes : index
        %whole = arith.andi %rows_whole, %columns_whole : i1
        scf.if %whole {{{moved("")}
        }} else {{{moved(f"valid ({left[0]}, {left[1]}) ")}
        }}"""


def _converted(name: str, value: str, before: str, after: str) -> str:
    return "" if before == after else f"{name} = tile.convert {value} : {before} -> {after}"


def _tile(rows: int, columns: int, element: str) -> str:
    return f"!tile.tile<{rows}x{columns}x{element}>"


def _row(k: RowsKernel) -> str:
    return f"!tile.tile<{k.width}x{k.element}>"


def _shape(sizes: Sequence[int], element: str) -> str:
    return f"memref<{'x'.join('?' if size < 0 else str(size) for size in sizes)}x{element}>"


def x_type(k: RowsKernel) -> str:
    """x as the model holds it."""
    return _shape([k.columns, k.depth] if k.across else [k.depth, k.columns], k.given)


def packed_x(k: RowsKernel) -> str:
    """x as it is packed."""
    tasks = -1 if k.columns < 0 else -(-k.columns // k.width)
    return _shape([tasks, k.deep, k.width], k.element)


def _y(k: RowsKernel) -> str:
    return _shape([k.columns, k.rows] if k.across_y else [k.rows, k.columns], k.result)


def _xs(k: RowsKernel) -> str:
    return f'memref<{k.held}x{k.width}x{k.element}, #tile.level<"l2">>'


def _xb(k: RowsKernel) -> str:
    offset = "" if k.blocks == 1 and not k.packed else ", offset: ?"
    level = "" if k.packed else ', #tile.level<"l2">'
    return f"memref<{k.block}x{k.width}x{k.element}, strided<[{k.width}, 1]{offset}>{level}>"


def _ys(k: RowsKernel) -> str:
    return f'memref<{k.strip}x{k.width}x{k.element}, #tile.level<"l2">>'


def _list(size: int, element: str) -> str:
    return _shape([size], element)


def _over(size: int, by: int) -> int:
    return size // by if size >= 0 else size


def up(size: int, step: int) -> int:
    """The next multiple of a step."""
    return -(-size // step) * step
