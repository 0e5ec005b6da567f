# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fuse-dequantization`: products with a few rows read small weights and widen them in registers.

What follows from weights alone is computed at compile time. Of weights that are stored small (bytes with a scale for
each column, or for each block of one) this makes floats, two to four times as many bytes, and a product with a vector
or with a few rows takes as long as its weights take to come. So the operations between are repeated in the product,
element by element, where that is predicted to be faster: in front of mma.sync, whose fragments are registers (Ladder,
Wang et al., OSDI 2024, section 4; Marlin, Frantar et al., PPoPP 2025). wgmma reads its right operand from shared
memory, so what it multiplies was widened before. The numbers are the same: each element is dequantized and rounded as
before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.decodes import NAME, Decoding, cheap, is_arithmetic, steps_of
from tilewright.ir.generics import (
    body,
    create_generic,
    create_repeated,
    kinds,
    maker,
    maps,
    positions,
    read_through,
    uses,
)
from tilewright.ir.structure import SMALL_WEIGHTS, Kind, LinalgOp, Weights, blocks, describe, linalg_ops
from tilewright.ir.target_info import device_of
from tilewright.ir.views import groups_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.cost.gemm import has_unit
from tilewright.plan.cost.gemv import gemv_seconds
from tilewright.plan.gpu.gemv import find_gemv
from tilewright.plan.gpu.products import find_roles, problem_of
from tilewright.plan.gpu.split_k import best_parts, expanded
from tilewright.plan.gpu.transposes import Transposes
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest
from tilewright.plan.model.traffic import tensor_bytes

#: Operations that a product repeats for each element, at most.
_STEPS = 10
#: Terms of a sum that share scales, at least: a step of a product has no fewer.
_LEAST_BLOCK = 32
#: What is made for a product that then is not taken.
_MADE = frozenset(f"tensor.{name}" for name in "collapse_shape empty expand_shape insert_slice pad".split()) | {
    "arith.constant",
    "linalg.fill",
    "linalg.generic",
}


