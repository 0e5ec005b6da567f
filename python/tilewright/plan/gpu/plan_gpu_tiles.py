# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides the tiles of a GPU's kernels (`tile.rtile`): what a CTA covers and what it holds in registers at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.attributes import members_of_nest
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops, set_attribute
from tilewright.ir.target_info import device_of, options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.plan.cost.kernel import predict_kernel
from tilewright.plan.cost.tiling import GpuTiling
from tilewright.plan.gpu.gemv import choose_gemv
from tilewright.plan.gpu.online_reduction import Online, choose_online
from tilewright.plan.gpu.products import choose_product, default_shape, find_roles, tile_product
from tilewright.plan.gpu.slow import mark_apart
from tilewright.plan.gpu.tiles import ROW, Given, tile_elementwise, tile_reduce
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.names import kernel_name
from tilewright.plan.model.nest import Nest, lane_of, power_of_two, roots_of

#: Rows of a task of several nests where neighbours in memory are rows.
_SIDE_BY_SIDE = 64
#: Tasks that fill a GPU: fewer rows for each are better than fewer tasks.
_WAVES = 2


def tile_nest(nest: Nest, gpu: Gpu, given: Given | None = None, number: int = 0) -> GpuTiling:
    """The tiling of one nest.

    Args:
        nest: the nest.
        gpu: the machine.
        given: what its task says, where there are several nests.
        number: of the candidate that it takes, where there are some to choose from.
    """
    if nest.root.kind is Kind.CONTRACTION:
        roles = find_roles(nest)
        if roles is not None:
            if given is None:
                return choose_product(nest, roles, gpu, number)
            return tile_product(nest, roles, default_shape(nest.root), given)
    if nest.root.reductions:
        stream = choose_gemv(nest, gpu, number) if given is None else None
        return stream or tile_reduce(nest, given)
    return tile_elementwise(nest, given)


