# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for CPUs of products in groups: each expert's tokens with its weight, without padding or dropping.

PIT's mixture of experts (SOSP 2023, section 5): lists of tokens per expert; a product reads the rows that its list
names. Rows of all experts lie one after the other, expert by expert, tokens ascending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.ir.generics import body, maker, terminator
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.experts import E, Follower, N, Roles, Stage, T
from tilewright.plan.sparse.dynamic.micro_tiles import memref
from tilewright.plan.sparse.dynamic.tile_body import TileBody

#: Entries of a list that are copied at once, and columns that are copied or added up at once.
_LISTED, ADDED = 64, 64
#: Tokens whose rows a task of a CPU adds up.
TOKENS = 16
#: Rows of an expert that are multiplied by themselves at its end: fewer fill no pipeline of multiply-adds.
_FEW = 4
#: Terms of a sum that a thread block of a GPU multiplies at once.
_DEPTH = 32


@dataclass(frozen=True)
class Groups:
    """Sizes of the kernels of a mixture of experts.

    Attributes:
        experts, tokens: how many there are; a pair of them is a row.
        rows: that are multiplied at once.
        width: columns of a panel of a weight.
    """

    experts: int
    tokens: int
    rows: int
    width: int

    @property
    def pairs(self) -> int:
        """Rows that there may be."""
        return self.experts * self.tokens

    @property
    def room(self) -> int:
        """Rows of a buffer: the last rows of an expert are read as a whole group, and what is behind them with it."""
        return self.pairs + self.rows

    @property
    def starts(self) -> str:
        """The type of the numbers where each expert's rows, and groups, begin; the end behind the last one's."""
        return memref([2, self.experts + 1], "i32")


def route_text(g: Groups, by_expert: bool) -> str:
    """A kernel, of one task, that puts the lists of all experts behind each other.

    Arguments: live tokens of each expert and their counts, as `sparse_tile.index` lists them in a gate [tokens,
    experts], or [experts, tokens] where `by_expert`; the tokens of the rows [pairs]; where experts start.
    """
    shape = [g.experts, g.tokens] if by_expert else [g.tokens, g.experts]
    live = memref(shape, "i32")
    counts = memref([g.experts, 1] if by_expert else [1, g.experts], "i32")
    at, place, dim = ("%e, %p", "%e, %c0", 1) if by_expert else ("%p, %e", "%c0, %e", 0)
    tokens, numbers = memref([g.pairs], "i32"), f"!tile.tile<{_LISTED}xi32>"
    return f"""tile.kernel @KERNEL(%live: {live}, %counts: {counts}, %tokens: {tokens}, %starts: {g.starts}) grid(%i) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %experts = arith.constant {g.experts} : index
      %rows = arith.constant {g.rows} : index
      %step = arith.constant {_LISTED} : index
      %all, %groups = scf.for %e = %c0 to %experts step %c1 iter_args(%row = %c0, %group = %c0) -> (index, index) {{
        {_store_starts("%e", g)}
        %ct = tile.load %counts[{place}] : {counts}, !tile.tile<1x1xi32>
        %cx = tile.extract %ct [0, 0] : !tile.tile<1x1xi32> -> i32
        %count = arith.index_cast %cx : i32 to index
        scf.for %p = %c0 to %count step %step {{
          %left = arith.subi %count, %p : index
          %list = tile.load %live[{at}] dims [{dim}] valid (%left) : {live}, {numbers}
          %to = arith.addi %row, %p : index
          tile.store %list, %tokens[%to] valid (%left) : {numbers}, {tokens}
        }}
        %more = arith.ceildivui %count, %rows : index
        %next = arith.addi %row, %count : index
        %next_group = arith.addi %group, %more : index
        scf.yield %next, %next_group : index, index
      }}
      {_store_starts("%experts", g).replace("%row ", "%all ").replace("%group ", "%groups ")}
      tile.return
    }}"""