@register
@dataclass(frozen=True)
class FuseDequantization(Pass):
    """Let products dequantize weights in registers, where fewer bytes then come from memory in less time.

    One of several rows and columns gets `tile.packed`: its first two inputs are the operands as they lie in memory.
    Scales for each block of a sum make two loops of it, over blocks and within one.

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
        %v = sparse_tile.decode %p scale %q : f32 : i8 to f32
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
      %v = sparse_tile.decode %b scale %q : f32 : i8 to f32
      %m = arith.mulf %p, %v : f32
      %t = arith.addf %o, %m : f32
    ```
    """

    name: ClassVar[str] = "tile-fuse-dequantization"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "sparse_tile", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit the products."""
        gpu, weights = Gpu.of(device_of(op, self.name)), Weights()
        unread: list[ir.Operation] = []
        for block in blocks(op):
            for member in linalg_ops(block, weights):
                now = describe(member.op, member.position)  # its inputs may be new
                if now.kind is Kind.CONTRACTION and len(now.inputs) == 2 and not now.dynamic:
                    unread += _visit(now, gpu, weights)
        once: list[ir.Operation] = []
        for made in unread:
            if made not in once:
                once.append(made)  # compared before any of them is gone
        for made in once:
            if not any(True for _ in uses(made.results[0])):
                made.erase()


def _nest(op: LinalgOp) -> Nest:
    return Nest(op, [op], op.gathers)


def _visit(op: LinalgOp, gpu: Gpu, weights: Weights) -> list[ir.Operation]:
    """Let a product read the smaller form of an operand where that is faster; gives what made the larger one."""
    for number, access in enumerate(op.inputs):
        if not weights.only(access.value) or not access.pure:
            continue
        found = _repeat(op, number)
        if found is None:
            continue
        new, made = found
        if _is_matrix(op):
            new = _as_product(new, number, gpu)
        now, then = _seconds(op, gpu), None if new is None else _seconds(new, gpu)
        if new is None:
            break
        if now is None or then is None or then >= now:
            drop(new.op)
            break
        op.result.replace_all_uses_with(new.result)
        op.op.erase()
        return made
    return []


def _is_matrix(op: LinalgOp) -> bool:
    return find_roles(_nest(op)) is not None


def _seconds(op: LinalgOp, gpu: Gpu) -> float | None:
    """The predicted time of a product, in parts where these are faster; None where there is none."""
    nest = _nest(op)
    roles = find_roles(nest)
    if roles is not None:
        return best_parts(problem_of(nest, roles), gpu)[1] or None
    gemv = find_gemv(nest)
    return gemv_seconds(gemv, gpu) if gemv is not None else None


def drop(op: ir.Operation) -> None:
    """Erase an operation that nothing reads, with what was made for it alone."""
    if op.name not in _MADE or any(any(True for _ in uses(result)) for result in op.results):
        return
    before: list[ir.Operation] = []
    for made in map(maker, op.operands):
        if made is not None and made not in before:
            before.append(made)  # compared before any of them is gone
    op.erase()
    for made in before:
        drop(made)


def _repeat(op: LinalgOp, number: int) -> tuple[LinalgOp, list[ir.Operation]] | None:
    """The product with all that makes an operand of a smaller tensor repeated; and what made the operand.

    None where the operand is not smaller in memory before.
    """
    new, made, steps = op, list[ir.Operation](), 0
    at, whole = number, tensor_bytes(op.inputs[number].value)
    while (before := maker(new.inputs[at].value)) is not None:
        if before.name == "tensor.collapse_shape":
            then = _in_blocks(new, at, before)
        elif _repeats(before) and steps + steps_of(before) <= _STEPS:
            then, steps = with_steps(new, at, before), steps + steps_of(before)
        else:
            break
        if then is None:
            break
        count = len(then.operands) - len(new.op.operands) + 1
        if new is not op:
            new.op.erase()
        new = describe(then, op.position)
        made.append(before)
        at = max(range(at, at + count), key=lambda n: tensor_bytes(new.inputs[n].value))
    count = len(new.inputs) - len(op.inputs) + 1
    if new is op or sum(tensor_bytes(access.value) for access in new.inputs[number : number + count]) >= whole:
        if new is not op:
            drop(new.op)
        return None
    return new, made


def _repeats(op: ir.Operation) -> bool:
    """Whether an operation makes each element of one of another tensor, by arithmetic alone."""
    if op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)) or not maps(op)[-1].is_permutation:
        return False
    plain = all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for m in maps(op) for e in m.results)
    return plain and is_arithmetic(op)


def _in_blocks(op: LinalgOp, number: int, made: ir.Operation) -> ir.Operation | None:
    """The product over blocks of a sum and places in them, as the tensor before a reshape has them; before the old one.

    None where the reshape is another one, or blocks are shorter than a step of a product.
    """
    groups = groups_of(made.attributes["reassociation"])
    joined = [at for at, group in enumerate(groups) if len(group) > 1]
    shape = ir.RankedTensorType(made.operands[0].type).shape
    loop = op.inputs[number].dims[joined[0]] if len(joined) == 1 else None
    if loop not in op.reductions or len(groups[joined[0]]) != 2 or shape[groups[joined[0]][1]] < _LEAST_BLOCK:
        return None
    if any(loop in access.loops and access.dims.count(loop) != 1 for access in op.inputs):
        return None
    old, rank, parts = op.op, op.rank, shape[groups[joined[0]][0]]
    with old.location, ir.InsertionPoint(old):
        reads = []
        for at, access in enumerate(op.inputs):
            value, results = access.value, list(access.map.results)
            if loop in access.loops:
                place = access.dims.index(loop)
                value = made.operands[0] if at == number else expanded(value, place, parts)
                results.insert(place + 1, ir.AffineDimExpr.get(rank))
            reads.append((value, ir.AffineMap.get(rank + 1, 0, results)))
        written = ir.AffineMap.get(rank + 1, 0, list(op.output.map.results))
        reduces = [*kinds(old), True]
        new = create_generic(reads, op.output.value, written, reduces, lambda given: create_repeated(old, given)).owner
    _keep_attributes(old, new)
    return new


def _as_product(op: LinalgOp, number: int, gpu: Gpu) -> LinalgOp | None:
    """A product with repeated steps as one of tiles, its small operand second and along the sum where units multiply.

    None, and no operation, where units could not multiply what the steps make with the other operand.
    """
    old, own = op.op, maps(op.op)
    count = len(op.inputs) - 1
    small = max(range(number, number + count), key=lambda n: tensor_bytes(op.inputs[n].value))
    other = 0 if number else len(op.inputs) - 1
    order = [other, small, *(n for n in range(len(op.inputs)) if n not in (other, small))]

    def compute(elements: list[ir.Value]) -> ir.Value:
        return create_repeated(old, [*(elements[order.index(n)] for n in range(len(order))), elements[-1]])

    with old.location, ir.InsertionPoint(old):
        reads = [(old.operands[n], own[n]) for n in order]
        new = create_generic(reads, op.output.value, own[-1], kinds(old), compute).owner
    _expand_cheaply(new)
    _keep_attributes(old, new)
    new.attributes[SMALL_WEIGHTS] = ir.UnitAttr.get(new.context)
    old.erase()
    found = describe(new, op.position)
    roles = find_roles(_nest(found))
    if roles is None or _multiplied(new) != str(ir.RankedTensorType(new.operands[0].type).element_type):
        drop(new)
        return None
    if found.inputs[1].dims[-1] != roles.depth and has_unit(problem_of(_nest(found), roles), gpu):
        Transposes().transpose(found, 1, roles.depth)
        found = describe(new, op.position)
    return found


def _expand_cheaply(op: ir.Operation) -> None:
    """Decode by the cheapest steps: what is done again and again, for each row of a tile."""
    for step in [step.operation for step in body(op).operations if step.operation.name == NAME]:
        with step.location, ir.InsertionPoint(step):
            value = cheap(Decoding.of(step))
        step.results[0].replace_all_uses_with(value)
        step.erase()


def _multiplied(op: ir.Operation) -> str:
    """The type of what a body makes of the second operand and multiplies, before units widen it."""
    operations = body(op).operations
    total = operations[len(operations) - 1].operands[0].owner
    term = next(made for value in total.operands if (made := maker(value)) and made.name.startswith("arith.mul"))
    operand = next(value for value in term.operands if _depends(value, body(op).arguments[1]))
    widening = maker(operand)
    return str(widening.operands[0].type if widening and widening.name == "arith.extf" else operand.type)


def _depends(value: ir.Value, on: ir.Value) -> bool:
    """Whether a scalar of a body is computed from another one."""
    if isinstance(value, ir.BlockArgument):
        return value == on
    return any(_depends(operand, on) for operand in value.owner.operands)


def with_steps(op: LinalgOp, number: int, made: ir.Operation) -> ir.Operation:
    """The product, in front of the old one, with what makes its operand repeated for each element."""
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
    _keep_attributes(old, new.owner)
    return new.owner


def _keep_attributes(old: ir.Operation, new: ir.Operation) -> None:
    """Give an operation the decisions that another one has already."""
    for name in (old.attributes[i].name for i in range(len(old.attributes))):
        if name.startswith("tile."):
            new.attributes[name] = old.attributes[name]
