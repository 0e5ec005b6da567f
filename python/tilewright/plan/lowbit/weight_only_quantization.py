# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-weight-only-quantization`: products with few rows read quantized weights and widen them in registers.

What follows from weights alone is computed at compile time: of weights of 4 or 8 bits with scales that makes f32, four
to eight times the bytes, and a product with one row takes as long as these take to come from memory. So where it is
predicted to be faster, or nearly as fast, the product dequantizes each element itself. The numbers are the same: each
weight is scaled and rounded as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING, ClassVar

from tilewright.devices import facts
from tilewright.ir.decodes import Decoding, yielded
from tilewright.ir.generics import maker, maps, uses
from tilewright.ir.structure import (
    SMALL_WEIGHTS,
    Access,
    Kind,
    LinalgOp,
    Weights,
    blocks,
    describe,
    linalg_ops,
    set_attribute,
)
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register
from tilewright.passes.weights import known_array
from tilewright.plan.lowbit.small_bits import Read, Small, behind, is_plain, parts_of, reads_of, with_weights
from tilewright.plan.model.traffic import element_bytes, tensor_bytes
from tilewright.plan.model.widened import ATTRIBUTE, mark

if TYPE_CHECKING:
    import numpy as np

#: Elements of weights that are worth it: fewer stay in the caches, whatever their type.
_LEAST = 1 << 12
#: Steps that take an element out of a byte.
_TAKEN = 2.5
#: Rows of a register tile, which share what a step widens.
_ROWS = 8
#: How much longer a product may take for weights that are an eighth or a quarter of the bytes: of few rows, where wide
#: weights come from memory for half of the time or more (cores share its bandwidth), and of many rows.
_WORTH, _ALIKE = 1.5, 1.05
#: Bits of an element that divide a byte.
_BITS = (2, 4)


@dataclass(frozen=True)
class _Times:
    """Nanoseconds of a product on one core: with weights as they are stored; of wide ones, their way and arithmetic."""

    small: float
    moved: float
    multiplied: float

    @property
    def wide(self) -> float:
        """With wide weights."""
        return max(self.moved, self.multiplied)

    @property
    def pays(self) -> bool:
        """Whether weights had better stay small."""
        return self.small <= self.wide * (_WORTH if 2 * self.moved >= self.multiplied else _ALIKE)


