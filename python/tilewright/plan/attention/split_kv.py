# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Softmax chains of few rows are cut into parts of their long loop, which run at once; a small kernel combines them.

Flash-Decoding (Dao, Haziza, Massa and Sizov, 2023): a query or a few against a long cache of keys are one task per head
otherwise, and most of a GPU is idle. Nothing here knows of attention: `online_reduction.py` finds the chain,
`kv_parts.py` cuts it. Parts are combined in a fixed order, so results do not depend on the order in which CTAs finish.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, prod
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.generics import maker
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops, set_attribute
from tilewright.ir.target_info import device_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.attention.kv_parts import Parts, around, can_cut, can_mask
from tilewright.plan.attention.online_reduction import Chain, find_chains, is_maximum
from tilewright.plan.cost import attention
from tilewright.plan.cost.attention import split_kv_seconds
from tilewright.plan.cost.roofline import pays
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.traffic import element, element_bytes, tensor_bytes

#: Parts at most, and steps of one at least.
_MOST = 128
_LEAST = 64
#: Steps that are expected where a run brings them, and of parts whose last one may be shorter.
_OPEN = 4096
_LENGTHS = (256, 512, 1024, 2048)
#: Rows that tasks share at most: a tile of queries for two warpgroups.
_ROWS = 64
#: Rows of an instruction of the matrix unit: fewer are padded.
_UNIT_ROWS = 16


