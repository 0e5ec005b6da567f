# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-int8-matmul`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir.decodes import Decoding, is_argument, yielded
from tilewright.ir.generics import body, constant_of, is_zeros, kinds, maker, maps
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, describe, linalg_ops
from tilewright.ir.target_info import find_device
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register
from tilewright.plan.cpu.dot_product import fits_matrix, product_operands
from tilewright.plan.cpu.products import contraction_roles
from tilewright.plan.lowbit import int8_products
from tilewright.plan.lowbit.byte_moves import after, dims_of, origin_of, reads_of, splat_of
from tilewright.plan.lowbit.quantized import Bytes, Move, Scale, Zero, indexed_by

_CASTS = ("arith.sitofp", "arith.uitofp", "arith.extsi", "arith.extui")


def _bytes_of(op: ir.Operation) -> Bytes | None:
    """The bytes that the result of an elementwise operation stands for; None where it computes something else."""
    found = yielded(op)
    if found is None:
        return _widened(op)
    zero, scale = _zero_of(op, found), _scale_of(op, found)
    if found.is_float or str(found.result) not in ("f32", "i32") or zero is None or scale is None:
        return None
    return _read(op, found.code, found.unsigned, zero, scale)


def _read(op: ir.Operation, code: ir.Value, unsigned: bool, zero: Zero, scale: Scale) -> Bytes | None:
    number = ir.BlockArgument(code).arg_number
    reads = reads_of(op, number)
    return None if reads is None else Bytes(op.operands[number], unsigned, zero, scale, (Move(op, reads),))


def _zero_of(op: ir.Operation, found: Decoding) -> Zero | None:
    if found.known_zero is not None:
        return Zero(int(found.known_zero)) if float(found.known_zero).is_integer() else None
    if found.zero is None or not is_argument(found.zero, op) or str(found.zero.type) not in ("i8", "i32"):
        return None
    number = ir.BlockArgument(found.zero).arg_number
    dims, tensor = dims_of(maps(op)[number]), op.operands[number]
    if dims is None:
        return None
    unsigned = found.unsigned and str(found.zero.type) == "i8"
    if (all_of_it := splat_of(tensor)) is not None:
        return Zero(int(all_of_it) % 256 if unsigned else int(all_of_it))
    return Zero(0, tensor, unsigned, dims)


def _scale_of(op: ir.Operation, found: Decoding) -> Scale | None:
    if found.scale is None:
        return Scale()
    known = constant_of(found.scale)
    if known is not None:
        return Scale(float(known))
    if not is_argument(found.scale, op) or str(found.scale.type) != "f32":
        return None
    number = ir.BlockArgument(found.scale).arg_number
    dims = dims_of(maps(op)[number])
    return None if dims is None else Scale(1.0, op.operands[number], dims)


def _widened(op: ir.Operation) -> Bytes | None:
    """Bytes that a cast widens: they stand for themselves."""
    operations = body(op).operations
    cast = maker(operations[len(operations) - 1].operands[0])
    if cast is None or cast.name not in _CASTS or str(cast.results[0].type) not in ("f32", "i32"):
        return None
    code = cast.operands[0]
    if not is_argument(code, op) or str(code.type) != "i8":
        return None
    return _read(op, code, cast.name in ("arith.uitofp", "arith.extui"), Zero(), Scale())


def dequantized(value: ir.Value) -> Bytes | None:
    """The bytes that a tensor of i32 or f32 is made of, element by element, and how these are moved."""
    origin, moves = origin_of(value)
    op = maker(origin)
    if op is None or op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)):
        return None
    x = _bytes_of(op)
    for move in moves:
        x = after(x, move) if x is not None else None
    return x


def bytes_of(op: LinalgOp) -> list[Bytes] | None:
    """What the two inputs of a sum of products stand for, where both are bytes."""
    terms = {operand.number: operand for operand in product_operands(op)}
    known = (int8_products.takes(op) or int8_products.takes_windows(op)) and None not in op.output.dims
    if set(terms) != {0, 1} or not known or not is_zeros(op.output.value):
        return None
    found = []
    for number, access in enumerate(op.inputs):
        if terms[number].element == "i8":
            x = Bytes(access.value, terms[number].unsigned)
        else:
            x = dequantized(access.value)
        if x is None or any(access.dims[d] in (None, *op.reductions) for d in indexed_by(x.scale) | indexed_by(x.zero)):
            return None
        found.append(x)
    return found


def replace_product(
    op: LinalgOp, operands: Sequence[Bytes], signs: Sequence[bool], result: str, weight: int | None
) -> None:
    """Put the product of bytes in the place of `op`."""
    with op.op.location, ir.InsertionPoint(op.op):
        made = int8_products.emit(op, operands, signs, result, weight)
    before: list[ir.Operation] = []
    for access in op.inputs:
        _collect(access.value, before)
    op.op.results[0].replace_all_uses_with(made)
    op.op.erase()
    while unused := [other for other in before if not any(True for _ in other.results[0].uses)]:
        for other in unused:
            before.remove(other)
            other.erase()


def _collect(value: ir.Value, found: list[ir.Operation]) -> None:
    """What dequantizes and moves the elements of a value, and may be for nobody else."""
    op = maker(value)
    if op is None or op in found or not op.name.startswith(("tensor.", "linalg.")) or len(op.results) != 1:
        return
    if op.name == "linalg.generic" and any(kinds(op)):
        return
    found.append(op)
    for operand in op.operands:
        _collect(operand, found)


