# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides which reductions of a task run in one loop, and in which blocks (`tile.online`)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir import decisions
from tilewright.ir.attributes import members_of_nest
from tilewright.ir.structure import LinalgOp, Weights, blocks, linalg_ops, set_attribute
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register, remark
from tilewright.plan.attention.masks import live_blocks, masks_of, stretches
from tilewright.plan.attention.online_reduction import Chain, find_chains
from tilewright.plan.attention.run_time_mask import drop_flags
from tilewright.plan.model.traffic import element_bytes

#: A block's tensors may take this part of the L2 cache: they are read again at once.
_NEAR = 64
#: A whole row's tensors may: longer rows run in blocks.
_WHOLE = 4
#: Steps of a block are a multiple of it.
_MULTIPLE = 64
#: Steps of a block that a mask of the run may leave out, at most: masks come in blocks of about that size.
_SKIPPED = 128
#: A mask that leaves more of the work than this is not worth bounds of its own.
_WORTH = 0.9


def _sizes(root: LinalgOp, level: str) -> list[int]:
    """Sizes per loop of the tile that was planned for a nest."""
    sizes = decisions.RTILE.read(root.op).sizes
    return list(sizes[level]) if level in sizes else list(root.extents)


class TaskNests:
    """The nests of a task, by number."""

    def __init__(self, members: list[LinalgOp], level: str = "l2") -> None:
        self.members = members
        self.level = level
        self.roots = {decisions.NEST.read(m.op): m for m in members if decisions.RTILE.on(m.op)}
        self.next = max(decisions.NEST.read(m.op) for m in members) + 1

    def root(self, op: LinalgOp) -> LinalgOp:
        """The root of the nest of an operation."""
        return self.roots[decisions.NEST.read(op.op)]

    def crosses(self, op: LinalgOp) -> bool:
        """Whether another nest reads the result."""
        own = op.op.attributes[decisions.NEST]
        return any(use.owner.operation.attributes[decisions.NEST] != own for use in op.result.uses)

    def bytes_per_step(self, chain: Chain) -> int:
        """Bytes between nests that one step of the chain's loop makes, for the rows of a task."""
        total = 0
        for op in chain.made():
            if not self.crosses(op):
                continue
            rows = prod(self.task_sizes(op)[d] for d in op.output.dims if d is not None and d != chain.loops[op])
            total += rows * element_bytes(op.result)
        return total

    def task_sizes(self, op: LinalgOp) -> list[int]:
        """What a task covers of each loop."""
        root = self.root(op)
        sizes, loops = _sizes(root, self.level), self._bound(op, root)
        return [sizes[loops[d]] if d in loops else e for d, e in enumerate(op.extents)]

    def _bound(self, op: LinalgOp, root: LinalgOp) -> dict[int, int]:
        """Loops of `op` as loops of the root that it feeds or follows, as far as plain dimensions say."""
        if op is root:
            return {d: d for d in range(op.rank)}
        own = members_of_nest(root, self.members)
        known = {root: {d: d for d in range(root.rank)}}
        for _ in own:
            for reader in own:
                for access in reader.inputs:
                    maker = next((m for m in own if m.result == access.value), None)
                    if maker is None or (maker in known) == (reader in known):
                        continue
                    pairs = [
                        (made, read)
                        for made, read in zip(maker.output.dims, access.dims, strict=True)
                        if made is not None and read is not None
                    ]
                    if reader in known:
                        known[maker] = {a: known[reader][b] for a, b in pairs if b in known[reader]}
                    else:
                        known[reader] = {b: known[maker][a] for a, b in pairs if a in known[maker]}
        return known.get(op, {})

    def move_out(self, chain: Chain) -> None:
        """Gives operations that need a whole reduction, in nests of the chain, nests of their own."""
        own = {decisions.NEST.read(op.op) for op in chain.loops}
        moved = [op for op in chain.after if decisions.NEST.read(op.op) in own]
        bound = [self._bound(op, self.root(op)) for op in moved]  # while they still stand beside each other
        for op, loops in zip(moved, bound, strict=True):
            self._move(op, loops)

    def _move(self, op: LinalgOp, loops: dict[int, int]) -> None:
        """Gives an operation a nest of its own, over the rows and in the tiles of its former one."""
        root = self.root(op)
        task, register = _sizes(root, self.level), _sizes(root, "register")
        task = [task[loops[d]] if d in loops else e for d, e in enumerate(op.extents)]
        register = [register[loops[d]] if d in loops else 1 for d in range(op.rank)]
        order = sorted(range(op.rank), key=lambda d: register[d] > 1)
        decisions.NEST.set(op.op, self.next)
        text = f"#tile.rtile<{self.level} = {task}, register = {register}, order = {order}>"
        set_attribute(op.op, decisions.RTILE, text)
        if decisions.PADDED.on(root.op):
            decisions.PADDED.set(op.op)
        self.roots[self.next] = op
        self.next += 1