@register
@dataclass(frozen=True)
class SplitKv(Pass):
    """Cut softmax chains of few tasks into parts that run at once, where the predicted time is less.

    The prediction stands on the last operation of the chain (`tile.parts`): parts, ns with the launches, the next best
    number of parts and its ns, and the ns of the whole. Operations of a chain have the same number as `tile.apart`.
    Parts are equal where their number divides the loop. Else they have a fixed length (`length`), and the last one may
    be shorter; so it is where a run brings the size of the loop, and with it the number of parts (`parts` is then that
    of the size that is expected).

    Before:
    ```mlir
    #s = affine_map<(h, j, c) -> (h, j)>
    #q = affine_map<(h, j, c) -> (h, c)>
    #k = affine_map<(h, j, c) -> (h, j, c)>
    #hj = affine_map<(h, j) -> (h, j)>
    #h = affine_map<(h, j) -> (h)>
    #p = affine_map<(h, c, j) -> (h, j)>
    #v = affine_map<(h, c, j) -> (h, j, c)>
    #y = affine_map<(h, c, j) -> (h, c)>
    func.func @main(%q: tensor<8x64xf32>, %k: tensor<8x16384x64xf32>, %v: tensor<8x16384x64xf32>)
        -> (tensor<8x64xf32>, tensor<8xf32>) {
      %zero = arith.constant 0.0 : f32
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<8x16384xf32>
      %r = tensor.empty() : tensor<8xf32>
      %o = tensor.empty() : tensor<8x64xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16384xf32>) -> tensor<8x16384xf32>
      %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<8x64xf32>, tensor<8x16384x64xf32>) outs(%f : tensor<8x16384xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %t = arith.addf %c, %m : f32
        linalg.yield %t : f32
      } -> tensor<8x16384xf32>
      %g = linalg.fill ins(%low : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
      %m = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
          ins(%s : tensor<8x16384xf32>) outs(%g : tensor<8xf32>) {
      ^bb0(%a: f32, %c: f32):
        %t = arith.maximumf %c, %a : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      %x = linalg.generic {indexing_maps = [#hj, #h, #hj], iterator_types = ["parallel", "parallel"]}
          ins(%s, %m : tensor<8x16384xf32>, tensor<8xf32>) outs(%e : tensor<8x16384xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %d = arith.subf %a, %b : f32
        %t = math.exp %d : f32
        linalg.yield %t : f32
      } -> tensor<8x16384xf32>
      %i = linalg.fill ins(%zero : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
      %l = linalg.generic {indexing_maps = [#hj, #h], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<8x16384xf32>) outs(%i : tensor<8xf32>) {
      ^bb0(%a: f32, %c: f32):
        %t = arith.addf %c, %a : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      %n = linalg.fill ins(%zero : f32) outs(%o : tensor<8x64xf32>) -> tensor<8x64xf32>
      %w = linalg.generic {indexing_maps = [#p, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %v : tensor<8x16384xf32>, tensor<8x16384x64xf32>) outs(%n : tensor<8x64xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %u = arith.mulf %a, %b : f32
        %t = arith.addf %c, %u : f32
        linalg.yield %t : f32
      } -> tensor<8x64xf32>
      return %w, %l : tensor<8x64xf32>, tensor<8xf32>
    }
    ```
    After:
    ```mlir
    %k1 = tensor.expand_shape %k [[0], [1, 2], [3]] output_shape [8, 64, 256, 64]
        : tensor<8x16384x64xf32> into tensor<8x64x256x64xf32>
    ...
    %m1 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%s1 : tensor<64x8x256xf32>) outs(%g1 : tensor<64x8xf32>) attrs = {tile.apart = 0 : i64} {
    ...
    %m2 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel", "reduction"]}
        ins(%c1 : tensor<64x8xf32>) outs(%g : tensor<8xf32>) {
    ```
    """

    name: ClassVar[str] = "tile-split-kv"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "math", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit the chains of each block."""
        gpu, weights, number = Gpu.of(device_of(op, self.name)), Weights(), 0
        for block in blocks(op):
            first = 0
            while (found := _next(linalg_ops(block, weights), first, gpu)) is not None:
                first, chain, choice = found
                last = Parts(chain, choice.parts, choice.length, number).cut()[-1]
                set_attribute(last, decisions.PARTS, choice.attribute())
                number += 1
                weights = Weights()


def _next(ops: list[LinalgOp], first: int, gpu: Gpu) -> tuple[int, Chain, Choice] | None:
    """The next chain of a block that had better be cut, and the place of its maximum.

    A maximum is known by its place among those that are no parts (a cut leaves one at the place of each): the hash of
    an operation changes with its attributes and operands, and the address of an erased one is used again.

    Args:
        ops: the operations of the block, as they are now.
        first: maxima that were looked at.
        gpu: the machine.
    """
    maxima = [op for op in ops if len(op.reductions) == 1 and is_maximum(op) and not decisions.APART.on(op.op)]
    for at, maximum in enumerate(maxima[first:], first):
        for chain in _chains(maximum, ops):
            choice = choose_parts(chain, gpu)
            if choice is not None:
                return at, chain, choice
    return None


def _chains(maximum: LinalgOp, ops: list[LinalgOp]) -> Iterator[Chain]:
    """The chain that a maximum begins, if it has sums relative to it."""
    for chain in find_chains(around(maximum, ops), open_sizes=True):
        if maximum in chain.accumulators and maximum in chain.relative.values() and can_cut(chain):
            yield chain


@dataclass(frozen=True)
class Choice:
    """How many parts, with predicted seconds of it, of the next best number, and of the chain as a whole.

    `length` is that of a part where the last one may be shorter, else 0.
    """

    parts: int
    length: int
    seconds: float
    runner_up: int
    runner_up_seconds: float
    whole: float

    def attribute(self) -> str:
        """As `tile.parts`: times in ns."""
        fields = [f"parts = {self.parts} : i64", f"ns = {self.seconds * 1e9:.0f} : i64"]
        if self.length:
            fields.append(f"length = {self.length} : i64")
        if self.runner_up > 1:
            fields.append(f"runner_up = {self.runner_up} : i64")
            fields.append(f"runner_up_ns = {self.runner_up_seconds * 1e9:.0f} : i64")
        return "{" + ", ".join([*fields, f"whole_ns = {self.whole * 1e9:.0f} : i64"]) + "}"


def choose_parts(chain: Chain, gpu: Gpu) -> Choice | None:
    """The number of parts with the least predicted time; None where the chain had better stay whole."""
    if chain.open and _has_open_rows(chain):
        return None  # as many queries as keys, it may be: these are tasks enough
    whole = _seconds(chain, 1, 0, gpu)
    times = sorted((_seconds(chain, parts, length, gpu), parts, length) for parts, length in _candidates(chain))
    if not times or not pays(gpu.device, times[0][0], whole):
        return None
    best, parts, length = times[0]
    other, number, _ = times[1] if len(times) > 1 else (0.0, 0, 0)
    return Choice(parts, length, best, number, other, whole)


def _has_open_rows(chain: Chain) -> bool:
    """Whether a run brings how many rows share a row of keys."""
    sums = [op for op in chain.accumulators if op.kind is Kind.CONTRACTION]
    if not sums:
        return False
    first, second = sums[-1].inputs
    return any(d in sums[-1].dynamic and d not in second.loops for d in sums[-1].parallel if d in first.loops)


def _candidates(chain: Chain) -> list[tuple[int, int]]:
    """Numbers of parts that leave whole blocks of 64 steps; else parts of a fixed length, and how many there are."""
    extent = _OPEN if chain.open else chain.extent
    divisors = [n for n in range(2, _MOST + 1) if extent % n == 0 and extent // n >= _LEAST]
    whole = [] if chain.open else [(n, 0) for n in divisors if extent // n % _LEAST == 0]
    if whole or not can_mask(chain):
        return whole
    return [(ceil(extent / n), n) for n in _LENGTHS if n < extent <= n * _MOST]


def _seconds(chain: Chain, parts: int, length: int, gpu: Gpu) -> float:
    """Predicted time of the chain in some parts; each of a fixed length reads what is left behind whole blocks, too."""
    work = _work(chain)
    if chain.open:
        work = work.times(_OPEN / chain.extent)
    if length:
        work = work.times(1 + _LEAST / length)
    return split_kv_seconds(work, parts, gpu)


def _work(chain: Chain) -> attention.Chain:
    """What a chain computes and moves."""
    made = {op.result for op in chain.loops}
    outside = {a.value for op in chain.loops for a in op.inputs if a.value not in made and _lies_in_memory(a.value)}
    sums = [op for op in chain.accumulators if op.kind is Kind.CONTRACTION]
    last = sums[-1] if sums else chain.accumulators[-1]
    batch, inner = _rows(last)
    operations, kind = 0.0, "f32"
    for op in chain.loops:
        if op.kind is Kind.CONTRACTION:
            kind = element(op.inputs[0])
            padding = max(_UNIT_ROWS / min(inner, _UNIT_ROWS), 1) if element_bytes(op.inputs[0].value) <= 2 else 1
            operations += 2 * op.points * padding
    return attention.Chain(
        read=sum(tensor_bytes(value) for value in outside),
        written=sum(tensor_bytes(op.result) for op in chain.accumulators),
        operations=operations,
        kind=kind,
        tasks=batch * ceil(inner / _ROWS),
        pieces=batch * ceil(inner / _UNIT_ROWS),
    )


def _rows(op: LinalgOp) -> tuple[int, int]:
    """Points of the loops that each have keys of their own, and of those that share them: rows of a tile."""
    first, *others = op.inputs
    shared = others[0].loops if others else frozenset(op.parallel)
    own = [d for d in op.parallel if d in first.loops]
    return (
        prod(op.extents[d] for d in own if d in shared),
        prod(op.extents[d] for d in own if d not in shared),
    )


def _lies_in_memory(value: ir.Value) -> bool:
    """Whether a tensor is no constant that is filled in."""
    made = maker(value)
    return made is None or made.name not in ("linalg.fill", "tensor.empty", "arith.constant")
