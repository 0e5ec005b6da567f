# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-transpose-operands`: operands lie in memory as the units want them that multiply.

Matrix units take packs of 32 bits along the sums. Of 16-bit elements ldmatrix and wgmma transpose what lies the other
way; of bytes and of tf32 they do not (PTX ISA, ldmatrix `.trans` and the major-ness of wgmma's shared memory operands),
and mma.sync would collect bytes one by one. A product with a vector has more CTAs, or longer rows, in one of both
orders. Weights are transposed at compile time, which costs nothing; what a run brings is transposed by a kernel of its
own (through shared memory, as every transposition), where the product gains more than that takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from tilewright.ir.structure import Access, Kind, LinalgOp, Weights, blocks, linalg_ops, set_attribute
from tilewright.ir.target_info import device_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.cost.gemm import has_unit
from tilewright.plan.cost.gemm_time import choose
from tilewright.plan.cost.gemv import gemv_seconds
from tilewright.plan.cost.roofline import copied, pays
from tilewright.plan.gpu.allow_tf32 import ATTRIBUTE
from tilewright.plan.gpu.gemv import find_gemv
from tilewright.plan.gpu.products import Roles, find_roles, problem_of, streams
from tilewright.plan.gpu.slow import SLOW
from tilewright.plan.gpu.transposes import Transposes
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest
from tilewright.plan.model.traffic import tensor_bytes

#: Elements that matrix units multiply, and that nothing transposes on the way.
_BYTES = ("i8", "f8E4M3FN", "f8E5M2")
#: How much longer weights that are transposed may take: fewer instructions are not all in the prediction.
_ALIKE = 1.01


@register
@dataclass(frozen=True)
class TransposeOperands(Pass):
    """Let operands of bytes and of tf32, and weights that meet a vector, lie in the better order.

    Weights lie along the sums wherever the other operand of several rows does, windows of images among them. Of all
    other operands of bytes, and of vectors, the predicted time decides.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    ml_program.global private @w(#ml_program.extern<tensor<256x64xi8>>) : tensor<256x64xi8>
    func.func @main(%x: tensor<128x256xi8>) -> tensor<128x64xi32> {
      %w = ml_program.global_load_const @w : tensor<256x64xi8>
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<128x64xi32>
      %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x64xi32>) -> tensor<128x64xi32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<128x256xi8>, tensor<256x64xi8>) outs(%f : tensor<128x64xi32>) {
      ^bb0(%p: i8, %q: i8, %o: i32):
        %u = arith.extsi %p : i8 to i32
        %v = arith.extsi %q : i8 to i32
        %m = arith.muli %u, %v : i32
        %t = arith.addi %o, %m : i32
        linalg.yield %t : i32
      } -> tensor<128x64xi32>
      return %y : tensor<128x64xi32>
    }
    ```
    After:
    ```mlir
    %t = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]}
        ins(%w : tensor<256x64xi8>) outs(%g : tensor<64x256xi8>) {
    ...
    %y = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %t : tensor<128x256xi8>, tensor<64x256xi8>) outs(%f : tensor<128x64xi32>) {
    ```
    A product whose run-time operand stays as it is gets `tile.slow` with the reason.
    """

    name: ClassVar[str] = "tile-transpose-operands"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit the products of each block; those that share an operand share its transposed form."""
        gpu, weights = Gpu.of(device_of(op, self.name)), Weights()
        for block in blocks(op):
            visitor = _Visitor(gpu, weights)
            for member in linalg_ops(block, weights):
                visitor.visit(member)


class _Visitor:
    """Transposes the operands of the products of a block."""

    def __init__(self, gpu: Gpu, weights: Weights) -> None:
        self.gpu = gpu
        self.weights = weights
        self._transposes = Transposes()

    def visit(self, op: LinalgOp) -> None:
        """Transpose the operands of a product where that pays."""
        if op.kind is Kind.CONTRACTION and self._visit_weights(op):
            return
        if not op.reductions or not all(access.pure for access in op.inputs):
            return
        nest = Nest(op, [op], op.gathers)
        roles = find_roles(nest) if op.kind is Kind.CONTRACTION else None
        if roles is None:
            self._visit_vector(nest)
        elif problem_of(nest, roles).bytes == 1 and has_unit(problem_of(nest, roles), self.gpu):
            self._visit_product(nest, roles)

    def _visit_weights(self, op: LinalgOp) -> bool:
        """Weights lie along the sum where the other operand does; whether one was transposed."""
        for number in (0, 1):
            depth = _depth_against(op, number, self.weights)
            if depth is not None:
                self._transposes.transpose(op, number, depth)
                return True  # both lie along the sum now
        return False

    def _visit_vector(self, nest: Nest) -> None:
        """A product with a vector reads weights along the sum, or across it, whichever is faster."""
        op, gemv = nest.root, find_gemv(nest)
        if gemv is None or gemv.other is None or len({gemv.lane, gemv.other} & gemv.reductions) != 1:
            return
        number = next((n for n, a in enumerate(op.inputs) if a.loops == gemv.large.loops), None)
        if number is None or not self.weights.only(op.inputs[number].value) or not _has_one_use(op.inputs[number]):
            return
        now = gemv_seconds(gemv, self.gpu)
        then = gemv_seconds(replace(gemv, lane=gemv.other, other=gemv.lane), self.gpu)
        if now is not None and then is not None and pays(self.gpu.device, then, now, "prediction_error.order"):
            self._transposes.transpose(op, number, gemv.other)

    def _visit_product(self, nest: Nest, roles: Roles) -> None:
        """Matrix units read bytes along the sum."""
        op, gpu = nest.root, self.gpu
        against = [n for n, access in enumerate(op.inputs) if access.dims[-1] != roles.depth]
        if not against:
            return
        brought = [op.inputs[n] for n in against if not self.weights.only(op.inputs[n].value)]
        if any(ir.RankedTensorType(access.value.type).has_static_shape is False for access in brought):
            self._tell(op, "the size of that operand is known at run time only")
            return
        problem = problem_of(nest, roles)
        row = op.extents[roles.depth] * problem.bytes
        rest = [access for n, access in enumerate(op.inputs) if n not in against]
        whole = row % 16 == 0 and all(streams(access) for access in rest)
        now, then = choose(problem, gpu), choose(replace(problem, deep=True, streams=whole), gpu)
        if now is None or then is None:
            return
        more = sum(copied(gpu.device, 2 * tensor_bytes(access.value)) for access in brought)
        alike = 1.0 if brought else _ALIKE
        if then.prediction.seconds + more < now.prediction.seconds * alike:
            for number in against:
                self._transposes.transpose(op, number, roles.depth)
        elif brought:
            least = f"{(then.prediction.seconds + more) * 1e6:.0f} us with a kernel that turns it"
            self._tell(op, f"{now.prediction.seconds * 1e6:.0f} us are predicted, {least}")

    @staticmethod
    def _tell(op: LinalgOp, why: str) -> None:
        set_attribute(op.op, SLOW, f'"reads bytes of an operand one by one, against their order in memory: {why}"')


def _depth_against(op: LinalgOp, number: int, weights: Weights) -> int | None:
    """The loop along which the other operand's neighbours are summed, a weight's are not; None where it may stay."""
    access, other = op.inputs[number], op.inputs[1 - number]
    if not _is_packed(op, access) or not _is_packed(op, other) or not access.pure or not weights.only(access.value):
        return None
    depth = other.dims[-1] if other.dims else None
    rows = prod(op.extents[d] for d in op.parallel if d in other.loops and d not in access.loops)
    if depth is None or depth not in op.reductions or depth not in access.dims[:-1] or rows < 2:
        return None
    return depth


def _is_packed(op: LinalgOp, access: Access) -> bool:
    """Whether matrix units take several elements of an operand at once, along the sum only."""
    element = str(ir.RankedTensorType(access.value.type).element_type)
    return element in _BYTES or (element == "f32" and ATTRIBUTE in op.op.attributes)


def _has_one_use(access: Access) -> bool:
    return len(list(access.value.uses)) == 1