@dataclass(eq=False)
class GpuTask:
    """The nests of one kernel, and per nest the loops that all of them share, in common order."""

    members: Sequence[LinalgOp]
    nests: Sequence[Nest]
    rows: Sequence[list[int]]
    #: rows that fusion chose for tasks with products; 0: none
    block: int = 0
    #: the candidate that it takes
    number: int = 0
    #: online reductions (in one loop), once the tiles are known
    online: Online | None = None

    def tile(self, gpu: Gpu) -> list[GpuTiling]:
        """The tilings of all nests."""
        if len(self.nests) == 1:
            return [tile_nest(self.nests[0], gpu, number=self.number)]
        if streams := self._streams(gpu):
            return streams
        sizes = self._sizes(gpu)
        extent = self.nests[-1].root.extents[self.rows[-1][-1]] if sizes else 0
        self.online = choose_online(self.members, self.nests, sizes, gpu, extent, self.number)
        if self.online:
            sizes[-1] = self.online.rows
        tilings = []
        for nest, own in zip(self.nests, self.rows, strict=True):
            steps = self.online.steps(nest.root) if self.online else {}
            tilings.append(tile_nest(nest, gpu, Given(dict(zip(own, sizes, strict=True)), steps)))
        warps = self.online.warps if self.online else max(tiling.warps for tiling in tilings)
        return [replace(tiling, warps=warps) for tiling in tilings]

    def _streams(self, gpu: Gpu) -> list[GpuTiling] | None:
        """Products with a vector that meet in one task, in the tiles of each alone; None where these differ."""
        if self.block or any(n.root.kind is not Kind.CONTRACTION or find_roles(n) is not None for n in self.nests):
            return None
        found = [tiling for nest in self.nests if (tiling := choose_gemv(nest, gpu)) is not None]
        if len(found) < len(self.nests):
            return None
        sizes = [[tiling.task[d] for d in own] for tiling, own in zip(found, self.rows, strict=True)]
        if any(size != sizes[-1] for size in sizes):
            return None
        warps = max(tiling.warps for tiling in found)
        return [replace(tiling, warps=warps, marks={}) for tiling in found]

    def _sizes(self, gpu: Gpu) -> list[int]:
        """What a task covers of each common row."""
        anchor, own = self.nests[-1].root, self.rows[-1]
        if not own:
            return []
        if not self.block and all(nest.root.kind is Kind.CONTRACTION for nest in self.nests):
            tiling = tile_nest(self.nests[-1], gpu)
            return [tiling.task[d] for d in own]
        sizes = [1] * len(own)
        sizes[-1] = power_of_two(self.block) if self.block else self._share(anchor, gpu)
        return sizes

    def _share(self, anchor: LinalgOp, gpu: Gpu) -> int:
        """Rows of a task without products: as many as fill a tile, fewer where that leaves multiprocessors idle."""
        last = self.rows[-1][-1]
        inner = max(
            prod(e for d, e in enumerate(nest.root.extents) if d not in own)
            for nest, own in zip(self.nests, self.rows, strict=True)
        )
        largest = max(anchor.inputs, key=lambda a: prod(anchor.extents[d] for d in a.loops), default=anchor.output)
        extent = power_of_two(anchor.extents[last])
        if lane_of(anchor, largest) == last:
            return min(_SIDE_BY_SIDE, extent)
        others = prod(anchor.extents[d] for d in self.rows[-1][:-1])
        share = max(ROW // 2 // power_of_two(inner), 1)
        idle = max(anchor.extents[last] * others // (_WAVES * gpu.units), 1)
        return min(share, power_of_two(idle), extent)


def _predicted(
    nests: Sequence[Nest], tilings: Sequence[GpuTiling], gpu: Gpu, live: float, online: Online | None
) -> str:
    shared, reached = (online.shared, online.reached) if online else (0, 0.0)
    return predict_kernel(nests, tilings, gpu, live, shared, reached).attribute(online.choice() if online else ())


@register
@dataclass(frozen=True)
class PlanGpuTiles(Pass):
    """Give each nest of a GPU's kernels its tile sizes (`tile.rtile`), padded to powers of two.

    A task is a CTA; its register tiles are distributed over all of its threads.

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<100xf32>) -> tensor<100xf32> {
      %e = tensor.empty() : tensor<100xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
          tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
          ins(%x : tensor<100xf32>) outs(%e : tensor<100xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      } -> tensor<100xf32>
      return %y : tensor<100xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x : tensor<100xf32>) outs(%e : tensor<100xf32>)
        attrs = {tile.kernel = "map_100", tile.nest = 0 : i64, tile.padded,
    ```
    """

    name: ClassVar[str] = "tile-plan-gpu-tiles"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    choices: tuple[str, ...] = option(
        (), "KERNEL:NUMBER, the candidate that a kernel takes instead of the first (default: those of tile.options)"
    )

    def run(self, op: ir.Operation) -> None:
        """Give tiles to the nests of each task that `tile-plan-fusion` made."""
        gpu, weights = Gpu.of(device_of(op, self.name)), Weights()
        choices = self.choices or options_of(op).choices
        chosen = {name: int(number) for name, _, number in (text.rpartition(":") for text in choices)}
        for block in blocks(op):
            tasks: dict[int, list[LinalgOp]] = {}
            planned = [member for member in linalg_ops(block, weights) if decisions.TASK.on(member.op)]
            mark_apart(planned)
            for member in planned:
                tasks.setdefault(decisions.TASK.read(member.op), []).append(member)
            for members in tasks.values():
                self._tile_task(members, gpu, chosen)

    @staticmethod
    def _tile_task(members: list[LinalgOp], gpu: Gpu, chosen: Mapping[str, int]) -> None:
        roots, rows = roots_of(members)
        name = kernel_name(members, roots)
        set_attribute(roots[-1].op, decisions.KERNEL, f'"{name}"')
        nests = []
        for root in roots:
            own = members_of_nest(root, members)
            given = decisions.GATHERS.on(root.op)
            gathers = decisions.GATHERS.read_loops(root.op, len(root.extents)) if given else ()
            nests.append(Nest(root, own, frozenset(gathers)))
        block = decisions.BLOCK.read(roots[-1].op) if decisions.BLOCK.on(roots[-1].op) else 0
        if block and not all(rows):
            block = 0  # no row is common to all nests: one task
        task = GpuTask(members, nests, rows, block, chosen.get(name, 0))
        tilings = task.tile(gpu)
        for nest, tiling in zip(nests, tilings, strict=True):
            for mark in (decisions.ROWS, decisions.BLOCK, decisions.GATHERS):
                if mark in nest.root.op.attributes:
                    del nest.root.op.attributes[mark]
            tiling.write(nest.root)
        live = 1.0 if task.online is None else task.online.apply(members)
        if all(not decisions.PREDICTION.on(root.op) for root in roots):
            set_attribute(roots[-1].op, decisions.PREDICTION, _predicted(nests, tilings, gpu, live, task.online))
