# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPU kernel of products whose sparse operand is panels with a list of what they keep: its text.

A panel is a few columns of the sparse operand (rows, where that one stands on the left) that keep the same positions
along the depth. Then a panel times the dense operand is a dense product with those of the latter's slices that the list
names: the micro-kernel of a dense product, with an address from the list (nmSPARSE, MLSys 2023, section 4.2; SparTA's
block-sparse kernels, OSDI 2022, section 4.3, dismantle the loop over blocks in the same way).

A task copies `group` slabs of the dense operand, `height` of its rows (columns, where it stands on the right) each, to
a buffer [depth][height] in the L2 cache, in the type of the sums. Every panel then passes by all of them: its values
are read once for each group. Where panels are at least as wide as a vector, their columns are the lanes and elements of
the slab are broadcast; else the slab's rows are the lanes and values are broadcast.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import gcd

#: Depth that is copied to a slab at once: what transposes in registers.
CHUNK = 16
_UNROLL = 4
_MOST_UNROLLED = 8


@dataclass(frozen=True)
class PanelKernel:
    """What the text of a kernel follows from.

    The kernel's arguments: the dense operand, values [parts, entries * run, width], positions [lists, entries] or
    [entries] (i32, of the first of `run` neighbours along the depth), where lists start [lists + 1] (i32; only without
    `count`), the panels of each task's range [ranges + 1] (i32), with `init` what is added to, and the result.
    Its grid: groups of slabs, ranges of panels.

    Attributes:
        left: whether the sparse operand is the left one: [columns, depth] @ [depth, rows]; else [rows, depth] @
            [depth, columns].
        rows: of the dense operand, across the depth; below zero where a run brings the number.
        depth: what is summed over.
        columns: of the sparse operand, across the depth, all panels together; the last may be ragged.
        width: columns of a panel.
        shared: panels, neighbours, that have a list in common.
        run: neighbours along the depth for each entry of a list.
        count: entries of each list; None: lists differ.
        entries: all entries of lists without `count`; below zero where a run brings the number.
        height: rows of a slab.
        group: slabs of a task.
        reach: a bound of what lists name, at least `depth`: slices from there on are zero.
        wide: whether the columns of a panel are the lanes, else the rows of a slab.
        ranges: ranges of panels, a task each.
        types: elements of the dense operand, the values, the result, and of the sums.
        init: whether the result starts from a tensor of its own type.
    """

    left: bool
    rows: int
    depth: int
    columns: int
    width: int
    shared: int
    run: int
    count: int | None
    entries: int
    height: int
    group: int
    reach: int
    wide: bool
    ranges: int
    types: tuple[str, str, str, str]
    init: bool

    @property
    def panels(self) -> int:
        """How many panels."""
        return -(-self.columns // self.width)

    @property
    def lists(self) -> int:
        """How many lists."""
        return -(-self.panels // self.shared)

    def text(self) -> str:
        """The kernel, called `@KERNEL`."""
        args = ", ".join(f"%{name}: {kind}" for name, kind in self.arguments().items())
        body = self._places() + self._packing() + self._panels()
        used = sorted({int(n) for n in re.findall(r"%c(\d+)\b", body)})
        constants = "".join(f"\n%c{n} = arith.constant {n} : index" for n in used)
        zero = f"\n%zero = arith.constant dense<0.0> : {self._sum()}"
        return f"tile.kernel @KERNEL({args}) grid(%i, %q) {{{constants}{zero}{body}\ntile.return\n}}\n"

    def arguments(self) -> dict[str, str]:
        """Types of the arguments by name, in order."""
        dense, value, result, _ = self.types
        found = {"x": _memref([self.depth, self.rows] if self.left else [self.rows, self.depth], dense)}
        if self.count is None:
            total = self.entries * self.run if self.entries >= 0 else -1
            found |= {
                "values": _memref([self.shared, total, self.width], value),
                "at": _memref([self.entries], "i32"),
                "starts": _memref([self.lists + 1], "i32"),
            }
        else:
            found["values"] = _memref([self.lists * self.shared, self.count * self.run, self.width], value)
            found["at"] = _memref([self.lists, self.count], "i32")
        found["cuts"] = _memref([self.ranges + 1], "i32")
        shape = _memref([self.columns, self.rows] if self.left else [self.rows, self.columns], result)
        return found | ({"init": shape} if self.init else {}) | {"y": shape}

    def _sum(self) -> str:
        return _tile([self.height, self.width] if self.wide else [self.width, self.height], self.types[3])

    def _slab(self) -> str:
        """The buffer of slabs; where its elements are broadcast, they are scalars of a last dimension."""
        return _memref([self.group, self.reach, self.height] + [1] * self.wide, self.types[3])

    def _places(self) -> str:
        """Which slabs and panels a task has."""
        size = f"%rows = memref.dim %x, %c{int(self.left)} : {self.arguments()['x']}"
        if self.rows >= 0:
            size = f"%rows = arith.constant {self.rows} : index"
        return f"""
{size}
%packed = tile.alloc : {self._slab()}
%first = arith.muli %i, %c{self.group * self.height} : index
%left = arith.subi %rows, %first : index
%more = arith.addi %left, %c{self.height - 1} : index
%all = arith.divui %more, %c{self.height} : index
%slabs = arith.minui %all, %c{self.group} : index
%next = arith.addi %q, %c1 : index
%from32 = memref.load %cuts[%q] : {self.arguments()["cuts"]}
%to32 = memref.load %cuts[%next] : {self.arguments()["cuts"]}
%from = arith.index_cast %from32 : i32 to index
%to = arith.index_cast %to32 : i32 to index"""

    def _packing(self) -> str:
        """Slabs of the dense operand, side by side; behind its end they are zero."""
        whole = self.depth // CHUNK * CHUNK
        end = whole + CHUNK * (whole < self.depth)
        tail = self._chunk("%kk", f"%c{self.depth - whole}", "%rest") if whole < self.depth else ""
        last = f"\n%kk = arith.addi %c{whole}, %c0 : index{tail}" if tail else ""
        return f"""
scf.for %g = %c0 to %slabs step %c1 {{{self._row()}
%full = arith.cmpi sge, %rest, %c{self.height} : index
scf.if %full {{
scf.for %k = %c0 to %c{whole} step %c{CHUNK} {{{self._chunk("%k", None, None)}
}}
}} else {{
scf.for %k = %c0 to %c{whole} step %c{CHUNK} {{{self._chunk("%k", f"%c{CHUNK}", "%rest")}
}}
}}{last}
scf.for %k = %c{end} to %c{self.reach} step %c{CHUNK} {{
%none = arith.constant dense<0.0> : {_tile([CHUNK, self.height], self.types[3])}
{self._keep("%none", "%k", "%c0", self.height)}
}}
}}"""

    def _row(self) -> str:
        """The first row of slab %g, and how many there are from there on."""
        return f"""
%skip = arith.muli %g, %c{self.height} : index
%row = arith.addi %first, %skip : index
%rest = arith.subi %rows, %row : index"""

    def _chunk(self, k: str, deep: str | None, rows: str | None) -> str:
        """Copy CHUNK slices along the depth from `k` on; `deep` and `rows` bound what exists."""
        lines, tag = [], "p" if deep is None else "t" if k == "%kk" else "m"
        source, dense, wide = self.arguments()["x"], self.types[0], self.types[3]
        step = self.height if self.left else CHUNK
        for at in range(0, self.height, step):
            size, name = min(step, self.height - at), f"%{tag}{at}"
            row = f"{name}r"
            lines.append(f"{row} = arith.addi %row, %c{at} : index")
            valid = ""
            if deep is not None:
                lines.append(f"{name}v0 = arith.subi {rows}, %c{at} : index")
                lines.append(f"{name}v = arith.maxsi {name}v0, %c0 : index")
                valid = f" valid ({deep}, {name}v)"
            place = f"[{k}, {row}]" if self.left else f"[{row}, {k}] dims [1, 0]"
            kind = _tile([CHUNK, size], dense)
            lines.append(f"{name} = tile.load %x{place}{valid} : {source}, {kind}")
            kept = name
            if dense != wide:
                kept = f"{name}w"
                lines.append(f"{kept} = tile.convert {name} : {kind} -> {_tile([CHUNK, size], wide)}")
            lines.append(self._keep(kept, k, f"%c{at}", size))
        return "\n" + "\n".join(lines)

    def _keep(self, name: str, k: str, at: str, size: int) -> str:
        """Store slices into slab %g."""
        place = f"[%g, {k}, {at}, %c0] dims [1, 2]" if self.wide else f"[%g, {k}, {at}]"
        return f"tile.store {name}, %packed{place} : {_tile([CHUNK, size], self.types[3])}, {self._slab()}"

    @property
    def together(self) -> int:
        """Panels whose sums are stored together: a cache line's, where sums are held across the result."""
        return -(-CHUNK // self.width) if self._crosses else 1

    def _panels(self) -> str:
        """Panel by panel, slab by slab: sum and store."""
        if self._crosses:
            return self._crossing()
        return f"""
scf.for %j = %from to %to step %c1 {{
%column = arith.muli %j, %c{self.width} : index
%columns = arith.subi %c{self.columns}, %column : index{self._list()}
scf.for %g = %c0 to %slabs step %c1 {{{self._row()}{self._start()}{self._sums()}{self._store()}
}}
}}"""

    def _list(self) -> str:
        """Where a panel's list and values are: %list, %part, entries %e0 to %e1."""
        own = "%list = arith.addi %j, %c0 : index"
        part = "%part = arith.addi %j, %c0 : index" if self.count is not None else "%part = arith.addi %c0, %c0 : index"
        if self.shared > 1:
            own = f"%list = arith.divui %j, %c{self.shared} : index"
            if self.count is None:
                part = f"%part = arith.remui %j, %c{self.shared} : index"
        if self.count is not None:
            return f"\n{own}\n{part}"
        kind = self.arguments()["starts"]
        return f"""
{own}
{part}
%after = arith.addi %list, %c1 : index
%start32 = memref.load %starts[%list] : {kind}
%end32 = memref.load %starts[%after] : {kind}
%e0 = arith.index_cast %start32 : i32 to index
%e1 = arith.index_cast %end32 : i32 to index"""

    def _start(self) -> str:
        """What the sums start from: %begin."""
        whole = f"\n%whole = arith.cmpi sge, %rest, %c{self.height} : index"
        if self.columns % self.width:
            whole = f"""
%tall = arith.cmpi sge, %rest, %c{self.height} : index
%broad = arith.cmpi sge, %columns, %c{self.width} : index
%whole = arith.andi %tall, %broad : i1"""
        if not self.init:
            return whole
        loads = []
        for tag, valid in (("a", ""), ("b", self._valid())):
            stored = self._shape(self.types[2])
            lines = [f"%init{tag} = tile.load %init{self._place()}{valid} : {self.arguments()['init']}, {stored}"]
            lines += self._converted(f"%init{tag}")
            loads.append("\n".join(lines))
        kind = self._sum()
        return f"{whole}\n%begin = scf.if %whole -> ({kind}) {{\n{loads[0]}\n}} else {{\n{loads[1]}\n}}"

    def _crossing(self) -> str:
        """A few panels' sums go to a buffer [columns][rows of the slab], from there to the result across."""
        columns, wide = self.together * self.width, self.types[3]
        buffer = _memref([columns, self.height], wide)
        return f"""
%across = tile.alloc : {buffer}
scf.for %jj = %from to %to step %c{self.together} {{
%column = arith.muli %jj, %c{self.width} : index
%columns = arith.subi %c{self.columns}, %column : index
%most_j = arith.addi %jj, %c{self.together} : index
%end_j = arith.minui %most_j, %to : index
scf.for %g = %c0 to %slabs step %c1 {{{self._row()}
scf.for %j = %jj to %end_j step %c1 {{{self._list()}{self._sums()}
%nth = arith.subi %j, %jj : index
%place = arith.muli %nth, %c{self.width} : index
tile.store %sum, %across[%place, %c0] : {self._sum()}, {buffer}
}}
scf.for %s = %c0 to %c{self.height} step %c{gcd(self.height, CHUNK)} {{{self._flush(columns, buffer)}
}}
}}
}}"""

    def _flush(self, columns: int, buffer: str) -> str:
        """Rows of the result from %s on."""
        wide, stored, rows = self.types[3], self.types[2], gcd(self.height, CHUNK)
        summed, kept = _tile([rows, columns], wide), _tile([rows, columns], stored)
        y, place = self.arguments()["y"], "[%to_row, %column]"
        valid = " valid (%left_rows, %columns)"
        lines = [
            "%to_row = arith.addi %row, %s : index",
            "%left_rows0 = arith.subi %rest, %s : index",
            "%left_rows = arith.maxsi %left_rows0, %c0 : index",
            f"%held = tile.load %across[%c0, %s] : {buffer}, {_tile([columns, rows], wide)}",
            f"%turned = tile.transpose %held [1, 0] : {_tile([columns, rows], wide)} -> {summed}",
        ]
        last = "%turned"
        if self.init:
            lines.append(f"%before = tile.load %init{place}{valid} : {y}, {kept}")
            before = "%before"
            if stored != wide:
                lines.append(f"%before_w = tile.convert %before : {kept} -> {summed}")
                before = "%before_w"
            lines.append(f"%total = arith.addf {last}, {before} : {summed}")
            last = "%total"
        if stored != wide:
            lines.append(f"%rounded = tile.convert {last} : {summed} -> {kept}")
            last = "%rounded"
        lines += [
            f"%tall = arith.cmpi sge, %left_rows, %c{rows} : index",
            f"%broad = arith.cmpi sge, %columns, %c{columns} : index",
            "%whole = arith.andi %tall, %broad : i1",
            f"scf.if %whole {{\ntile.store {last}, %y{place} : {kept}, {y}",
            f"}} else {{\ntile.store {last}, %y{place}{valid} : {kept}, {y}\n}}",
        ]
        return "\n" + "\n".join(lines)

    def _converted(self, name: str) -> list[str]:
        """Yield a tile of the result's type as one of sums."""
        stored, summed = self._shape(self.types[2]), self._sum()
        if stored == summed:
            return [f"scf.yield {name} : {summed}"]
        return [f"{name}w = tile.convert {name} : {stored} -> {summed}", f"scf.yield {name}w : {summed}"]

    @property
    def _crosses(self) -> bool:
        """Whether sums are held across the result."""
        return self.wide == self.left

    def _shape(self, element: str) -> str:
        """The tile of the result that a panel and a slab make."""
        return _tile([self.width, self.height] if self.left else [self.height, self.width], element)

    def _place(self) -> str:
        return "[%column, %row]" if self.left else "[%row, %column]"

    def _valid(self) -> str:
        return " valid (%columns, %rest)" if self.left else " valid (%rest, %columns)"

    def _sums(self) -> str:
        """The loops over a list: %sum."""
        kind, begin = self._sum(), "%begin" if self.init and not self._crosses else "%zero"
        first, last = ("%c0", f"%c{self.count}") if self.count is not None else ("%e0", "%e1")
        step = max(1, _UNROLL // self.run)
        if self.count is not None and self.count % step:
            step = next((s for s in (3, 2) if s < step and self.count % s == 0), step)
        if step == 1 or (self.count is not None and self.count % step == 0):
            return self._loop("sum", first, last, step, begin, kind)
        between = f"""
%number = arith.subi {last}, {first} : index
%over = arith.remui %number, %c{step} : index
%middle = arith.subi {last}, %over : index"""
        main = self._loop("most", first, "%middle", step, begin, kind)
        return between + main + self._loop("sum", "%middle", last, 1, "%most", kind)

    def _loop(self, name: str, first: str, last: str, step: int, begin: str, kind: str) -> str:
        """A loop over entries, `step` at once."""
        body, sums = "", f"%{name}_in"
        for u in range(step):
            lines, sums = self._entry(f"{name}{u}", u, sums, kind)
            body += lines
        return f"""
%{name} = scf.for %e = {first} to {last} step %c{step} iter_args(%{name}_in = {begin}) -> ({kind}) {{{body}
scf.yield {sums} : {kind}
}}"""

    def _entry(self, tag: str, number: int, sums: str, kind: str) -> tuple[str, str]:
        """One entry of a list: its run of slices."""
        where = f"[%list, %e_{tag}]" if self.count is not None else f"[%e_{tag}]"
        text = f"""
%e_{tag} = arith.addi %e, %c{number} : index
%at_{tag} = memref.load %at{where} : {self.arguments()["at"]}
%k_{tag} = arith.index_cast %at_{tag} : i32 to index
%t_{tag} = arith.muli %e_{tag}, %c{self.run} : index"""
        if self.run <= _MOST_UNROLLED:
            for r in range(self.run):
                lines, sums = self._product(f"{tag}_{r}", f"%k_{tag}", f"%t_{tag}", f"%c{r}", sums, kind)
                text += lines
            return text, sums
        step = next(s for s in range(_MOST_UNROLLED // 2, 0, -1) if self.run % s == 0)
        body, inner = "", f"%in_{tag}"
        for r in range(step):
            body += f"\n%r_{tag}_{r} = arith.addi %r, %c{r} : index"
            lines, inner = self._product(f"{tag}_{r}", f"%k_{tag}", f"%t_{tag}", f"%r_{tag}_{r}", inner, kind)
            body += lines
        text += f"""
%run_{tag} = scf.for %r = %c0 to %c{self.run} step %c{step} iter_args(%in_{tag} = {sums}) -> ({kind}) {{{body}
scf.yield {inner} : {kind}
}}"""
        return text, f"%run_{tag}"

    def _product(self, tag: str, k: str, t: str, r: str, sums: str, kind: str) -> tuple[str, str]:
        """One slice of the slab times one of the values, added to the sums."""
        value, wide = self.types[1], self.types[3]
        if self.wide:
            slab, held = _tile([self.height, 1], wide), _tile([1, self.width], value)
            place, dims = f"[%g, %kr_{tag}, %c0, %c0]", ""
        else:
            slab, held = _tile([1, self.height], wide), _tile([self.width, 1], value)
            place, dims = f"[%g, %kr_{tag}, %c0]", " dims [2, 1]"
        x, v = (f"%x_{tag}", slab), (f"%v_{tag}", held)
        (a, a_kind), (b, b_kind) = (x, v) if self.wide else (v, x)
        lines = f"""
%kr_{tag} = arith.addi {k}, {r} : index
%tr_{tag} = arith.addi {t}, {r} : index
%x_{tag} = tile.load %packed{place} : {self._slab()}, {slab}
%v_{tag} = tile.load %values[%part, %tr_{tag}, %c0]{dims} : {self.arguments()["values"]}, {held}
%s_{tag} = tile.mma {a}, {b}, {sums} : {a_kind}, {b_kind}, {kind}"""
        return lines, f"%s_{tag}"

    def _store(self) -> str:
        """The sums as elements of the result, where it has them."""
        lines, last, summed, stored = [], "%sum", self.types[3], self.types[2]
        if summed != stored:
            lines.append(f"%rounded = tile.convert {last} : {self._shape(summed)} -> {self._shape(stored)}")
            last = "%rounded"
        to = f": {self._shape(stored)}, {self.arguments()['y']}"
        lines.append(f"scf.if %whole {{\ntile.store {last}, %y{self._place()} {to}")
        lines.append(f"}} else {{\ntile.store {last}, %y{self._place()}{self._valid()} {to}\n}}")
        return "\n" + "\n".join(lines)


def _memref(sizes: list[int], element: str) -> str:
    return f"memref<{''.join(f'{size if size >= 0 else chr(63)}x' for size in sizes)}{element}>"


def _tile(sizes: list[int], element: str) -> str:
    return f"!tile.tile<{'x'.join(map(str, sizes))}x{element}>"
