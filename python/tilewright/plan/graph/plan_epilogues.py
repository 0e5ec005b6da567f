# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-epilogues`: what is computed in the tasks of a kernel that it follows.

Products with pruned weights are kernels before others are planned, so that `tile-plan-fusion` cannot put what follows
them into their nests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.generics import body, kinds, maker, maps, uses, walk
from tilewright.ir.units import kernel_of, symbol_of
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.plan.model.mark_host_fallback import reason_for_host

#: Reads of elements at computed places, and integer divisions, which are by zero at the edge of a tile.
_NOT_ON_TILES = frozenset("arith.divsi arith.divui arith.remsi arith.remui linalg.index tensor.extract".split())


@register
@dataclass(frozen=True)
class PlanEpilogues(Pass):
    """Decide what is computed in the tasks of a kernel, element by element, before it stores its results.

    A chain of operations that follow a launch element by element (a bias, an activation, a residual that is added, a
    conversion) is marked with `tile.epilogue`, up to the last one behind which a single tensor is left that others
    read: it is the only one that memory then holds. The kernel must only store tiles into its result, as those of
    products with pruned weights do. `tile-form-epilogues` carries it out.

    Before:
    ```mlir
    #xy = affine_map<(i, j) -> (i, j)>
    #y = affine_map<(i, j) -> (j)>
    tile.kernel @twice(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
      %s = arith.addf %t, %t : !tile.tile<1x16xf32>
      tile.store %s, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
      tile.return
    }
    func.func @main(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
      %c8 = arith.constant 8 : index
      %e = tensor.empty() : tensor<8x16xf32>
      %r = tile.launch @twice grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
      %y = linalg.generic {indexing_maps = [#xy, #y, #xy], iterator_types = ["parallel", "parallel"]}
          ins(%r, %b : tensor<8x16xf32>, tensor<16xf32>) outs(%e : tensor<8x16xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %s = arith.addf %p, %q : f32
        linalg.yield %s : f32
      } -> tensor<8x16xf32>
      return %y : tensor<8x16xf32>
    }
    ```
    After:
    ```mlir
    iterator_types = ["parallel", "parallel"]} ins(%r, %b : tensor<8x16xf32>, tensor<16xf32>)
        outs(%e : tensor<8x16xf32>) attrs = {tile.epilogue} {
    ```
    """

    name: ClassVar[str] = "tile-plan-epilogues"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith", "tile")

    most: int = option(16, "operations behind a kernel: each may be code for the whole and for the edge of a tile")

    def run(self, op: ir.Operation) -> None:
        """Visit launches."""
        kernels: dict[str, ir.Operation] = {}
        for launch in walk(op, "tile.launch"):
            if not kernels:
                kernels = {symbol_of(one): one for one in walk(op, "tile.kernel")}
            kernel = kernels.get(kernel_of(launch))
            if kernel is None or not _is_open(launch, kernel):
                continue
            for one in _epilogue(launch, self.most):
                decisions.EPILOGUE.set(one)


def _is_open(launch: ir.Operation, kernel: ir.Operation) -> bool:
    """Whether a launch makes one tensor anew, of which its kernel stores tiles and reads nothing."""
    if len(launch.results) != 1:
        return False
    place = maker(launch.operands[len(launch.operands) - 1])
    if place is None or place.name != "tensor.empty":
        return False
    *_, inputs, outputs = launch.attributes["operandSegmentSizes"]
    target = kernel.regions[0].blocks[0].arguments[inputs + outputs - 1]
    return all(_only_stores(user, number) for user, number in uses(target))


def _only_stores(user: ir.Operation, number: int) -> bool:
    """Whether an operation asks for a size, or stores a tile that lies as it comes."""
    if user.name == "memref.dim":
        return True
    plain = user.name == "tile.store" and number == 1 and not {"reduce", "steps", "along"} & set(user.attributes)
    return plain and "#tile" not in str(user.operands[0].type)


def _epilogue(launch: ir.Operation, most: int) -> list[ir.Operation]:
    """The longest chain of operations behind a launch of which one result is read elsewhere."""
    made, found = [launch], 0
    while len(made) <= most:
        following = [user for one in made for user, _ in uses(one.results[0]) if user not in made]
        following = [user for user in following if user.block == launch.block and _joins(user, made)]
        if not following:
            break
        made.append(_first(following))
        if _is_closed(made):
            found = len(made)
    return made[1:found]


def _first(ops: Iterable[ir.Operation]) -> ir.Operation:
    """The one that stands before the others of its block."""
    first, *others = ops
    for other in others:
        if other.is_before_in_block(first):
            first = other
    return first


def _is_closed(made: list[ir.Operation]) -> bool:
    """Whether nothing but the last result is read elsewhere."""
    return all(user in made for one in made[:-1] for user, _ in uses(one.results[0]))


def _joins(op: ir.Operation, made: list[ir.Operation]) -> bool:
    """Whether a tile of its result follows from the same tile of what is made, and from operands that are loaded."""
    if op.name != "linalg.generic" or any(kinds(op)) or decisions.HOST.on(op) or reason_for_host(op) is not None:
        return False
    if decisions.EPILOGUE.on(op):  # a gate, which another launch computes
        return False
    block = body(op)
    if any(True for _ in block.arguments[len(block.arguments) - 1].uses):
        return False
    if any(inner.operation.name in _NOT_ON_TILES for inner in block.operations):
        return False
    if ir.RankedTensorType(op.results[0].type).shape != ir.RankedTensorType(made[0].results[0].type).shape:
        return False
    *reads, written = maps(op)
    same = ir.AffineMap.get_identity(written.n_dims)
    results = [one.results[0] for one in made]
    operands = list(op.operands)[:-1]
    return written == same and all(
        read == same if value in results else _is_projection(read) for value, read in zip(operands, reads, strict=True)
    )


def _is_projection(read: ir.AffineMap) -> bool:
    """Whether it reads an element for each choice of some of the loops, the only one along its other dimensions."""
    dims = [ir.AffineDimExpr(one).position for one in read.results if isinstance(one, ir.AffineDimExpr)]
    zeros = [one for one in read.results if isinstance(one, ir.AffineConstantExpr) and one.value == 0]
    return len(set(dims)) == len(dims) and len(dims) + len(zeros) == len(read.results)