@register
@dataclass(frozen=True)
class Int8Matmul(Pass):
    """Multiply quantized bytes as bytes.

    For machines that have an instruction for it.

    Both operands of a sum of products are bytes that were centred on a zero point, and maybe scaled: integer operators,
    and graphs that dequantize what they multiply. The product of the bytes is exact, so the result is that of f32
    arithmetic without the roundings of its sums.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    #id = affine_map<(i, j) -> (i, j)>
    ml_program.global private @w(#ml_program.extern<tensor<64x32xi8>>) : tensor<64x32xi8>
    func.func @main(%x: tensor<8x64xi8>) -> tensor<8x32xi32> {
      %w = ml_program.global_load_const @w : tensor<64x32xi8>
      %zero = arith.constant 0 : i32
      %point = arith.constant 7 : i8
      %ex = tensor.empty() : tensor<8x64xi32>
      %xi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<8x64xi8>) outs(%ex : tensor<8x64xi32>) {
      ^bb0(%q: i8, %o: i32):
        %d = sparse_tile.decode unsigned %q zero_point %point : i8 : i8 to i32
        linalg.yield %d : i32
      } -> tensor<8x64xi32>
      %ew = tensor.empty() : tensor<64x32xi32>
      %wi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%w : tensor<64x32xi8>) outs(%ew : tensor<64x32xi32>) {
      ^bb0(%q: i8, %o: i32):
        %s = sparse_tile.decode %q : i8 to i32
        linalg.yield %s : i32
      } -> tensor<64x32xi32>
      %e = tensor.empty() : tensor<8x32xi32>
      %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8x32xi32>) -> tensor<8x32xi32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%xi, %wi : tensor<8x64xi32>, tensor<64x32xi32>) outs(%f : tensor<8x32xi32>) {
      ^bb0(%p: i32, %q: i32, %o: i32):
        %m = arith.muli %p, %q : i32
        %t = arith.addi %o, %m : i32
        linalg.yield %t : i32
      } -> tensor<8x32xi32>
      return %y : tensor<8x32xi32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2],
        iterator_types = ["parallel", "parallel", "reduction"]} ...
        ^bb0(%p: i8, %q: i8, %o: i32):
    ```
    followed by the subtraction of 7 times the sums of the columns of `%w`.
    """

    name: ClassVar[str] = "tile-int8-matmul"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "sparse_tile", "tensor")

    matrix: tuple[str, ...] = device_option(
        (), facts.matrix, "element types that a matrix unit multiplies, whatever their signs"
    )
    any_signs: bool = device_option(False, facts.is_gpu, "whether all instructions multiply bytes of any signs")

    def run(self, op: ir.Operation) -> None:
        """Visit each sum of products that something of the run goes into, where the device multiplies bytes."""
        device = find_device(op)
        if device is not None and not facts.multiplies_bytes(device):
            return
        weights = Weights()
        for block in blocks(op):
            for member in linalg_ops(block, weights):
                if member.kind is Kind.CONTRACTION:
                    now = describe(member.op, member.position, forms=weights.forms)  # its inputs may be new
                    self._visit(now, weights)

    def _visit(self, op: LinalgOp, weights: Weights) -> None:
        result = str(ir.RankedTensorType(op.result.type).element_type)
        constant = [weights.only(access.value) for access in op.inputs]
        if result not in ("i32", "f32") or all(constant) or (op.dynamic and not any(constant)):
            return
        terms = prod(op.extents[d] for d in op.reductions)
        if result == "f32" and terms > int8_products.MOST_TERMS:
            return
        found = bytes_of(op)
        if found is None:
            return
        signs = self._signs(op, found, constant)
        weight = constant.index(True) if any(constant) and not self.any_signs else None
        same_order = int8_products.order_of(op, weight) == [*op.output.dims]
        if _is_bare(found, op) and same_order and signs == [x.unsigned for x in found]:
            return
        if result == "i32":
            found = [replace(x, scale=Scale()) for x in found]
        replace_product(op, found, signs, result, weight)

    def _signs(self, op: LinalgOp, found: list[Bytes], constant: list[bool]) -> list[bool]:
        """Which operands are taken as unsigned: instructions of vectors multiply unsigned by signed bytes only.

        Weights are flipped at compile time. Of two operands known at run time only, it is the smaller one.
        """
        signs = [x.unsigned for x in found]
        if self.any_signs:
            return [_sign_without_zero(x, known) for x, known in zip(found, constant, strict=True)]
        if signs[0] != signs[1] or ("i8" in self.matrix and fits_matrix(op, contraction_roles(op))):
            return signs
        if any(constant):
            return [not known for known in constant]
        sizes = [prod(op.extents[d] for d in access.loops) for access in op.inputs]
        signs[sizes.index(min(sizes))] ^= True
        return signs


def _sign_without_zero(x: Bytes, known: bool) -> bool:
    """Whether bytes are taken as unsigned, where any signs may be: those that leave no zero point, if it is for free.

    Weights are flipped at compile time. An image is flipped by what makes it; its padding is then of zeros, which
    needs no memory.
    """
    flipped = x.zero.moved(-128 if x.unsigned else 128)
    bordered = any(move.op.name == "tensor.insert_slice" for move in x.moves)
    return x.unsigned != (bool(x.zero) and not flipped and (known or bordered))


def _is_bare(found: list[Bytes], op: LinalgOp) -> bool:
    """Whether the operation multiplies bytes as they are already."""
    return all(x.tensor == a.value for x, a in zip(found, op.inputs, strict=True))
