# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of the family `gpu_nm`, as text: an index per row, and one for rows that share it."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plan.sparse.forms.making import finished


@dataclass(frozen=True)
class WindowKernel:
    """What a kernel is made for: y = W @ x, W [across, depth] N:M sparse; or its mirror image y = x @ W.

    Attributes:
        left: whether W is on the left; else x is [other, depth], y [other, across].
        across: elements of W across the depth.
        depth: terms of a sum.
        other: elements of x across the depth; below zero where a run brings them.
        side: elements of W across the depth of a task.
        tile: elements of x across the depth of a task.
        block: places along the depth that lie in shared memory together, whole windows of each way.
        ways: parts of a block that warps add up beside each other, and then together.
        count: kept elements of each row of W in a part of a block.
        warps: of a task.
        given: element type of W and x.
        result: element type of y, and of what is added.
        adds: whether something is added to the product.
        predicted: the predicted time, as an attribute of the kernel.
        step: kept elements that are multiplied as a tile, of rows that share their places; 0: each row has its own.
    """

    left: bool
    across: int
    depth: int
    other: int
    side: int
    tile: int
    block: int
    ways: int
    count: int
    warps: int
    given: str
    result: str
    adds: bool
    predicted: str
    step: int = 0

    @property
    def sides(self) -> int:
        """Tasks along W."""
        return -(-self.across // self.side)

    @property
    def blocks(self) -> int:
        """Blocks of the depth."""
        return -(-self.depth // self.block)

    @property
    def rows(self) -> int:
        """Rows of W of a task, those of each way."""
        return self.ways * self.side

    @property
    def gathers(self) -> bool:
        """Whether rows of x are fetched one by one, those that are needed: they lie one after the other in memory."""
        return bool(self.left and self.step)

    @property
    def shared_row(self) -> int:
        """Elements of a row of x in shared memory: 16 bytes more where columns are read, of banks of their own then."""
        if self.left:
            return self.tile
        if not self.step:
            return self.block
        return self.block + 16 // (4 if self.given == "f32" else 2)

    @property
    def places(self) -> str:
        """The type of places in a block."""
        return "i8" if self.block <= 256 else "i16"

    def turn(self, first: int | str, second: int | str) -> str:
        """Sizes or coordinates of a matrix whose first dimension is along W where W is on the left."""
        joint = "x" if isinstance(first, int) or first.isdigit() else ", "
        return joint.join(str(one) for one in ((first, second) if self.left else (second, first)))


def window_text(k: WindowKernel) -> str:
    """The kernel as text: arguments are values, places, x, what is added if it is, y.

    A block of x lies in shared memory. Of each row of W one element of a window after the other meets the row of x that
    its place names: all rows are in the same window, whose entries lie in different banks (nmSPARSE 3.2). Rows of W
    that share their places are a tile, which is multiplied with the rows of x that it needs.
    """
    other = str(k.other) if k.other >= 0 else "?"
    x = f"memref<{k.depth}x{other}x{k.given}>" if k.left else f"memref<{other}x{k.depth}x{k.given}>"
    y = f"memref<{k.turn(str(k.across), other).replace(', ', 'x')}x{k.result}>"
    held, summed = k.turn(k.side, k.tile), k.turn(k.rows, k.tile)
    dim, name = int(k.left), "%sum" if k.ways == 1 else "%parts"
    size = f"arith.constant {k.other} : index" if k.other >= 0 else f"memref.dim %x, %c{dim} : {x}"
    lying = f"{k.block if k.left else k.tile}x{k.shared_row}"
    shared = f'memref<{lying}x{k.given}, #tile.level<"shared">>'
    own = f"memref<{k.sides}x{k.blocks}x{k.count}x{k.rows}x{k.given}>"
    ranks = f"memref<{k.sides}x{k.blocks}x{k.count}{'' if k.step else f'x{k.rows}'}x{k.places}>"
    body = _shared_places(k, own, ranks, x if k.gathers else shared) if k.step else _own_places(k, own, ranks, shared)
    return f"""
tile.kernel @KERNEL(%values: {own}, %places: {ranks}, %x: {x}{f", %d: {y}" if k.adds else ""}, %c: {y}) grid(%i, %j)
    attributes {{tile.warps = {k.warps} : i64, {k.predicted}}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %side = arith.constant {k.side} : index
  %tile = arith.constant {k.tile} : index
  %across = arith.constant {k.across} : index
  %depth = arith.constant {k.depth} : index
  %block = arith.constant {k.block} : index
  %blocks = arith.constant {k.blocks} : index
  %count = arith.constant {k.count} : index
  %step = arith.constant {k.step or 1} : index
  %other = {size}
  %at = arith.muli %j, %tile : index
  %live = arith.subi %other, %at : index
  %edge = arith.muli %i, %side : index
  %edge_live = arith.subi %across, %edge : index
{"" if k.gathers else f"  %xs = tile.alloc : {shared}"}
  %zero = arith.constant dense<0.0> : !tile.tile<{summed}xf32>
  {name} = scf.for %w = %c0 to %blocks step %c1 iter_args(%begin = %zero) -> (!tile.tile<{summed}xf32>) {{
    %k = arith.muli %w, %block : index
{"" if k.gathers else _window(k, x, shared)}
    %total = scf.for %p = %c0 to %count step %step iter_args(%acc = %begin) -> (!tile.tile<{summed}xf32>) {{
{body}
      scf.yield %next : !tile.tile<{summed}xf32>
    }}
    scf.yield %total : !tile.tile<{summed}xf32>
  }}
{_together(k, held, summed)}
{finished(k.turn("%edge", "%at"), k.turn("%edge_live", "%live"), held, y, k.result, k.adds)}
  tile.return
}}
"""


def _together(k: WindowKernel, held: str, summed: str) -> str:
    """The sum of what the ways have."""
    if k.ways == 1:
        return ""
    apart, dim = (f"{k.ways}x{k.side}x{k.tile}", 0) if k.left else (f"{k.tile}x{k.ways}x{k.side}", 1)
    one = f"1x{k.side}x{k.tile}" if k.left else f"{k.tile}x1x{k.side}"
    return f"""  %apart = tile.reshape %parts : !tile.tile<{summed}xf32> -> !tile.tile<{apart}xf32>
  %one = tile.reduce add %apart dims [{dim}] : !tile.tile<{apart}xf32> -> !tile.tile<{one}xf32>
  %sum = tile.reshape %one : !tile.tile<{one}xf32> -> !tile.tile<{held}xf32>"""


def _window(k: WindowKernel, x: str, shared: str) -> str:
    """A block of x to shared memory."""
    kept = f"!tile.tile<{k.turn(k.block, k.tile)}x{k.given}>"
    return f"""    %terms = arith.subi %depth, %k : index
    %xt = tile.load %x[{k.turn("%k", "%at")}] valid ({k.turn("%terms", "%live")}) : {x}, {kept}
    tile.store %xt, %xs[%c0, %c0] : {kept}, {shared}"""


def _own_places(k: WindowKernel, own: str, ranks: str, shared: str) -> str:
    """One element of each row times the row of x that it names."""
    held, dim = k.turn(k.rows, k.tile), 0 if k.left else 1
    column = k.turn(k.rows, 1)
    lines = [
        f"%v = tile.load %values[%i, %w, %p, %c0] : {own}, !tile.tile<{k.rows}x{k.given}>",
        f"%q = tile.load %places[%i, %w, %p, %c0] : {ranks}, !tile.tile<{k.rows}x{k.places}>",
        f"%r = tile.convert %q unsigned : !tile.tile<{k.rows}x{k.places}> -> !tile.tile<{k.rows}xi32>",
        f"%g = tile.load %xs[%c0, %c0] indices %r along {dim} : {shared}, !tile.tile<{held}x{k.given}> "
        f"(indices !tile.tile<{k.rows}xi32>)",
        f"%col = tile.reshape %v : !tile.tile<{k.rows}x{k.given}> -> !tile.tile<{column}x{k.given}>",
        f"%all = tile.broadcast %col : !tile.tile<{column}x{k.given}> -> !tile.tile<{held}x{k.given}>",
    ]
    g, v = "%g", "%all"
    if k.given != "f32":
        lines += [
            f"%gw = tile.convert %g : !tile.tile<{held}x{k.given}> -> !tile.tile<{held}xf32>",
            f"%vw = tile.convert %all : !tile.tile<{held}x{k.given}> -> !tile.tile<{held}xf32>",
        ]
        g, v = "%gw", "%vw"
    lines.append(f"%next = math.fma {v}, {g}, %acc : !tile.tile<{held}xf32>")
    return "\n".join(f"      {line}" for line in lines)


def _shared_places(k: WindowKernel, own: str, ranks: str, memory: str) -> str:
    """Elements of all rows, `step` of each, times as many rows of x, condensed."""
    held = k.turn(k.side, k.tile)
    place = "%x[%k, %at] indices %r along 0 valid (%step, %live)" if k.gathers else "%xs[%c0, %c0] indices %r along 1"
    weights, part = k.turn(k.side, k.step), k.turn(k.step, k.tile)
    dims = "[3, 2]" if k.left else "[2, 3]"
    operands, shapes = ("%v, %g", (weights, part)) if k.left else ("%g, %v", (part, weights))
    kinds = ", ".join(f"!tile.tile<{shape}x{k.given}>" for shape in shapes)
    lines = [
        f"%v = tile.load %values[%i, %w, %p, %c0] dims {dims} : {own}, !tile.tile<{weights}x{k.given}>",
        f"%q = tile.load %places[%i, %w, %p] : {ranks}, !tile.tile<{k.step}x{k.places}>",
        f"%r = tile.convert %q unsigned : !tile.tile<{k.step}x{k.places}> -> !tile.tile<{k.step}xi32>",
        f"%g = tile.load {place} : {memory}, !tile.tile<{part}x{k.given}> (indices !tile.tile<{k.step}xi32>)",
        f"%next = tile.mma {operands}, %acc : {kinds}, !tile.tile<{held}xf32>",
    ]
    return "\n".join(f"      {line}" for line in lines)
