# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-narrow-products`: products with weights in bf16, or in bytes by the ranges that calibration observed.

Bytes: activations are affine (unsigned, with a zero point), weights symmetric with a scale per channel, as is usual
(Jacob et al., 2018; Nagel et al., 2021, section 2.3). Everything else stays in f32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.devices import facts
from tilewright.ir.generics import create, create_fill, create_generic
from tilewright.ir.structure import Access, Kind, LinalgOp, Weights, blocks, describe, linalg_ops
from tilewright.ir.target_info import device_of, options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.plan.cpu.dot_product import product_operands
from tilewright.plan.lowbit import int8_products
from tilewright.plan.lowbit.byte_moves import origin_of, replay
from tilewright.plan.lowbit.quantized import Bytes, Move, Scale, Zero, empty, empty_as, number
from tilewright.plan.model.widened import mark


def narrowable(op: LinalgOp, weights: Weights, windows: bool = False, pairs: bool = False) -> int | None:
    """Which input of a sum of f32 products is the activation, the other one being a weight; None for others.

    A run may bring the number of its rows; of pairs of activations, any size.

    Args:
        op: the sum.
        weights: what is known at compile time.
        windows: whether the activation may be read through windows, too.
        pairs: whether both may be activations (queries and keys): the first one then is.
    """
    activation = _activation_of(op, weights)
    if activation is None:
        return 0 if pairs and _is_pair(op, weights) else None
    if int8_products.takes(op):
        return activation
    return activation if windows and int8_products.takes_windows(op) and _has_lanes(op, activation) else None


def _is_pair(op: LinalgOp, weights: Weights) -> bool:
    """Whether matrix units multiply two activations of f32: plain matrices, each with rows of its own."""
    if op.kind is not Kind.CONTRACTION or {operand.element for operand in product_operands(op)} != {"f32"}:
        return False
    known = any(weights.only(access.value) for access in op.inputs)
    return not known and int8_products.is_plain(op) and all(_has_lanes(op, number) for number in (0, 1))


def _has_lanes(op: LinalgOp, activation: int) -> bool:
    """Whether several sums read the same activations: matrix units multiply no channel by channel (depthwise)."""
    own = op.inputs[1 - activation].loops - op.inputs[activation].loops
    return any(op.extents[d] > 1 or d in op.dynamic for d in own)


def _activation_of(op: LinalgOp, weights: Weights) -> int | None:
    """Which input of a sum of f32 products is no weight, where the other one is."""
    if op.kind is not Kind.CONTRACTION or {operand.element for operand in product_operands(op)} != {"f32"}:
        return None
    constant = [weights.only(access.value) for access in op.inputs]
    return constant.index(False) if sum(constant) == 1 else None


def _why_wide(op: LinalgOp, windows: bool) -> str:
    """Why a product with weights stays in f32."""
    if op.dynamic and not all(access.pure for access in op.inputs):
        return "a size of it is known at run time only, and it reads windows"
    if windows:
        return "each channel has a sum of its own (depthwise), or one of its operands lacks a loop of its sums"
    return "one of its operands is read through windows, or lacks a loop of its sums"


def products(root: ir.Operation, windows: bool = False, pairs: bool = False) -> list[tuple[LinalgOp, int]]:
    """The operations that can be narrowed, in order, each with the number of its activation (`narrowable`)."""
    weights = Weights()
    found = []
    for block in blocks(root):
        for op in linalg_ops(block, weights):
            activation = narrowable(op, weights, windows, pairs)
            if activation is not None and op.op.parent.name == "func.func":
                found.append((op, activation))
    return found


def _mark_others(root: ir.Operation, narrowed: set[ir.Operation], windows: bool) -> None:
    """Marks the products with weights that stay in f32 although fewer bits were asked for."""
    weights = Weights()
    for block in blocks(root):
        for op in linalg_ops(block, weights):
            if op.op not in narrowed and _activation_of(op, weights) is not None:
                inside = op.op.parent.name != "func.func"
                mark(
                    op.op,
                    "f32 although fewer bits were asked for",
                    "it runs in a loop or a branch" if inside else _why_wide(op, windows),
                )


def _f32() -> ir.Type:
    return ir.F32Type.get()


def _elementwise(reads: list, element: str, compute) -> ir.Value:
    """An operation on the elements of its first operand, which it is as large as."""
    like = reads[0][0]
    rank = ir.RankedTensorType(like.type).rank
    target = empty_as([(like, d) for d in range(rank)], element)
    return create_generic(reads, target, ir.AffineMap.get_identity(rank), [False] * rank, compute)


def _in_bf16(op: LinalgOp) -> ir.Value:
    """The product of both operands rounded to bf16, summed in f32."""
    narrow = ir.BF16Type.get()

    def rounded(access: Access) -> ir.Value:
        origin, moves = _origin(access)
        same = ir.AffineMap.get_identity(ir.RankedTensorType(origin.type).rank)
        made = _elementwise([(origin, same)], "bf16", lambda e: create("arith.truncf", [e[0]], narrow))
        return replay(Bytes(made, False, moves=moves)).tensor

    def step(e: list[ir.Value]) -> ir.Value:
        wide = [create("arith.extf", [x], _f32()) for x in e[:2]]
        return create("arith.addf", [e[2], create("arith.mulf", wide, _f32())], _f32())

    reads = [(rounded(access), access.map) for access in op.inputs]
    reduces = [d in op.reductions for d in range(op.rank)]
    return create_generic(reads, op.output.value, op.output.map, reduces, step)


