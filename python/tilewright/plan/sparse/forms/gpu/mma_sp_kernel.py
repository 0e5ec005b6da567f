# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of the family `gpu_mma_sp`, as text."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plan.sparse.forms.making import finished

#: Rows of `a` whose metadata lie together, those of a fragment; terms of a step, whose metadata fill a word of a lane.
BLOCK, DEPTH = 16, 64


@dataclass(frozen=True)
class MmaKernel:
    """What the kernel is made for: c [rows, columns] = a [rows, depth] @ b [depth, columns], `a` 2:4 sparse.

    Attributes:
        rows: of `a`.
        depth: terms of a sum.
        columns: of `b`; below zero where a run brings them.
        tile_rows: rows of a task, a multiple of `BLOCK`.
        tile_columns: columns of a task.
        warps: of a task.
        stages: slots of the ring through which operands come; 1: plain loads.
        wgmma: whether warpgroups multiply what a warp of its own brings to shared memory, on Hopper.
        cluster: tasks along rows and columns that load for each other, on Hopper.
        given: element type of `a` and `b`.
        result: element type of `c`, and of what is added.
        adds: whether something is added to the product.
        predicted: the predicted time, as an attribute of the kernel.
    """

    rows: int
    depth: int
    columns: int
    tile_rows: int
    tile_columns: int
    warps: int
    stages: int
    wgmma: bool
    cluster: tuple[int, int]
    given: str
    result: str
    adds: bool
    predicted: str

    @property
    def row_tiles(self) -> int:
        """Tasks along the rows, whole clusters of them."""
        return -(-self.rows // (self.tile_rows * self.cluster[0])) * self.cluster[0]

    @property
    def padded_rows(self) -> int:
        """Rows of whole tiles."""
        return self.row_tiles * self.tile_rows

    @property
    def padded_depth(self) -> int:
        """Terms of whole steps."""
        return -(-self.depth // DEPTH) * DEPTH


def mma_text(k: MmaKernel) -> str:
    """The kernel as text: arguments are values, metadata, b, what is added if something is, c."""
    columns = str(k.columns) if k.columns >= 0 else "?"
    a = f"memref<{k.padded_rows}x{k.padded_depth // 2}x{k.given}>"
    meta = f"memref<{k.padded_rows // BLOCK}x{k.padded_depth}xi16>"
    b, c = f"memref<{k.depth}x{columns}x{k.given}>", f"memref<{k.rows}x{columns}x{k.result}>"
    m, n, blocks = k.tile_rows, k.tile_columns, k.tile_rows // BLOCK
    added = f", %d: {c}" if k.adds else ""
    clustered = "" if k.cluster == (1, 1) else f" cluster [{k.cluster[0]}, {k.cluster[1]}]"
    unit = "" if k.wgmma else ' {tile.unit = "mma"}'
    stages = f" {{tile.stages = {k.stages} : i64}}" if k.stages > 1 else ""
    width = f"arith.constant {k.columns} : index" if k.columns >= 0 else f"memref.dim %b, %c1 : {b}"
    tile_b = f"%b[%k, %column] valid (%terms, %live) : {b}, !tile.tile<{DEPTH}x{n}x{k.given}>"
    return f"""
tile.kernel @KERNEL(%a: {a}, %meta: {meta}, %b: {b}{added}, %c: {c}) grid(%i, %j){clustered}
    attributes {{tile.warps = {k.warps} : i64{", tile.specialized" if k.wgmma else ""}, {k.predicted}}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %steps = arith.constant {k.padded_depth // DEPTH} : index
  %tile_rows = arith.constant {m} : index
  %tile_columns = arith.constant {n} : index
  %tile_blocks = arith.constant {blocks} : index
  %tile_depth = arith.constant {DEPTH} : index
  %tile_half = arith.constant {DEPTH // 2} : index
  %rows = arith.constant {k.rows} : index
  %depth = arith.constant {k.depth} : index
  %columns = {width}
  %row = arith.muli %i, %tile_rows : index
  %block = arith.muli %i, %tile_blocks : index
  %column = arith.muli %j, %tile_columns : index
  %live = arith.subi %columns, %column : index
  %live_rows = arith.subi %rows, %row : index
  %zero = arith.constant dense<0.0> : !tile.tile<{m}x{n}xf32>
  %sum = scf.for %s = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!tile.tile<{m}x{n}xf32>) {{
    %k = arith.muli %s, %tile_depth : index
    %h = arith.muli %s, %tile_half : index
    %terms = arith.subi %depth, %k : index
    %at = tile.load %a[%row, %h] : {a}, !tile.tile<{m}x{DEPTH // 2}x{k.given}>
    %words = tile.load %meta[%block, %k] : {meta}, !tile.tile<{blocks}x{DEPTH}xi16>
{_unfolded(blocks)}
    %bt = tile.load {tile_b}
    %next = tile.mma %at, %bt, %acc meta %mt sparsity [2, 4]{unit} : !tile.tile<{m}x{DEPTH // 2}x{k.given}>,
        !tile.tile<{DEPTH}x{n}x{k.given}>, !tile.tile<{m}x{n}xf32>, !tile.tile<{m}x{DEPTH // BLOCK}xi16>
    scf.yield %next : !tile.tile<{m}x{n}xf32>
  }}{stages}
{finished("%row, %column", "%live_rows, %live", f"{m}x{n}", c, k.result, k.adds)}
  tile.return
}}
"""


def _unfolded(blocks: int) -> str:
    """Words as they lie, [blocks, (g, c, half)], as the product wants them: rows (block, half, g), columns c."""
    apart, turned = f"!tile.tile<{blocks}x8x4x2xi16>", f"!tile.tile<{blocks}x2x8x4xi16>"
    return f"""    %lanes = tile.reshape %words : !tile.tile<{blocks}x{DEPTH}xi16> -> {apart}
    %turned = tile.transpose %lanes [0, 3, 1, 2] : {apart} -> {turned}
    %mt = tile.reshape %turned : {turned} -> !tile.tile<{BLOCK * blocks}x{DEPTH // BLOCK}xi16>"""
