# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-skip-masked-blocks`: attention leaves out blocks of keys that a mask of this run masks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices.device import Device
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops
from tilewright.ir.target_info import device_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.attention.kv_parts import around
from tilewright.plan.attention.masks import scores_of
from tilewright.plan.attention.online_reduction import Chain, find_chains, is_maximum
from tilewright.plan.attention.run_time_mask import RunTimeMask, mask_of
from tilewright.plan.model.traffic import element, tensor_bytes

#: Share of a chain's time that looking at the mask may cost: no run is slower by more.
_MOST_INDEX = 0.03
#: Steps of the loop, at least: shorter rows run faster as a whole.
_LEAST = 512


@register
@dataclass(frozen=True)
class SkipMaskedBlocks(Pass):
    """Let softmax chains skip blocks of steps that a mask of this run masks for all rows of a task.

    The mask may choose between scores and a number below all others, or be added to them. A byte per row and 64 steps
    says whether something is left there, or whether all of the row is masked (which then sees all elements, as it did);
    `tile.skip` is the number of the input of what masks that has these bytes. Masks that constants determine alone are
    bounds of loops (`tile.live`), not bytes.

    Before:
    ```mlir
    #q = affine_map<(i, j, c) -> (i, c)>
    #k = affine_map<(i, j, c) -> (j, c)>
    #s = affine_map<(i, j, c) -> (i, j)>
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    #p = affine_map<(i, c, j) -> (i, j)>
    #v = affine_map<(i, c, j) -> (j, c)>
    #y = affine_map<(i, c, j) -> (i, c)>
    func.func @main(%q: tensor<512x128xf32>, %k: tensor<512x128xf32>, %v: tensor<512x128xf32>,
        %mask: tensor<512x512xi1>) -> (tensor<512x128xf32>, tensor<512xf32>) {
      %zero = arith.constant 0.0 : f32
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<512x512xf32>
      %r = tensor.empty() : tensor<512xf32>
      %o = tensor.empty() : tensor<512x128xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
      %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<512x128xf32>, tensor<512x128xf32>) outs(%f : tensor<512x512xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %t = arith.addf %c, %m : f32
        linalg.yield %t : f32
      } -> tensor<512x512xf32>
      %n = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
          ins(%mask, %s : tensor<512x512xi1>, tensor<512x512xf32>) outs(%e : tensor<512x512xf32>) {
      ^bb0(%a: i1, %b: f32, %c: f32):
        %t = arith.select %a, %b, %low : f32
        linalg.yield %t : f32
      } -> tensor<512x512xf32>
      %g = linalg.fill ins(%low : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
      %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
          ins(%n : tensor<512x512xf32>) outs(%g : tensor<512xf32>) {
      ^bb0(%a: f32, %c: f32):
        %t = arith.maximumf %c, %a : f32
        linalg.yield %t : f32
      } -> tensor<512xf32>
      %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
          ins(%n, %m : tensor<512x512xf32>, tensor<512xf32>) outs(%e : tensor<512x512xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %d = arith.subf %a, %b : f32
        %t = math.exp %d : f32
        linalg.yield %t : f32
      } -> tensor<512x512xf32>
      %h = linalg.fill ins(%zero : f32) outs(%r : tensor<512xf32>) -> tensor<512xf32>
      %l = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<512x512xf32>) outs(%h : tensor<512xf32>) {
      ^bb0(%a: f32, %c: f32):
        %t = arith.addf %c, %a : f32
        linalg.yield %t : f32
      } -> tensor<512xf32>
      %z = linalg.fill ins(%zero : f32) outs(%o : tensor<512x128xf32>) -> tensor<512x128xf32>
      %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %v : tensor<512x512xf32>, tensor<512x128xf32>) outs(%z : tensor<512x128xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %u = arith.mulf %a, %b : f32
        %t = arith.addf %c, %u : f32
        linalg.yield %t : f32
      } -> tensor<512x128xf32>
      return %w, %l : tensor<512x128xf32>, tensor<512xf32>
    }
    ```
    After:
    ```mlir
    ins(%mask, %u : tensor<512x512xi1>, tensor<64xi8>) outs(%b : tensor<512x8xi8>) attrs = {tile.apart = 0 : i64} {
    ...
    ins(%mask, %s, %flags : tensor<512x512xi1>, tensor<512x512xf32>, tensor<512x8xi8>)
        outs(%e : tensor<512x512xf32>) attrs = {tile.skip = 2 : i64} {
    ```
    """

    name: ClassVar[str] = "tile-skip-masked-blocks"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit the chains of each block."""
        device = device_of(op, self.name)
        for block in blocks(op):
            flags: dict[Hashable, ir.Value] = {}
            done = 0
            while (found := _next(block, done, device)) is not None:
                mask, done = found
                mask.give_flags(flags)


def _next(block: ir.Block, done: int, device: Device) -> tuple[RunTimeMask, int] | None:
    """The next mask of a block that is worth flags, and how many long maxima were looked at then, `done` before."""
    ops = linalg_ops(block, Weights())
    for number, maximum in enumerate(op for op in ops if _is_long(op)):
        if number < done:
            continue
        for mask in _masks(maximum, ops):
            if _share(mask, device) <= _MOST_INDEX:
                return mask, number + 1
    return None


def _is_long(op: LinalgOp) -> bool:
    return len(op.reductions) == 1 and op.extents[next(iter(op.reductions))] >= _LEAST and is_maximum(op)


def _masks(maximum: LinalgOp, ops: list[LinalgOp]) -> Iterator[RunTimeMask]:
    """The masks of the chain that a maximum begins, if it has products."""
    for chain in find_chains(around(maximum, ops)):
        products = [op for op in chain.loops if op.kind is Kind.CONTRACTION]
        if maximum in chain.accumulators and len(products) > 1:
            yield from _masks_of(chain)


def _masks_of(chain: Chain) -> Iterator[RunTimeMask]:
    for op in scores_of(chain, before=True):
        mask = mask_of(op, chain)
        if mask is not None:
            yield mask


def _share(mask: RunTimeMask, device: Device) -> float:
    """What looking at a mask costs, as a share of the time of its chain."""
    bandwidth = device.memory.bandwidth or 1e10
    products = [op for op in mask.chain.loops if op.kind is Kind.CONTRACTION]
    dense = sum(2 * op.points / device.units.peak_of(element(op.inputs[0])) for op in products)
    read = sum(tensor_bytes(access.value) for access in mask.inputs)
    return read / bandwidth / dense