def _origin(access: Access) -> tuple[ir.Value, tuple[Move, ...]]:
    """What is narrowed of an activation, and what moves it: before it is padded, where windows read it.

    Padding with zeros that windows alone read needs no memory, and what makes the image narrows it.
    """
    return (access.value, ()) if access.pure else origin_of(access.value)


def _to_bytes(value: ir.Value) -> ir.Value:
    """A whole number in f32, in the range of a byte of either kind, as its low byte."""
    whole = create("arith.fptosi", [value], ir.IntegerType.get_signless(32))
    return create("arith.trunci", [whole], ir.IntegerType.get_signless(8))


def _activation(access: Access, low: float, high: float) -> Bytes:
    """Unsigned bytes over a range that holds zero."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255 or 1.0
    zero = round(-low / scale)
    origin, moves = _origin(access)
    factor, point, most, none = (number(v, "f32") for v in (1 / scale, zero, 255, 0))

    def quantize(e: list[ir.Value]) -> ir.Value:
        value = create("math.roundeven", [create("arith.mulf", [e[0], factor], _f32())], _f32())
        value = create("arith.addf", [value, point], _f32())
        value = create("arith.maxnumf", [value, none], _f32())
        return _to_bytes(create("arith.minnumf", [value, most], _f32()))

    same = ir.AffineMap.get_identity(ir.RankedTensorType(origin.type).rank)
    tensor = _elementwise([(origin, same)], "i8", quantize)
    return Bytes(tensor, True, Zero(zero), Scale(scale), moves)


def _weight(op: LinalgOp, access: Access) -> Bytes:
    """Signed bytes with a scale for each channel: what the loops that are not reduced are indexed by."""
    shape = list(ir.RankedTensorType(access.value.type).shape)
    rank = len(shape)
    kept = tuple(t for t in range(rank) if access.dims[t] not in op.reductions)
    same = ir.AffineMap.get_identity(rank)
    channel = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(t) for t in kept])
    start = create_fill(number(1e-30, "f32"), empty([shape[t] for t in kept], "f32"))

    def largest(e: list[ir.Value]) -> ir.Value:
        return create("arith.maximumf", [e[1], create("math.absf", [e[0]], _f32())], _f32())

    most = create_generic([(access.value, same)], start, channel, [t not in kept for t in range(rank)], largest)
    steps, whole = number(127, "f32"), ir.AffineMap.get_identity(len(kept))
    scale = _elementwise([(most, whole)], "f32", lambda e: create("arith.divf", [e[0], steps], _f32()))

    def quantize(e: list[ir.Value]) -> ir.Value:
        return _to_bytes(create("math.roundeven", [create("arith.divf", [e[0], e[1]], _f32())], _f32()))

    reads = [(access.value, same), (scale, channel)]
    tensor = _elementwise(reads, "i8", quantize)
    return Bytes(tensor, False, scale=Scale(1.0, scale, kept))


def _in_bytes(op: LinalgOp, activation: int, low: float, high: float) -> ir.Value:
    found = [
        _activation(access, low, high) if i == activation else _weight(op, access) for i, access in enumerate(op.inputs)
    ]
    return int8_products.emit(op, found, [i == activation for i in range(2)], "f32", 1 - activation)


@register
@dataclass(frozen=True)
class NarrowProducts(Pass):
    """Compute products with weights in bf16, or in bytes.

    Each activation is rounded on its way into the product, each weight at compile time; sums are in f32 (bf16), or
    exact in i32 (bytes). `ranges` has the range of the activation of each product, in order, as LOW:HIGH; it makes the
    products those of bytes.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    ml_program.global private @w(#ml_program.extern<tensor<64x32xf32>>) : tensor<64x32xf32>
    func.func @main(%x: tensor<8x64xf32>) -> tensor<8x32xf32> {
      %w = ml_program.global_load_const @w : tensor<64x32xf32>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    ^bb0(%p: bf16, %q: bf16, %o: f32):
      %u = arith.extf %p : bf16 to f32
      %v = arith.extf %q : bf16 to f32
      %m = arith.mulf %u, %v : f32
    ```
    """

    name: ClassVar[str] = "tile-narrow-products"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "math", "tensor")

    asked: bool = option(False, "only where tile.options ask for it: precision bf16 or int8, with its ranges")
    ranges: tuple[str, ...] = option((), "LOW:HIGH of the activation of each product, which is then one of bytes")
    windows: bool = option(False, "whether products that read activations through windows are narrowed, too")
    pairs: bool = option(False, "whether products of two activations are in bf16, too")

    def run(self, op: ir.Operation) -> None:
        """Visit the products in order."""
        if not self.asked:
            return self._narrow(op)
        asked, gpu = options_of(op), facts.is_gpu(device_of(op, self.name))
        if asked.precision in ("bf16", "int8"):
            ranges = asked.ranges if asked.precision == "int8" else ()
            pairs = gpu and asked.precision == "bf16"  # bytes of keys would need ranges that no weight tells
            return replace(self, asked=False, ranges=ranges, windows=gpu, pairs=pairs)._narrow(op)
        return None

    def _narrow(self, op: ir.Operation) -> None:
        found = products(op, self.windows, self.pairs)
        _mark_others(op, {product.op for product, _ in found}, self.windows)
        if self.ranges and len(self.ranges) != len(found):
            raise UserError(f"there are {len(self.ranges)} ranges for {len(found)} products")
        for i, (product, activation) in enumerate(found):
            product = describe(product.op, product.position)  # its inputs may be new
            with product.op.location, ir.InsertionPoint(product.op):
                if self.ranges:
                    low, high = map(float, self.ranges[i].split(":"))
                    made = _in_bytes(product, activation, low, high)
                else:
                    made = _in_bf16(product)
            product.op.results[0].replace_all_uses_with(made)
            product.op.erase()