def _store_starts(at: str, g: Groups) -> str:
    return f"""%ri = arith.index_cast %row : index to i32
        %rt = tile.splat %ri : i32 -> !tile.tile<1x1xi32>
        tile.store %rt, %starts[%c0, {at}] : !tile.tile<1x1xi32>, {g.starts}
        %gi = arith.index_cast %group : index to i32
        %gt = tile.splat %gi : i32 -> !tile.tile<1x1xi32>
        tile.store %gt, %starts[%c1, {at}] : !tile.tile<1x1xi32>, {g.starts}"""


def gather_text(g: Groups, k: int) -> str:
    """A kernel that copies the rows of tokens to where their expert's rows lie: [room, k].

    Arguments: tokens of rows; starts; the rows of tokens [tokens, k]; the copies. Grid: experts.
    """
    source, copies, piece = memref([g.tokens, k], "f32"), memref([g.room, k], "f32"), f"!tile.tile<1x{ADDED}xf32>"
    tokens = memref([g.pairs], "i32")
    return f"""tile.kernel @KERNEL(%tokens: {tokens}, %starts: {g.starts}, %x: {source}, %copies: {copies}) grid(%e) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %k = arith.constant {k} : index
      %step = arith.constant {ADDED} : index
      %behind = arith.addi %e, %c1 : index
      {_start("row", "%c0", "%e", g)}
      {_start("row_end", "%c0", "%behind", g)}
      scf.for %r = %row to %row_end step %c1 {{
        {_index("token", "%tokens[%r]", tokens)}
        scf.for %p = %c0 to %k step %step {{
          %left = arith.subi %k, %p : index
          %t = tile.load %x[%token, %p] valid (%c1, %left) : {source}, {piece}
          tile.store %t, %copies[%r, %p] valid (%c1, %left) : {piece}, {copies}
        }}
      }}
      tile.return
    }}"""