@register
@dataclass(frozen=True)
class WeightOnlyQuantization(Pass):
    """Let products with few rows dequantize their weights in registers.

    Weights whose values fit into 2 or 4 bits are packed, several to a byte. Products of a number of rows that a run
    brings do it, too: it may be one. Where many rows meet each weight, it is widened at compile time, with a remark.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    #s = affine_map<(i, j) -> (i floordiv 32, j)>
    #a = affine_map<(n, k) -> (k)>
    #b = affine_map<(n, k) -> (k, n)>
    #c = affine_map<(n, k) -> (n)>
    ml_program.global private @w(#ml_program.extern<tensor<256x64xi8>>) : tensor<256x64xi8>
    ml_program.global private @s(#ml_program.extern<tensor<8x64xf32>>) : tensor<8x64xf32>
    func.func @main(%x: tensor<256xf32>) -> tensor<64xf32> {
      %w = ml_program.global_load_const @w : tensor<256x64xi8>
      %s = ml_program.global_load_const @s : tensor<8x64xf32>
      %zero = arith.constant 0.0 : f32
      %d = tensor.empty() : tensor<256x64xf32>
      %g = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel", "parallel"]}
          ins(%w, %s : tensor<256x64xi8>, tensor<8x64xf32>) outs(%d : tensor<256x64xf32>) {
      ^bb0(%p: i8, %q: f32, %o: f32):
        %v = sparse_tile.decode %p scale %q : f32 : i8 to f32
        linalg.yield %v : f32
      } -> tensor<256x64xf32>
      %e = tensor.empty() : tensor<64xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
          ins(%x, %g : tensor<256xf32>, tensor<256x64xf32>) outs(%f : tensor<64xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<64xf32>
      return %y : tensor<64xf32>
    }
    ```
    After:
    ```mlir
    %x1 = tensor.expand_shape %x [[0, 1]] output_shape [8, 32] : tensor<256xf32> into tensor<8x32xf32>
    %w1 = tensor.expand_shape %w [[0, 1], [2]] output_shape [8, 32, 64] : tensor<256x64xi8> into tensor<8x32x64xi8>
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2, #map3],
        iterator_types = ["parallel", "reduction", "reduction"]}
        ins(%x1, %w1, %s : tensor<8x32xf32>, tensor<8x32x64xi8>, tensor<8x64xf32>) outs(%f : tensor<64xf32>)
        attrs = {tile.packed = {bits = 8 : i64, block = 32 : i64, ...}} {
    ^bb0(%p: f32, %b: i8, %q: f32, %o: f32):
      %u = arith.sitofp %b : i8 to f32
      %v = arith.mulf %u, %q : f32
      %m = arith.mulf %p, %v : f32
      %t = arith.addf %o, %m : f32
    ```
    """

    name: ClassVar[str] = "tile-weight-only-quantization"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "sparse_tile", "tensor", "tile")

    lanes: int = device_option(16, facts.f32_lanes, "f32 lanes of a vector register")
    rate: float = device_option(3.7, facts.f32_rate, "multiply-adds of vectors per nanosecond of a core")
    memory_rate: float = device_option(
        41.0, facts.memory_rate, "bytes per nanosecond that a core moves to and from memory"
    )

    def run(self, op: ir.Operation) -> None:
        """Visit the products of which one operand is made of small weights."""
        weights = Weights()
        unread: list[ir.Operation] = []
        for block in blocks(op):
            for member in linalg_ops(block, weights):
                if member.kind is Kind.CONTRACTION:
                    now = describe(member.op, member.position, forms=weights.forms)  # its inputs may be new
                    unread += self._visit(now, weights)
        for made in unread:
            if not list(uses(made.results[0])):
                made.erase()

    def _visit(self, op: LinalgOp, weights: Weights) -> list[ir.Operation]:
        """Let a product widen its weights; gives what made the wide ones."""
        if len(op.inputs) != 2 or str(ir.RankedTensorType(op.result.type).element_type) != "f32":
            return []
        for number, access in enumerate(op.inputs):
            made, groups = behind(access.value)
            decoding = None if made is None or not weights.only(access.value) else _decoding(made)
            if made is None or decoding is None:
                continue
            small = _small(op, number, made, decoding, groups)
            if isinstance(small, str):
                return _refuse(op, "small weights in f32", small)
            times = self._times(op, small)
            if not op.dynamic and not times.pays:
                rows, more = op.reuse(access), times.small / times.wide
                why = f"each meets {rows} rows, and widening it for these again and again would take {more:.1f} times"
                grown = f"of {small.bits} bits in f32, {32 // small.bits} times the memory"
                return _refuse(op, f"weights {grown}", f"{why} as long")
            joined = maker(access.value)
            _replace(op, small, times)
            return [made] if joined is None or joined == made else [joined, made]
        return []

    def _times(self, op: LinalgOp, small: Small) -> _Times:
        """What memory and vector units take for all rows."""
        access = op.inputs[small.number]
        rows, count = op.reuse(access), prod(op.extents[d] for d in access.loops)
        others = sum(tensor_bytes(read.value) for n, read in enumerate(small.reads) if n != small.data)
        steps = small.decoding.steps + (_TAKEN if small.bits < 8 else 0)
        units = self.lanes * self.rate
        # An instruction that is no multiply-add is half of one: half as many units multiply as there are.
        widened = ceil(rows / _ROWS) * steps / 2
        return _Times(
            max((count * small.bits / 8 + others) / self.memory_rate, count * (rows + widened) / units),
            count * element_bytes(access.value) / self.memory_rate,
            count * rows / units,
        )


def _refuse(op: LinalgOp, what: str, why: str) -> list[ir.Operation]:
    """Leave a product as it is, with the reason; one that is known already stays."""
    if ATTRIBUTE not in op.op.attributes:
        mark(op.op, what, why)
    return []


