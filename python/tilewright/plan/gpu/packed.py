# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-read-packed`: products with a vector read small weights and widen them in registers.

What follows from weights alone is computed at compile time. Of weights that are stored small (bytes with a scale) this
makes floats, four times as many bytes, and a product with a vector takes as long as its weights take to come. So the
operations between are repeated in the product, element by element, where that is predicted to be faster. The numbers
are the same: each element is dequantized and rounded as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices import resolve
from tilewright.mlir import ir
from tilewright.normalize.generics import (
    body,
    create_generic,
    create_repeated,
    kinds,
    maker,
    maps,
    positions,
    read_through,
)
from tilewright.passes import Pass, option, register
from tilewright.plan.gpu.machine import Gpu
from tilewright.plan.gpu.nest import Nest
from tilewright.plan.gpu.products import find_roles
from tilewright.plan.gpu.streams import find_stream, stream_seconds
from tilewright.plan.structure import Kind, LinalgOp, Weights, blocks, describe, linalg_ops
from tilewright.plan.traffic import tensor_bytes

#: Operations that a product repeats for each element, at most.
_STEPS = 6


@register
@dataclass(frozen=True)
class ReadPacked(Pass):
    """Let products with a vector dequantize weights in registers, where fewer bytes then come from memory.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    #s = affine_map<(i, j) -> (j)>
    #a = affine_map<(n, k) -> (k)>
    #b = affine_map<(n, k) -> (k, n)>
    #c = affine_map<(n, k) -> (n)>
    ml_program.global private @w(#ml_program.extern<tensor<4096x4096xi8>>) : tensor<4096x4096xi8>
    ml_program.global private @s(#ml_program.extern<tensor<4096xf32>>) : tensor<4096xf32>
    func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
      %w = ml_program.global_load_const @w : tensor<4096x4096xi8>
      %s = ml_program.global_load_const @s : tensor<4096xf32>
      %zero = arith.constant 0.0 : f32
      %d = tensor.empty() : tensor<4096x4096xf32>
      %g = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel", "parallel"]}
          ins(%w, %s : tensor<4096x4096xi8>, tensor<4096xf32>) outs(%d : tensor<4096x4096xf32>) {
      ^bb0(%p: i8, %q: f32, %o: f32):
        %u = arith.sitofp %p : i8 to f32
        %v = arith.mulf %u, %q : f32
        linalg.yield %v : f32
      } -> tensor<4096x4096xf32>
      %e = tensor.empty() : tensor<4096xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
          ins(%x, %g : tensor<4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<4096xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<4096xf32>
      return %y : tensor<4096xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2, #map2], iterator_types = ["parallel", "reduction"]}
        ins(%x, %w, %s : tensor<4096xf32>, tensor<4096x4096xi8>, tensor<4096xf32>) outs(%f : tensor<4096xf32>) {
    ^bb0(%p: f32, %b: i8, %q: f32, %o: f32):
      %u = arith.sitofp %b : i8 to f32
      %v = arith.mulf %u, %q : f32
      %m = arith.mulf %p, %v : f32
      %t = arith.addf %o, %m : f32
    ```
    """

    name: ClassVar[str] = "tile-read-packed"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")

    device: str = option("nvidia-sm80", "name of the device description")

    def run(self, op: ir.Operation) -> None:
        """Visit the products with a vector."""
        gpu, weights = Gpu.of(resolve(self.device)), Weights()
        unread: list[ir.Operation] = []
        for block in blocks(op):
            for member in linalg_ops(block, weights):
                now = describe(member.op, member.position)  # its inputs may be new
                if now.kind is Kind.CONTRACTION and not now.dynamic and find_roles(_nest(now)) is None:
                    unread += _visit(now, gpu, weights)
        for made in unread:
            if not list(made.results[0].uses):
                made.erase()


def _nest(op: LinalgOp) -> Nest:
    return Nest(op, [op], op.gathers)


def _visit(op: LinalgOp, gpu: Gpu, weights: Weights) -> list[ir.Operation]:
    """Let a product read the smaller form of a factor where that is faster; gives what made the larger one."""
    for number, access in enumerate(op.inputs):
        made = maker(access.value)
        if made is None or not weights.only(access.value) or not access.pure or not _unpacks(made):
            continue
        stream = find_stream(_nest(op))
        now = stream_seconds(stream, gpu) if stream is not None else None
        if now is None:
            break
        new = with_steps(op, number, made)
        packed = find_stream(_nest(describe(new, op.position)))
        then = stream_seconds(packed, gpu) if packed is not None else None
        if then is None or then >= now:
            new.erase()
            break
        op.result.replace_all_uses_with(new.results[0])
        op.op.erase()
        return [made]
    return []


def _unpacks(op: ir.Operation) -> bool:
    """Whether an operation makes each element of one of a smaller tensor, in few steps."""
    if op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)) or not maps(op)[-1].is_permutation:
        return False
    inputs, steps = list(op.operands)[:-1], [step.operation for step in body(op).operations]
    plain = all(step.name.startswith("arith.") for step in steps[:-1]) and not any(step.regions for step in steps)
    read = sum(tensor_bytes(value) for value in inputs)
    return plain and 1 < len(steps) <= _STEPS + 1 and 0 < read < tensor_bytes(op.results[0])


def with_steps(op: LinalgOp, number: int, made: ir.Operation) -> ir.Operation:
    """The product, in front of the old one, with what makes its factor repeated for each element."""
    old = op.op
    outer = maps(old)
    loops = dict(zip(positions(maps(made)[-1]), outer[number].results, strict=True))
    sources = list(made.operands)[:-1]
    reads = [(value, read_through(read, loops, op.rank)) for value, read in zip(sources, maps(made), strict=False)]
    others = [(value, outer[n]) for n, value in enumerate(list(old.operands)[:-1])]
    place = len(sources)

    def compute(elements: list[ir.Value]) -> ir.Value:
        before, own, after = elements[:number], elements[number : number + place], elements[number + place :]
        element = create_repeated(made, [*own, own[0]])
        return create_repeated(old, [*before, element, *after])

    with old.location, ir.InsertionPoint(old):
        new = create_generic(
            [*others[:number], *reads, *others[number + 1 :]], old.operands[-1], outer[-1], kinds(old), compute
        )
    return new.owner
