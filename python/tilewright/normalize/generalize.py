# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-generalize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import iterator_types
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_KEPT = ("linalg.generic", "linalg.fill", "linalg.yield", "linalg.index", "linalg.pack", "linalg.unpack")


@register
@dataclass(frozen=True)
class Generalize(Pass):
    """Turn named structured ops into linalg.generic.

    Fills, packs and unpacks stay as they are.

    Before:
    ```mlir
    func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32> {
      %d = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x3xf32>) outs(%c : tensor<4x3xf32>) -> tensor<4x3xf32>
      return %d : tensor<4x3xf32>
    }
    ```
    After:
    ```mlir
    #map = affine_map<(d0, d1, d2) -> (d0, d2)>
    #map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
    #map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
    ...
    %d = linalg.generic {indexing_maps = [#map, #map1, #map2],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<4x8xf32>, tensor<8x3xf32>) outs(%c : tensor<4x3xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> tensor<4x3xf32>
    ```
    """

    name: ClassVar[str] = "tile-generalize"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "arith")

    def run(self, op: ir.Operation) -> None:
        """Replace each named op that has indexing maps."""
        named: list[ir.Operation] = []

        def visit(inner: ir.Operation) -> ir.WalkResult:
            if inner.name.startswith("linalg.") and inner.name not in _KEPT:
                named.append(inner.operation)
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        if not named:
            return
        from tilewright.mlir.dialects import linalg  # generated classes for every named op: slow to import

        for inner in named:
            maps = linalg.get_indexing_maps(inner)
            if maps is not None and inner.results:
                _generalize(inner, maps)


def _generalize(op: ir.Operation, maps: ir.ArrayAttr) -> None:
    count = len(op.results)
    written: set[int] = set()
    for attribute in list(maps)[-count:]:
        written |= {ir.AffineDimExpr(e).position for e in attribute.value.results if isinstance(e, ir.AffineDimExpr)}
    loops = maps[0].value.n_dims
    with op.location, ir.InsertionPoint(op):
        generic = ir.Operation.create(
            "linalg.generic",
            results=[r.type for r in op.results],
            operands=list(op.operands),
            attributes={
                "indexing_maps": maps,
                "iterator_types": iterator_types([d not in written for d in range(loops)]),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(op.operands) - count, count]),
            },
            regions=1,
        )
    op.regions[0].blocks[0].append_to(generic.regions[0])
    for old, new in zip(op.results, generic.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