def product_text(g: Groups, stage: Stage, operands: Sequence[ir.Value]) -> str:
    """A kernel that multiplies the rows of each expert with its weight, and does the steps that follow.

    Arguments: tokens of rows; starts; rows in order [room, k]; the weight in panels [experts, panels, k, width];
    `operands`; the result [room, n]. Grid: experts, panels. The last group ends with the last row of its expert: some
    rows are multiplied twice, and sums are masked only for experts with fewer rows than a group. A short rest is short.

    Args:
        g: sizes.
        stage: the product and the steps.
        operands: what the steps read beside, each once.
    """
    k, n = stage.sizes
    panels = -(-n // g.width)
    source, w = memref([g.room, k], "f32"), memref([g.experts, panels, k, g.width], "f32")
    c = memref([g.room, n], "f32")
    kinds = [memref(ir.RankedTensorType(value.type).shape, "f32") for value in operands]
    extra = "".join(f"%o{at}: {kind}, " for at, kind in enumerate(kinds))

    def rows(of: Groups, full: str) -> str:
        """Products of `full` rows from %first on, and the steps that follow."""
        sums = f"!tile.tile<{of.rows}x{g.width}xf32>"
        lines, result = _steps(of, stage, operands, kinds)
        return f"""%full = {full} : index
          {_list(of)}
          {_sums(of, source, w)}
          {lines}
          tile.store {result}, %c[%first, %column] valid (%full, %right) : {sums}, {c}"""

    return f"""tile.kernel @KERNEL(%tokens: {memref([g.pairs], "i32")}, %starts: {g.starts}, %x: {source},
        %w: {w}, {extra}%c: {c}) grid(%e, %j) {{
      {_bounds(g)}
      %k = arith.constant {k} : index
      %n = arith.constant {n} : index
      %width = arith.constant {g.width} : index
      %few = arith.constant {min(_FEW, g.rows)} : index
      %column = arith.muli %j, %width : index
      %right = {"arith.subi %n, %column" if n % g.width else f"arith.constant {g.width}"} : index
      {_following(g, panels)}
      %count = arith.subi %row_end, %row : index
      %is_group = arith.cmpi uge, %count, %rows : index
      scf.if %is_group {{
        %last_group = arith.subi %row_end, %rows : index
        %last_few = arith.subi %row_end, %few : index
        scf.for %i = %group to %group_end step %c1 {{
          {_fetched()}
          %skipped = arith.muli %done, %rows : index
          %at = arith.addi %row, %skipped : index
          %is_few = arith.cmpi uge, %at, %last_few : index
          scf.if %is_few {{
            %first = arith.addi %last_few, %c0 : index
            {rows(replace(g, rows=min(_FEW, g.rows)), f"arith.constant {min(_FEW, g.rows)}")}
          }} else {{
            %first = arith.minui %at, %last_group : index
            {rows(g, f"arith.constant {g.rows}")}
          }}
        }}
      }} else {{
        scf.for %i = %group to %group_end step %c1 {{
          {_fetched()}
          %first = arith.addi %row, %c0 : index
          {rows(g, "arith.subi %row_end, %row")}
        }}
      }}
      tile.return
    }}"""


def _following(g: Groups, panels: int) -> str:
    """The panel of the weight that comes next, and the %portion of it that each group of rows fetches."""
    return f"""%panels = arith.constant {panels} : index
      %last = arith.constant {g.experts * panels - 1} : index
      %before_it = arith.muli %e, %panels : index
      %this = arith.addi %before_it, %j : index
      %after_it = arith.addi %this, %c1 : index
      %following = arith.minui %after_it, %last : index
      %next_e = arith.divui %following, %panels : index
      %next_j = arith.remui %following, %panels : index
      %group_count = arith.subi %group_end, %group : index
      %some_groups = arith.maxui %group_count, %c1 : index
      %portion = arith.ceildivui %k, %some_groups : index"""


def _fetched() -> str:
    """What group %i fetches of the panel that comes next: rows %from to %up_to, the last one."""
    return """%done = arith.subi %i, %group : index
        %from = arith.muli %done, %portion : index
        %behind_it = arith.addi %from, %portion : index
        %end = arith.minui %behind_it, %k : index
        %up_to = arith.subi %end, %c1 : index"""


def _sums(g: Groups, source: str, w: str) -> str:
    """The %sum of a group, in one loop whose end is foreseen; meanwhile rows of the panel that comes next are fetched.

    Where all is fetched, the last row is asked for again, which takes a free slot.
    """
    x, y, sums = f"!tile.tile<{g.rows}x1xf32>", f"!tile.tile<1x{g.width}xf32>", f"!tile.tile<{g.rows}x{g.width}xf32>"
    cache_lines = range(0, g.width, 16)
    lines = [f"memref.prefetch %w[%next_e, %next_j, %q, %l{at}], read, locality<2>, data : {w}" for at in cache_lines]
    ends = [f"%l{at} = arith.constant {at} : index" for at in cache_lines]
    return f"""%none = arith.constant dense<0.0> : {sums}
          {chr(10).join(ends)}
          %sum = scf.for %p = %c0 to %k step %c1 iter_args(%acc = %none) -> ({sums}) {{
          %fetch = arith.addi %from, %p : index
          %q = arith.minui %fetch, %up_to : index
          {chr(10).join(lines)}
          %xt = tile.load %x[%first, %p] : {source}, {x}
          %yt = tile.load %w[%e, %j, %p, %c0] dims [2, 3] : {w}, {y}
          %next = tile.mma %xt, %yt, %acc : {x}, {y}, {sums}
          scf.yield %next : {sums}
        }}"""


def gathered_product_text(g: Groups, stage: Stage, operands: Sequence[ir.Value], gathers: bool) -> str:
    """A kernel for GPUs that multiplies the rows of each expert with its weight, and does the steps that follow.

    Arguments: tokens of rows; starts; the rows, those of tokens [tokens, k] where it `gathers`, else in order [room,
    k]; the weight as it is; `operands`; the result [pairs, n]. Grid: experts, groups that one may have, blocks of
    columns; a task whose expert has fewer groups does nothing.
    """
    k, n = stage.sizes
    source, c = memref([g.tokens if gathers else g.room, k], "f32"), memref([g.room, n], "f32")
    w = memref([g.experts, n, k] if stage.transposed else [g.experts, k, n], "f32")
    sums, indices = f"!tile.tile<{g.rows}x{g.width}xf32>", f"!tile.tile<{g.rows}xi32>"
    kinds = [memref(ir.RankedTensorType(value.type).shape, "f32") for value in operands]
    extra = "".join(f"%o{at}: {kind}, " for at, kind in enumerate(kinds))
    x, y = f"!tile.tile<{g.rows}x{_DEPTH}xf32>", f"!tile.tile<{_DEPTH}x{g.width}xf32>"
    lines, result = _steps(g, stage, operands, kinds)
    place, named = ("%c0, %p] indices %list along 0", f" (indices {indices})") if gathers else ("%first, %p]", "")
    weight = "%e, %column, %p] dims [2, 1]" if stage.transposed else "%e, %p, %column] dims [1, 2]"
    return f"""tile.kernel @KERNEL(%tokens: {memref([g.pairs], "i32")}, %starts: {g.starts}, %x: {source},
        %w: {w}, {extra}%c: {c}) grid(%e, %at, %j) {{
      {_bounds(g)}
      %k = arith.constant {k} : index
      %n = arith.constant {n} : index
      %width = arith.constant {g.width} : index
      %depth = arith.constant {_DEPTH} : index
      %column = arith.muli %j, %width : index
      %right = arith.subi %n, %column : index
      %none = arith.constant dense<0.0> : {sums}
      %i = arith.addi %group, %at : index
      %is = arith.cmpi ult, %i, %group_end : index
      scf.if %is {{
        {_group()}
        {_list(g)}
        %sum = scf.for %p = %c0 to %k step %depth iter_args(%acc = %none) -> ({sums}) {{
          %left = arith.subi %k, %p : index
          %xt = tile.load %x[{place} valid (%full, %left) : {source}, {x}{named}
          %yt = tile.load %w[{weight} valid (%left, %right) : {w}, {y}
          %next = tile.mma %xt, %yt, %acc : {x}, {y}, {sums}
          scf.yield %next : {sums}
        }}
        {lines}
        tile.store {result}, %c[%first, %column] valid (%full, %right) : {sums}, {c}
      }}
      tile.return
    }}"""


def combine_text(g: Groups, n: int) -> str:
    """A kernel for GPUs that adds rows to their tokens, in order: the sum does not depend on the run.

    Arguments: tokens of rows; starts; rows [room, n]; the result [tokens, n]. Grid: blocks of columns.
    """
    y, c, row = memref([g.room, n], "f32"), memref([g.tokens, n], "f32"), f"!tile.tile<1x{ADDED}xf32>"
    return f"""tile.kernel @KERNEL(%tokens: {memref([g.pairs], "i32")}, %starts: {g.starts}, %y: {y}, %c: {c})
        grid(%j) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {n} : index
      %width = arith.constant {ADDED} : index
      %column = arith.muli %j, %width : index
      %right = arith.subi %n, %column : index
      %experts = arith.constant {g.experts} : index
      {_start("all", "%c0", "%experts", g)}
      scf.for %r = %c0 to %all step %c1 {{
        {_index("token", "%tokens[%r]", memref([g.pairs], "i32"))}
        %t = tile.load %y[%r, %column] valid (%c1, %right) : {y}, {row}
        tile.store %t, %c[%token, %column] valid (%c1, %right) reduce add : {row}, {c}
      }}
      tile.return
    }}"""


def rows_of_tokens_text(g: Groups) -> str:
    """A kernel, of one task, that lists the rows of each token in the order of experts: a counting sort.

    Arguments: tokens of rows; starts; where the list of each token begins and ends [tokens + 2], those of token t at t
    and t + 1; the lists, one behind the other [pairs].
    """
    tokens, ends = memref([g.pairs], "i32"), memref([g.tokens + 2], "i32")
    one, zeros = "!tile.tile<1xi32>", f"!tile.tile<{_LISTED}xi32>"
    token = _index("t", "%tokens[%r]", tokens)
    return f"""tile.kernel @KERNEL(%tokens: {tokens}, %starts: {g.starts}, %ends: {ends}, %lists: {tokens}) grid(%i) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %step = arith.constant {_LISTED} : index
      %experts = arith.constant {g.experts} : index
      %end = arith.constant {g.tokens + 2} : index
      %nothing = arith.constant dense<0> : {zeros}
      %one = arith.constant dense<1> : {one}
      %zero = arith.constant dense<0> : {one}
      {_start("all", "%c0", "%experts", g)}
      scf.for %t = %c0 to %end step %step {{
        %left = arith.subi %end, %t : index
        tile.store %nothing, %ends[%t] valid (%left) : {zeros}, {ends}
      }}
      scf.for %r = %c0 to %all step %c1 {{
        {token}
        %at = arith.addi %t, %c2 : index
        %count = tile.load %ends[%at] : {ends}, {one}
        %more = arith.addi %count, %one : {one}
        tile.store %more, %ends[%at] : {one}, {ends}
      }}
      %sum = scf.for %t = %c0 to %end step %c1 iter_args(%before = %zero) -> ({one}) {{
        %count = tile.load %ends[%t] : {ends}, {one}
        %now = arith.addi %before, %count : {one}
        tile.store %now, %ends[%t] : {one}, {ends}
        scf.yield %now : {one}
      }}
      scf.for %r = %c0 to %all step %c1 {{
        {token}
        %behind = arith.addi %t, %c1 : index
        %place = tile.load %ends[%behind] : {ends}, {one}
        %place_x = tile.extract %place [0] : {one} -> i32
        %at = arith.index_cast %place_x : i32 to index
        %ri = arith.index_cast %r : index to i32
        %row = tile.splat %ri : i32 -> {one}
        tile.store %row, %lists[%at] : {one}, {tokens}
        %next = arith.addi %place, %one : {one}
        tile.store %next, %ends[%behind] : {one}, {ends}
      }}
      tile.return
    }}"""


def token_sums_text(g: Groups, n: int, adds: bool) -> str:
    """A kernel for CPUs that adds up the rows of each token, in the order of experts: rows are read whole.

    Arguments: ends and lists of :func:`rows_of_tokens_text`; rows [room, n]; the result [tokens, n], which it `adds`
    to or writes. Grid: blocks of tokens.
    """
    y, c, row = memref([g.room, n], "f32"), memref([g.tokens, n], "f32"), f"!tile.tile<1x{ADDED}xf32>"
    ends, lists = memref([g.tokens + 2], "i32"), memref([g.pairs], "i32")
    start = f"tile.load %c[%t, %column] valid (%c1, %right) : {c}, {row}" if adds else (
        f"arith.constant dense<0.0> : {row}"
    )  # fmt: skip
    return f"""tile.kernel @KERNEL(%ends: {ends}, %lists: {lists}, %y: {y}, %c: {c}) grid(%b) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {n} : index
      %width = arith.constant {ADDED} : index
      %tokens = arith.constant {g.tokens} : index
      %block = arith.constant {TOKENS} : index
      %t0 = arith.muli %b, %block : index
      %t1 = arith.addi %t0, %block : index
      %t_end = arith.minui %t1, %tokens : index
      scf.for %t = %t0 to %t_end step %c1 {{
        %behind = arith.addi %t, %c1 : index
        {_index("first", "%ends[%t]", ends)}
        {_index("end", "%ends[%behind]", ends)}
        scf.for %column = %c0 to %n step %width {{
          %right = arith.subi %n, %column : index
          %start = {start}
          %sum = scf.for %at = %first to %end step %c1 iter_args(%before = %start) -> ({row}) {{
            {_index("row", "%lists[%at]", lists)}
            %term = tile.load %y[%row, %column] valid (%c1, %right) : {y}, {row}
            %now = arith.addf %before, %term : {row}
            scf.yield %now : {row}
          }}
          tile.store %sum, %c[%t, %column] valid (%c1, %right) : {row}, {c}
        }}
      }}
      tile.return
    }}"""


def _index(name: str, place: str, kind: str) -> str:
    """Lines that read an index from a list of i32."""
    return f"""%{name}_t = tile.load {place} : {kind}, !tile.tile<1xi32>
        %{name}_x = tile.extract %{name}_t [0] : !tile.tile<1xi32> -> i32
        %{name} = arith.index_cast %{name}_x : i32 to index"""


def _start(name: str, which: str, at: str, g: Groups) -> str:
    return f"""%{name}_t = tile.load %starts[{which}, {at}] : {g.starts}, !tile.tile<1x1xi32>
      %{name}_x = tile.extract %{name}_t [0, 0] : !tile.tile<1x1xi32> -> i32
      %{name} = arith.index_cast %{name}_x : i32 to index"""


def _bounds(g: Groups) -> str:
    """Where the rows and groups of expert %e begin and end."""
    return f"""%c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rows = arith.constant {g.rows} : index
      %behind = arith.addi %e, %c1 : index
      {_start("row", "%c0", "%e", g)}
      {_start("row_end", "%c0", "%behind", g)}
      {_start("group", "%c1", "%e", g)}
      {_start("group_end", "%c1", "%behind", g)}"""


def _group() -> str:
    """%first row of group %i, and %full rows from there to the last one of the expert."""
    return """%number = arith.subi %i, %group : index
        %skipped = arith.muli %number, %rows : index
        %first = arith.addi %row, %skipped : index
        %full = arith.subi %row_end, %first : index"""


def _list(g: Groups) -> str:
    """The %list of the tokens of a group's rows."""
    return f"""%list = tile.load %tokens[%first] valid (%full) : {memref([g.pairs], "i32")}, !tile.tile<{g.rows}xi32>"""


def _steps(g: Groups, stage: Stage, operands: Sequence[ir.Value], kinds: Sequence[str]) -> tuple[str, str]:
    """Lines of the steps that follow a product, and the name of what they make of %sum."""
    tiles, lines, value = TileBody([g.rows, g.width]), [], "%sum"
    for number, follower in enumerate(stage.followers):
        arguments: list[str | None] = []
        for at, roles in enumerate(follower.roles):
            if at == follower.chained:
                arguments.append(value)
                continue
            operand = list(operands).index(follower.op.operands[at])
            name = f"%read{number}_{at}"
            tiles.lines.append(_read(name, f"%o{operand}", kinds[operand], roles, g, tiles.tile))
            arguments.append(name)
        value = tiles.add(body(follower.op), [*arguments, None], _wanted(follower))
    lines += tiles.lines
    return "\n".join(lines), value


def _wanted(follower: Follower) -> ir.Value:
    """What a step makes; of the sum over experts, the term that it adds."""
    made: ir.Value = terminator(follower.op.regions[0]).operands[0]
    accumulator = list(body(follower.op).arguments)[-1]
    end = maker(made)
    if end is not None and accumulator in list(end.operands):
        return next(value for value in end.operands if value != accumulator)
    return made


def _read(name: str, source: str, kind: str, roles: Roles, g: Groups, tile: str) -> str:
    """Lines that read an operand of a step for the rows and columns of a task."""
    places = {E: "%e", T: "%c0", N: "%column", None: "%c0"}
    offsets = ", ".join(places[role] for role in roles)
    dims = [roles.index(role) for role in (T, N) if role in roles]
    sizes = [g.rows if roles[d] == T else g.width for d in dims]
    bounds = ", ".join("%full" if roles[d] == T else "%right" for d in dims)
    if not dims:
        scalar = f"!tile.tile<{'x'.join('1' for _ in roles)}xf32>"
        zeros = ", ".join("0" for _ in roles)
        return f"""{name}_t = tile.load {source}[{offsets}] : {kind}, {scalar}
        {name}_x = tile.extract {name}_t [{zeros}] : {scalar} -> f32
        {name} = tile.splat {name}_x : f32 -> {tile}"""
    shape = f"!tile.tile<{'x'.join(map(str, sizes))}xf32>"
    indices = f"!tile.tile<{g.rows}xi32>"
    list_, named = (" indices %list along 0", f" (indices {indices})") if T in roles else ("", "")
    wide = f"!tile.tile<{g.rows if T in roles else 1}x{g.width if N in roles else 1}xf32>"
    return f"""{name}_t = tile.load {source}[{offsets}] dims {dims}{list_} valid ({bounds}) : {kind}, {shape}{named}
        {name}_w = tile.reshape {name}_t : {shape} -> {wide}
        {name} = tile.broadcast {name}_w : {wide} -> {tile}"""
