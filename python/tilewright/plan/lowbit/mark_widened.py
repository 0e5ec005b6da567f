# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which products of small numbers are multiplied wide, and the pass `tile-mark-widened` that tells why.

`dots.find_dot` tells which rule of the instructions a product breaks; the rules by which products become ones of bytes
(`int8_products.py`) have their words here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir import decodes
from tilewright.ir.generics import body, kinds, maker
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register
from tilewright.plan.cpu.dot_product import NAMES, NO_SIZE, Dot, find_dot, small_element
from tilewright.plan.cpu.products import contraction_roles
from tilewright.plan.lowbit import int8_products
from tilewright.plan.model.tiles import Machine
from tilewright.plan.model.widened import mark

_MOVES = (*RESHAPES, "tensor.extract_slice", "tensor.insert_slice")
_MANY_MOVES = 16
_WIDENINGS = (decodes.NAME, "arith.sitofp", "arith.uitofp", "arith.extsi", "arith.extui")
#: What an element is widened to.
_WIDE = {"bf16": "f32", "i8": "i32"}


def from_bytes(value: ir.Value) -> bool:
    """Whether a tensor of i32 or f32 is made of bytes, element by element, and then only moved."""
    op = maker(value)
    for _ in range(_MANY_MOVES):
        if op is None or not op.operands:
            return False
        if op.name == "linalg.generic" and not any(kinds(op)) and not _copies(op):
            return _widens_a_byte(op)
        if op.name not in (*_MOVES, "linalg.generic"):
            return False
        op = maker(op.operands[0])
    return False


def _copies(op: ir.Operation) -> bool:
    return len(body(op).operations) == 1


def _widens_a_byte(op: ir.Operation) -> bool:
    """Whether an elementwise operation decodes or casts bytes."""
    operations = body(op).operations
    made = maker(operations[len(operations) - 1].operands[0])
    if made is None or made.name not in _WIDENINGS:
        return False
    return str(made.operands[0].type) == "i8" and str(made.results[0].type) in ("i32", "f32")


def why_not_bytes(op: LinalgOp) -> str:
    """Why a product of dequantized bytes is none of the bytes themselves (`int8_products.py`)."""
    terms = prod(op.extents[d] for d in op.reductions)
    if op.dynamic & op.reductions:
        return f"the length of its sums {NO_SIZE}"
    if op.dynamic:
        return f"a size of it {NO_SIZE}: it has no constant operand, or its bytes are moved or scaled by that size"
    if str(ir.RankedTensorType(op.result.type).element_type) == "f32" and terms > int8_products.MOST_TERMS:
        return f"sums of {terms} products of bytes may not fit into 32 bits"
    if not (int8_products.takes(op) or int8_products.takes_windows(op)) or None in op.output.dims:
        return "its operands are not plain matrices or windows"
    return "a scale or zero point differs within its sums, or between what is moved together"


@register
@dataclass(frozen=True)
class MarkWidened(Pass):
    """Mark the products of small numbers that no instruction takes (`tile.widened`, with the reason).

    Their operands are widened on the way: correct, at the speed of f32 or i32. `tile-verify-plan` tells each large one.
    Products that `tile-narrow-products` had to leave in f32 have the attribute already.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<8x64xbf16>, %w: tensor<64x32xbf16>) -> tensor<8x32xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<8x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<8x32xf32>) {
      ^bb0(%p: bf16, %q: bf16, %o: f32):
        %u = arith.extf %p : bf16 to f32
        %v = arith.extf %q : bf16 to f32
        %m = arith.mulf %u, %v : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<8x64xbf16>, tensor<64x32xbf16>) outs(%f : tensor<8x32xf32>)
        attrs = {tile.widened = "bf16 in f32: this machine has no instruction that multiplies bf16 faster"} {
    ```
    """

    name: ClassVar[str] = "tile-mark-widened"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    lanes: int = device_option(16, facts.f32_lanes, "f32 lanes of a vector register")
    dots: tuple[str, ...] = device_option(
        (), facts.dots, "element types (bf16, i8) whose products in groups an instruction adds"
    )
    matrix: tuple[str, ...] = device_option(
        (), facts.matrix, "element types (bf16, i8) that a matrix unit (AMX) multiplies"
    )

    def run(self, op: ir.Operation) -> None:
        """Visit each sum of products that something of the run goes into."""
        machine = Machine(self.lanes, 32, 1 << 20, dots=frozenset(self.dots), matrix=frozenset(self.matrix))
        weights = Weights()
        for block in blocks(op):
            for member in linalg_ops(block, weights):
                if member.kind is Kind.CONTRACTION:
                    self._visit(member, machine, weights)

    @staticmethod
    def _visit(op: LinalgOp, machine: Machine, weights: Weights) -> None:
        kind = small_element(op)
        if kind is not None:
            found = find_dot(op, contraction_roles(op), machine, weights)
            if not isinstance(found, Dot):
                mark(op.op, f"{NAMES[kind]} in {_WIDE[kind]}", found)
        elif all(from_bytes(access.value) for access in op.inputs):
            wide = str(ir.RankedTensorType(op.result.type).element_type)
            known = "i8" in machine.dots | machine.matrix
            why = why_not_bytes(op) if known else "this machine has no instruction that multiplies bytes faster"
            mark(op.op, f"bytes in {wide}", why)
