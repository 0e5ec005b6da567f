# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalars that a body uses from outside, above all sizes that a run brings, as operands: kernels read memory only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import body, create, create_generic, maker, maps
from tilewright.ir.structure import Weights, blocks
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.model.mark_host_fallback import captured_scalars, is_small, reason_for_host


@register
@dataclass(frozen=True)
class BindScalars(Pass):
    """Make scalars that a body uses from outside operands, where a kernel then takes the operation.

    Each becomes a tensor without dimensions, stored once for all operations that use it; an index is passed as an i64.
    Operations that take as long as the start of a kernel stay as they are: the host computes shapes.

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<?xf32>, %s: f32) -> tensor<?xf32> {
      %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%x : tensor<?xf32>) {
      ^bb0(%o: f32):
        %n = arith.mulf %o, %s : f32
        linalg.yield %n : f32
      } -> tensor<?xf32>
      return %y : tensor<?xf32>
    }
    ```
    After:
    ```mlir
    %from_elements = tensor.from_elements %arg1 : tensor<f32>
    %0 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel"]}
        ins(%from_elements : tensor<f32>) outs(%arg0 : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = arith.mulf %out, %in : f32
      linalg.yield %1 : f32
    ```
    """

    name: ClassVar[str] = "tile-bind-scalars"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    def run(self, op: ir.Operation) -> None:
        """Visit every generic that runs with the model and that captures scalars."""
        weights, stored = Weights(), _Stored()
        for block in blocks(op):
            for inner in [view.operation for view in block.operations]:
                if inner.name != "linalg.generic" or len(inner.results) != 1 or weights.only(inner.results[0]):
                    continue
                scalars = captured_scalars(inner)
                if scalars and not is_small(inner) and reason_for_host(inner, scalars_are_bound=True) is None:
                    _bind(inner, scalars, stored)


class _Stored:
    """Tensors of scalars, each made once, behind the scalar."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, ir.Value] = {}

    def of(self, scalar: ir.Value) -> ir.Value:
        """The tensor without dimensions that holds a scalar; an i64 in the place of an index."""
        if scalar not in self._known:
            with _behind(scalar):
                value = create("arith.index_cast", [scalar], _element(scalar)) if _is_index(scalar) else scalar
                kind = ir.RankedTensorType.get([], value.type)
                self._known[scalar] = create("tensor.from_elements", [value], kind)
        return self._known[scalar]


def _bind(op: ir.Operation, scalars: Sequence[ir.Value], stored: _Stored) -> None:
    *inputs, target = op.operands
    tensors = [stored.of(scalar) for scalar in scalars]
    *reads, written = maps(op)
    everywhere = ir.AffineMap.get(written.n_dims, 0, [])
    kinds = ir.ArrayAttr(op.attributes["iterator_types"])

    def compute(elements: list[ir.Value]) -> ir.Value:
        bound = elements[len(inputs) : -1]
        known = dict(zip(body(op).arguments, [*elements[: len(inputs)], elements[-1]], strict=True))
        for scalar, element in zip(scalars, bound, strict=True):
            is_index = _is_index(scalar)
            known[scalar] = create("arith.index_cast", [element], scalar.type) if is_index else element
        return _moved(op, known)

    with ir.InsertionPoint(op), op.location:
        pairs = [*zip(inputs, reads, strict=True), *((tensor, everywhere) for tensor in tensors)]
        made = maker(create_generic(pairs, target, written, [False] * len(kinds), compute))
        assert made is not None
        for key in op.attributes:
            if key not in ("indexing_maps", "operandSegmentSizes"):
                made.attributes[key] = op.attributes[key]
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()


def _moved(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """What the body yields for the values known of its arguments and scalars: its steps, copied here."""
    *steps, last = body(op).operations
    for step in steps:
        copy = step.operation.clone()
        for at, operand in enumerate(step.operands):
            copy.operands[at] = known.get(operand, operand)
        known.update(zip(step.results, copy.results, strict=True))
    return known.get(last.operands[0], last.operands[0])


def _is_index(scalar: ir.Value) -> bool:
    return isinstance(scalar.type, ir.IndexType)


def _element(scalar: ir.Value) -> ir.Type:
    return ir.IntegerType.get_signless(64, scalar.type.context)


def _behind(scalar: ir.Value) -> ir.InsertionPoint:
    """Where a value is known first."""
    made = maker(scalar)
    if made is None:
        return ir.InsertionPoint.at_block_begin(scalar.owner)
    return ir.InsertionPoint.after(made)
