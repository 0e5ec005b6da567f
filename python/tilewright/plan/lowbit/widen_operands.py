# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-widen-operands`: 16-bit floats that are multiplied often become f32 before the product.

Memory holds small floats, registers f32. An operand that a product reads once, the weights of a decode step, is widened
where it is loaded: half the bytes come from memory. One that it reads many times would be widened as often, which
costs two instructions for a vector and three for an element that all lanes share; it is widened once instead, at
compile time (weights) or with what makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir.generics import body, create, create_copy, maker, uses
from tilewright.ir.structure import LinalgOp, Weights, blocks, linalg_ops
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register
from tilewright.plan.cpu.dot_product import product_operands
from tilewright.plan.lowbit.quantized import empty_as
from tilewright.plan.model.widened import ATTRIBUTE

#: So often must an element be multiplied. With fewer rows a product waits for its weights, which are half as many bytes
#: narrow: 16 bytes come from memory in the time of 10 to 20 multiply-adds.
_REUSE = 16
_NARROW = frozenset({"f16", "bf16"})


@register
@dataclass(frozen=True)
class WidenOperands(Pass):
    """Widen the 16-bit operands of products once, where each is multiplied often.

    An element type of `keep` is widened, too, where `tile-mark-widened` found that no instruction takes the product.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<1x64xf16>, %w: tensor<64x32xf16>) -> tensor<1x32xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<1x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32xf32>) -> tensor<1x32xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<1x64xf16>, tensor<64x32xf16>) outs(%f : tensor<1x32xf32>) {
      ^bb0(%p: f16, %q: f16, %o: f32):
        %u = arith.extf %p : f16 to f32
        %v = arith.extf %q : f16 to f32
        %m = arith.mulf %u, %v : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<1x32xf32>
      return %y : tensor<1x32xf32>
    }
    ```
    After:
    ```mlir
    %wide = linalg.generic ... ins(%x : tensor<1x64xf16>) outs(%e1 : tensor<1x64xf32>) {
    ...
    %y = linalg.generic ... ins(%wide, %w : tensor<1x64xf32>, tensor<64x32xf16>) outs(%f : tensor<1x32xf32>) {
    ^bb0(%p: f32, %q: f16, %o: f32):
      %v = arith.extf %q : f16 to f32
      %m = arith.mulf %p, %v : f32
    ```
    """

    name: ClassVar[str] = "tile-widen-operands"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")

    keep: tuple[str, ...] = device_option(
        (), facts.multiplied, "element types that the machine has instructions to multiply"
    )

    def run(self, op: ir.Operation) -> None:
        """Visit the products in order; those that share an operand share its wide form."""
        weights = Weights()
        for block in blocks(op):
            wide: dict[ir.Value, ir.Value] = {}
            for product in linalg_ops(block, weights):
                for operand in product_operands(product):
                    if (
                        operand.element in self._widened(product)
                        and product.reuse(product.inputs[operand.number]) >= _REUSE
                    ):
                        _widen(product.op, operand.number, wide)

    def _widened(self, op: LinalgOp) -> frozenset[str]:
        """The element types that no instruction multiplies in `op`; none takes windows (`dot_product.py`)."""
        taken = ATTRIBUTE not in op.op.attributes and all(access.pure for access in op.inputs)
        return _NARROW - set(self.keep) if taken else _NARROW


def _widen(op: ir.Operation, number: int, wide: dict[ir.Value, ir.Value]) -> None:
    argument = body(op).arguments[number]
    readers = [user for user, _ in uses(argument)]
    f32 = ir.F32Type.get(op.context)
    if any(user.name != "arith.extf" or user.results[0].type != f32 for user in readers):
        return
    op.operands[number] = _wide_form(op.operands[number], op.block, wide)
    argument.set_type(f32)
    for user in readers:
        user.results[0].replace_all_uses_with(argument)
        user.erase()


def _wide_form(value: ir.Value, block: ir.Block, wide: dict[ir.Value, ir.Value]) -> ir.Value:
    """A tensor in f32, made right after it: what is in between reshapes the wide tensor."""
    if value in wide:
        return wide[value]
    kind, made = ir.RankedTensorType(value.type), maker(value)
    result = ir.RankedTensorType.get(kind.shape, ir.F32Type.get(kind.context))
    if made is None or made.block != block:
        with value.location, ir.InsertionPoint.at_block_begin(block):
            wide[value] = _converted(value)
    elif made.name in RESHAPES:
        source = _wide_form(made.operands[0], block, wide)
        attributes = {name: made.attributes[name] for name in made.attributes}
        with value.location, ir.InsertionPoint.after(made):
            wide[value] = create(made.name, [source, *list(made.operands)[1:]], result, attributes)
    else:
        with value.location, ir.InsertionPoint.after(made):
            wide[value] = _converted(value)
    return wide[value]


def _converted(value: ir.Value) -> ir.Value:
    rank = ir.RankedTensorType(value.type).rank
    return create_copy(value, empty_as([(value, t) for t in range(rank)], "f32"), "arith.extf")