def _replace(op: LinalgOp, small: Small, times: _Times) -> None:
    new = with_weights(op, small)
    block = small.parts[-2 if small.bits < 8 else -1] * (8 // small.bits)
    fields = (
        ("bits", small.bits),
        ("block", block),
        ("inner", small.inner),
        ("ns", round(times.small)),
        ("wide_ns", round(times.wide)),
    )
    set_attribute(new, SMALL_WEIGHTS, "{" + ", ".join(f"{name} = {value} : i64" for name, value in fields) + "}")
    if ATTRIBUTE in op.op.attributes:
        new.attributes[ATTRIBUTE] = op.op.attributes[ATTRIBUTE]
    op.result.replace_all_uses_with(new.results[0])
    op.op.erase()


def _decoding(op: ir.Operation) -> Decoding | None:
    """How an operation makes each element of one of a large tensor of bytes; None where it does not."""
    found = yielded(op)
    if found is None or found.is_float or not maps(op)[-1].is_permutation:
        return None
    return found if prod(ir.RankedTensorType(op.results[0].type).shape) >= _LEAST else None


def _small(op: LinalgOp, number: int, made: ir.Operation, decoding: Decoding, groups: list[list[int]]) -> Small | str:
    """How a product may read the weights behind an operand; or why it cannot, in words."""
    access, other = op.inputs[number], op.inputs[1 - number]
    if not access.pure or not other.pure or None in access.dims:
        return "it is a product of windows"
    reads = reads_of(made, groups)
    data = ir.BlockArgument(decoding.code).arg_number
    if reads is None or not _once(len(groups), reads[data]):
        return "they are no elements of one tensor"
    parameters = [read for n, read in enumerate(reads) if n != data]
    dim = _shared_dim(op, access, parameters)
    if isinstance(dim, str):
        return dim
    loop = access.dims[dim]
    assert loop is not None
    if loop in op.dynamic or other.dims.count(loop) != 1:
        return "the other operand has no such sums"
    block = max(read.block(dim) for read in parameters) if parameters else 0
    bits = _bits(known_array(reads[data].value), decoding.unsigned)
    if 1 < block and block % (8 // bits):
        bits = 8
    parts = parts_of(op.extents[loop], block, bits)
    if prod(parts) != op.extents[loop] and op.dynamic:
        return "their rows are no whole blocks, and a size of the other operand is known at run time only"
    shared = [read.block(dim) for read in parameters]
    inner = 0 if 1 in shared or op.reductions != {loop} else len(parts) - (1 < block < op.extents[loop])
    inner = inner if is_plain(decoding) else 0
    return Small(made, decoding, number, reads, data, bits, dim, loop, parts, inner)


def _once(rank: int, read: Read) -> bool:
    """Whether each element of a tensor is read once."""
    at = sorted(where for where in read.dims if where is not None)
    return len(read.dims) == rank and at == [(d, 1) for d in range(rank)]


def _shared_dim(op: LinalgOp, access: Access, parameters: list[Read]) -> int | str:
    """The dimension of the weights along which neighbours share scales: one of the sums; or why there is none."""
    blocked = {(d, size) for read in parameters for at in read.dims if at is not None for d, size in [at] if size > 1}
    summed = [t for t, d in enumerate(access.dims) if d in op.reductions]
    if not blocked:
        return max(summed, key=lambda t: op.extents[access.dims[t] or 0])
    if len(blocked) > 1:
        return "their scales and zero points are those of different blocks"
    ((dim, _),) = blocked
    return dim if dim in summed else "neighbours along a row of the result share scales, and are lanes"


def _bits(array: np.ndarray | None, unsigned: bool) -> int:
    """The fewest bits, a part of a byte, that hold all elements; 8 where these are not known."""
    if array is None or not array.size:
        return 8
    array = array.view("uint8" if unsigned else "int8")
    low, high = int(array.min()), int(array.max())
    for bits in _BITS:
        least, most = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if least <= low and high <= most:
            return bits
    return 8
