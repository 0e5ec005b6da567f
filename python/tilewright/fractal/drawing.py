# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A task dependence graph as text: what blocks read, what iterations wait for, and in which order they may run.

::

    block 0: fold left d0 < 32, scan left d1 < 64, map d2 < 3
        reads ws[d0]
        reads xss[d1, d2] where d0 == 0
        reads its own block 0[d0 - 1, d1, d2] where d0 - 1 >= 0
        waits for iterations at distance (1, 0, 0), (0, 1, 0)
        4 regions
        order (d0 + d1, d0, d2): 95 steps of iterations that may run at once
            0 <= j0 < 95, max(0, j0 - 63) <= j1 < min(32, j0 + 1), 0 <= j2 < 3
"""

from __future__ import annotations

import re

from tilewright.fractal.graph import Block, Bounds, Graph, Order, Read


def drawn(graph: Graph, name: str) -> str:
    """The graph in lines."""
    lines = [f"{name}: {_count(len(graph.blocks), 'block')}"]
    lines += [f"    s{number} is the {symbol}" for number, symbol in enumerate(graph.symbols)]
    for number, block in enumerate(graph.blocks):
        lines += _block(number, block)
    lines += [f"result {read.target}{_place(range(read.dims))} = {_read(read, 0)}" for read in graph.outputs]
    lines += [f"blocks {one} and {other} may be one" for one, other in graph.wide]
    lines += [f"block {other} may run inside {_count(dims, 'loop')} of block {one}" for one, other, dims in graph.deep]
    lines += [f"blocks {why}" for why in graph.refused]
    return "\n".join(lines) + "\n"


def _block(number: int, block: Block) -> list[str]:
    dims = (f"{kind} d{i} < {length}" for i, (kind, length) in enumerate(zip(block.kinds, block.lengths, strict=True)))
    lines = [f"block {number}: {', '.join(dims) or 'once'}"]
    lines += [f"    reads {_read(read, len(block.kinds))}" for read in block.reads]
    waits = [str(distance).replace(",)", ")") for distance in block.distances]
    waits += ["others that differ from place to place"] if block.nonuniform else []
    if waits:
        lines.append(f"    waits for iterations at distance {', '.join(waits)}")
    if block.regions:
        lines.append(f"    {_count(len(block.regions), 'region')}")
        lines += [f"        {' and '.join(region.where)}" for region in block.regions]
    return lines + (_order(block.order) if block.order else [])


def _read(read: Read, loops: int) -> str:
    source = f"its own {read.source}" if read.own else read.source
    text = source + _place(read.place) if read.place else source
    if read.dims > loops and loops:
        text += f" for all {', '.join(f'd{i}' for i in range(loops, read.dims))}"
    if read.where:
        text += f" where {' and '.join(read.where)}"
    return text + (", as a run chooses" if read.indirect else "")


def _place(place: range | tuple[str, ...]) -> str:
    return f"[{', '.join(f'd{i}' if isinstance(i, int) else i for i in place)}]"


def _order(order: Order) -> list[str]:
    steps = f"{order.steps} steps" if order.steps else "steps"
    return [
        f"    order ({', '.join(order.rows)}): {steps} of iterations that may run at once",
        f"        {_range(order.bounds)}",
    ]


def _range(bounds: Bounds) -> str:
    """``0 <= j0 < 95, max(0, j0 - 63) <= j1 < ...``."""
    return ", ".join(f"{_extreme('max', low)} <= j{i} < {_extreme('min', up)}" for i, (low, up) in enumerate(bounds))


def _extreme(function: str, exprs: tuple[str, ...]) -> str:
    renamed = [re.sub(r"\bd(\d+)", r"j\1", expr) for expr in exprs]
    return renamed[0] if len(renamed) == 1 else f"{function}({', '.join(renamed)})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
