# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of the family `gpu_blocks`, as text."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.plan.sparse.forms.making import finished


@dataclass(frozen=True)
class BlockKernel:
    """What the kernel is made for: a product of which one operand is rows of blocks.

    A task has the results of one row of blocks and of `tile` elements of the dense operand.

    Attributes:
        left: whether the blocked operand is `a`, else `b`.
        side: elements of a block across the depth.
        run: elements of a block along the depth.
        across: elements of the blocked operand across the depth.
        depth: terms of a sum.
        other: elements of the dense operand across the depth; below zero where a run brings them.
        blocks: how many there are.
        tile: elements of the dense operand of a task.
        warps: of a task.
        stages: slots of the ring through which blocks and what they meet come; 1: plain loads.
        given: element type of the operands.
        result: element type of the result, and of what is added.
        adds: whether something is added to the product.
        predicted: the predicted time, as an attribute of the kernel.
    """

    left: bool
    side: int
    run: int
    across: int
    depth: int
    other: int
    blocks: int
    tile: int
    warps: int
    stages: int
    given: str
    result: str
    adds: bool
    predicted: str

    @property
    def rows_of_blocks(self) -> int:
        """Rows of blocks."""
        return -(-self.across // self.side)


def blocks_text(k: BlockKernel) -> str:
    """The kernel as text: arguments are blocks, their places, where rows begin, the dense operand, (what is added), c.

    Blocks are [side, run] where they are on the left, else [run, side].
    """
    other = str(k.other) if k.other >= 0 else "?"
    block = f"{k.side}x{k.run}" if k.left else f"{k.run}x{k.side}"
    dense = f"memref<{k.depth}x{other}x{k.given}>" if k.left else f"memref<{other}x{k.depth}x{k.given}>"
    result = f"memref<{k.across}x{other}x{k.result}>" if k.left else f"memref<{other}x{k.across}x{k.result}>"
    part = f"{k.run}x{k.tile}" if k.left else f"{k.tile}x{k.run}"
    place, bounds = ("%k, %at", "%terms, %live") if k.left else ("%at, %k", "%live, %terms")
    held = f"{k.side}x{k.tile}" if k.left else f"{k.tile}x{k.side}"
    size = f"arith.constant {k.other} : index" if k.other >= 0 else f"memref.dim %x, %c{int(k.left)} : {dense}"
    a, b = ("%bt", "%xt") if k.left else ("%xt", "%bt")
    types = (block, part) if k.left else (part, block)
    kinds = ", ".join(f"!tile.tile<{shape}x{k.given}>" for shape in types)
    stages = f" {{tile.stages = {k.stages} : i64}}" if k.stages > 1 else ""
    return f"""
tile.kernel @KERNEL(%blocks: memref<{k.blocks}x{block}x{k.given}>, %places: memref<{k.blocks}xi32>,
                    %starts: memref<{k.rows_of_blocks + 1}xi32>, %x: {dense}{f", %d: {result}" if k.adds else ""},
                    %c: {result}) grid(%i, %j) attributes {{tile.warps = {k.warps} : i64, {k.predicted}}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %side = arith.constant {k.side} : index
  %run = arith.constant {k.run} : index
  %tile = arith.constant {k.tile} : index
  %across = arith.constant {k.across} : index
  %depth = arith.constant {k.depth} : index
  %other = {size}
  %at = arith.muli %j, %tile : index
  %live = arith.subi %other, %at : index
  %edge = arith.muli %i, %side : index
  %edge_live = arith.subi %across, %edge : index
  %next_row = arith.addi %i, %c1 : index
  %first32 = memref.load %starts[%i] : memref<{k.rows_of_blocks + 1}xi32>
  %last32 = memref.load %starts[%next_row] : memref<{k.rows_of_blocks + 1}xi32>
  %first = arith.index_cast %first32 : i32 to index
  %last = arith.index_cast %last32 : i32 to index
  %zero = arith.constant dense<0.0> : !tile.tile<{held}xf32>
  %any = arith.cmpi ult, %first, %last : index
  %sum = scf.if %any -> (!tile.tile<{held}xf32>) {{
    %total = scf.for %t = %first to %last step %c1 iter_args(%acc = %zero) -> (!tile.tile<{held}xf32>) {{
      %place32 = memref.load %places[%t] : memref<{k.blocks}xi32>
      %place = arith.index_cast %place32 : i32 to index
      %k = arith.muli %place, %run : index
      %terms = arith.subi %depth, %k : index
      %bt = tile.load %blocks[%t, %c0, %c0] : memref<{k.blocks}x{block}x{k.given}>, !tile.tile<{block}x{k.given}>
      %xt = tile.load %x[{place}] valid ({bounds}) : {dense}, !tile.tile<{part}x{k.given}>
      %next = tile.mma {a}, {b}, %acc : {kinds}, !tile.tile<{held}xf32>
      scf.yield %next : !tile.tile<{held}xf32>
    }}{stages}
    scf.yield %total : !tile.tile<{held}xf32>
  }} else {{
    scf.yield %zero : !tile.tile<{held}xf32>
  }}
{_finished(k, held, result)}
  tile.return
}}
"""


def _finished(k: BlockKernel, held: str, result: str) -> str:
    """What is added, the type of the result, and its store."""
    place, bounds = ("%edge, %at", "%edge_live, %live") if k.left else ("%at, %edge", "%live, %edge_live")
    return finished(place, bounds, held, result, k.result, k.adds)