def mark_live(chain: Chain, nests: TaskNests, block: int) -> bool:
    """Whether constants mask enough blocks; which ones stands on the operation that masks (`tile.live`)."""
    if any(decisions.LIVE.on(op.op) for op in chain.loops):
        return True  # parts of the loop are tasks of their own
    if chain.open:
        return False  # no constant has the size of the loop
    if _skips(chain):
        return True
    for op, mask in masks_of(chain):
        live = mask.live()
        if live is None or mask.row is None:
            continue
        rows = nests.task_sizes(op)[mask.row]
        bounds = live_blocks(live, rows, block)
        if sum(high - low for low, high in bounds) > _WORTH * len(bounds) * chain.extent:
            continue
        numbers = [mask.row, rows, *stretches(bounds)]
        decisions.LIVE.set(op.op, numbers)
        return True
    return False


def _skips(chain: Chain) -> bool:
    """Whether a mask of the run may leave blocks out."""
    return any(decisions.SKIP.on(op.op) for op in chain.loops)


@register
@dataclass(frozen=True)
class PlanOnline(Pass):
    """Decide which reductions of a task run in one loop, block by block (`tile.online`).

    It pays where what is made for whole rows of a task leaves its share of the L2 cache, and where constants mask
    blocks for all rows of a task: `tile.live` then says from which step to which one a task's loop runs (the loop of
    the rows, rows of a task, and per stretch of tasks its first one, start, growth of the start, end, growth of the
    end). Where a mask of the run may leave blocks out (`tile.skip`), these are short. What needs a whole reduction
    becomes a nest of its own.

    Before:
    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    func.func @main(%x: tensor<16x131072xf32>) -> tensor<16xf32> {
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16xf32>
      %h = tensor.empty() : tensor<16x131072xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.task = 0 : i64, tile.nest = 0 : i64, tile.rtile = #tile.rtile<l2 = [1, 131072], register = [1, 64]>}
          ins(%x : tensor<16x131072xf32>) outs(%f : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"],
          tile.task = 0 : i64, tile.nest = 1 : i64, tile.rtile = #tile.rtile<l2 = [1, 131072], register = [1, 32]>}
          ins(%x, %m : tensor<16x131072xf32>, tensor<16xf32>) outs(%h : tensor<16x131072xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %d = arith.subf %a, %b : f32
        %t = math.exp %d : f32
        linalg.yield %t : f32
      } -> tensor<16x131072xf32>
      %g = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %s = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
          tile.task = 0 : i64, tile.nest = 2 : i64, tile.rtile = #tile.rtile<l2 = [1, 131072], register = [1, 64]>}
          ins(%p : tensor<16x131072xf32>) outs(%g : tensor<16xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.addf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      return %s : tensor<16xf32>
    }
    ```
    After:
    ```mlir
    %m = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<16x131072xf32>) outs(%f : tensor<16xf32>)
        attrs = {tile.nest = 0 : i64, tile.online = array<i64: 1, 4096>,
    ```
    """

    name: ClassVar[str] = "tile-plan-online"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    l2_bytes: int = device_option(1048576, facts.task_bytes, "bytes of the L2 cache of a core")

    def run(self, op: ir.Operation) -> None:
        """Decide task by task."""
        weights = Weights()
        for block in blocks(op):
            tasks: dict[int, list[LinalgOp]] = {}
            for member in linalg_ops(block, weights):
                if decisions.TASK.on(member.op):
                    tasks.setdefault(decisions.TASK.read(member.op), []).append(member)
            for members in tasks.values():
                self._decide(members)
            idle = [m for members in tasks.values() for m in members if decisions.SKIP.on(m.op)]
            for member in [m for m in idle if not decisions.ONLINE.on(m.op)]:
                drop_flags(member)

    def _decide(self, members: list[LinalgOp]) -> None:
        nests = TaskNests(members)
        for chain in find_chains(members):
            step = nests.bytes_per_step(chain)
            block = self._block(chain, step)
            if not block or any(nests.root(op) not in chain.loops for op in chain.loops):
                continue
            if not (mark_live(chain, nests, block) or step * chain.extent > self.l2_bytes // _WHOLE):
                continue
            for op, loop in chain.loops.items():
                decisions.ONLINE.set(op.op, [loop, block])
                if decisions.SKIP.on(op.op):
                    remark(op.op, f"blocks of {block} steps of which the mask of a run leaves nothing are left out")
            nests.move_out(chain)
            return

    def _block(self, chain: Chain, step: int) -> int:
        """Steps whose tensors stay near the core; 0 where there are no two such blocks."""
        if step == 0:
            return 0
        block = max(self.l2_bytes // _NEAR // step // _MULTIPLE, 1) * _MULTIPLE
        if _skips(chain):
            block = min(block, _SKIPPED)
        return block if 2 * block <= chain.extent else 0
