# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations kernels can take, and the pass `tile-mark-host-fallback` that marks the others.

A kernel computes on tiles whose elements processors have vectors of. Everything else that layer 1 may
hold stays in the host function, where it becomes scalar loops: correct for all shapes, types and bodies, and slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.generics import body, operations_of
from tilewright.ir.structure import Weights, blocks, index_terms, tables_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_ELEMENTS = frozenset(
    "f64 f32 f16 bf16 f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU i1 i8 i16 i32 i64 index".split()
)
#: Points of a loop nest that take about as long as starting a kernel; as in lib/Transforms/Plan/VerifyPlan.cpp.
_FEW_POINTS = 512
#: How a reduction may combine; `lib/Transforms/GroupToKernel` knows the same ones.
_COMBINERS = frozenset(
    f"arith.{name}"
    for name in ("addf addi mulf muli maximumf maxsi minimumf minsi maxnumf minnumf maxui minui andi ori xori".split())
)
#: arith and math operations without a form on tiles, or without an expansion into arithmetic on vectors.
_SCALAR_ONLY = frozenset(
    {
        "arith.addui_extended",
        "arith.bitcast",
        "arith.ceildivsi",
        "arith.ceildivui",
        "arith.floordivsi",
        "arith.mulsi_extended",
        "arith.mului_extended",
        "arith.scaling_extf",
        "arith.scaling_truncf",
        "math.fpowi",
        "math.ipowi",
        "math.sincos",
    }
)
#: Functions that are a processor's instructions, or a few of them.
NATIVE_MATH = frozenset(
    f"math.{name}"
    for name in (
        "absf absi ceil floor fma round roundeven trunc sqrt rsqrt copysign ctlz cttz ctpop isfinite isinf isnan "
        "isnormal".split()
    )
)


class OpenSize(str):
    """A reason that only loops of run-time sizes have: the same operation of known sizes would be a kernel."""


def reason_for_host(op: ir.Operation, *, scalars_are_bound: bool = False) -> str | None:
    """Why no kernel can take a `linalg.generic`; None where one can.

    Args:
        op: the operation.
        scalars_are_bound: scalars from outside do not count: `tile-bind-scalars` is to make operands of them.
    """
    reason = _reason_of_types(op)
    if reason:
        return reason
    parallel = [d for d, kind in enumerate(op.attributes["iterator_types"]) if "parallel" in str(kind)]
    reason = _reason_of_maps(op, parallel) or _reason_of_body(op)
    if reason is None and not scalars_are_bound and captured_scalars(op):
        reason = OpenSize("its body uses a scalar from outside")
    reduces = len(parallel) < len(op.attributes["iterator_types"])
    return reason or (_reason_of_reduction(op) if reduces else None)


def _reason_of_types(op: ir.Operation) -> str | None:
    if len(op.results) != 1:
        return f"it has {len(op.results)} results"
    if not len(op.attributes["iterator_types"]):
        return "it computes one element"
    for value in [*op.operands, *tables_of(op)]:
        reason = _reason_of_type(value.type)
        if reason:
            return reason
    return None


def _reason_of_type(kind: ir.Type) -> str | None:
    if not isinstance(kind, ir.RankedTensorType):
        return f"it takes a scalar of type {kind} as an operand"
    if str(kind.element_type) not in _ELEMENTS:
        return f"there are no tiles of {kind.element_type}"
    return "it has no elements" if 0 in kind.shape else None


def _reason_of_maps(op: ir.Operation, parallel: list[int]) -> str | None:
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    written = maps[-1].results
    if not all(isinstance(e, ir.AffineDimExpr) for e in written):
        return f"it writes its result through {maps[-1]}"
    if sorted(ir.AffineDimExpr(e).position for e in written) != parallel:
        return f"it writes its result through {maps[-1]}, no permutation of its parallel loops"
    alone: set[int] = set()
    for affine_map in maps:
        seen: set[int] = set()
        for expr in affine_map.results:
            terms = index_terms(expr)
            if terms is None:
                return f"it reads through {affine_map}, which is not linear"
            if seen & terms.keys():
                return f"it reads a diagonal, through {affine_map}"
            seen |= terms.keys()
            if isinstance(expr, ir.AffineDimExpr):
                alone |= terms.keys()
    if len(alone) < maps[-1].n_dims:
        return OpenSize("a loop of it has no size: it indexes no operand alone")
    return None


def _reason_of_body(op: ir.Operation) -> str | None:
    for inner in operations_of(body(op)):
        if inner.name not in ("linalg.yield", "linalg.index", "tensor.extract", "arith.constant"):
            reason = _reason_of_scalar(inner)
            if reason:
                return reason
    return None


def captured_scalars(op: ir.Operation) -> list[ir.Value]:
    """The scalars that a body uses and that are made outside of it, by something else than a constant; each once."""
    block = body(op)
    found: dict[ir.Value, None] = {}
    for inner in operations_of(block):
        scalars = list(inner.operands)[inner.name == "tensor.extract" :]
        found |= dict.fromkeys(value for value in scalars if _is_captured(value, block))
    return list(found)


def _reason_of_scalar(inner: ir.Operation) -> str | None:
    if not inner.name.startswith(("arith.", "math.")) or inner.name in _SCALAR_ONLY or len(inner.results) != 1:
        return f"its body holds {inner.name}"
    kinds = {str(value.type) for value in (*inner.operands, *inner.results)}
    for kind in kinds - _ELEMENTS:
        return f"its body computes with {kind}"
    if "f64" in kinds and inner.name.startswith("math.") and inner.name not in NATIVE_MATH:
        return f"{inner.name} on f64 calls a library"
    return None


def _is_captured(value: ir.Value, block: ir.Block) -> bool:
    """Whether a scalar of a body is made outside of it, by something else than a constant."""
    if isinstance(value, ir.BlockArgument):
        return value.owner != block
    maker = value.owner.operation
    return maker.block != block and maker.name != "arith.constant"


def _reason_of_reduction(op: ir.Operation) -> str | None:
    block = op.regions[0].blocks[0]
    total = block.arguments[len(block.arguments) - 1]
    value = block.operations[len(block.operations) - 1].operands[0]
    combiner = None if isinstance(value, ir.BlockArgument) else value.owner.operation
    if combiner is None or combiner.name not in _COMBINERS:
        return "it reduces by something else than combiner(accumulator, term)"
    if [operand == total for operand in combiner.operands].count(True) != 1 or len(list(total.uses)) != 1:
        return "it uses its accumulator other than once"
    return None


def loops_of_open_sizes(root: ir.Operation) -> list[dict[str, str]]:
    """Location and reason of each larger operation that would be a kernel, were its sizes known at compile time.

    Args:
        root: a module after phase `plan`.
    """
    found = []
    for block in blocks(root):
        for op in (child.operation for child in block.operations):
            if op.name != "linalg.generic" or not decisions.HOST.on(op):
                continue
            reason = reason_for_host(op)
            if isinstance(reason, OpenSize) and not is_small(op):
                found.append({"location": _name_of(op.location), "reason": str(reason)})
    return found


def _name_of(location: ir.Location) -> str:
    """The model's name of the place, if it has one."""
    parts = str(location).split('"')
    return parts[1] if len(parts) > 2 else str(location)


def is_small(op: ir.Operation) -> bool:
    """Whether all loops have known sizes, and few points together."""
    sizes: dict[int, int] = {}
    values = [*op.operands]
    for value, attribute in zip(values, op.attributes["indexing_maps"], strict=True):
        for axis, expr in enumerate(attribute.value.results):
            if isinstance(expr, ir.AffineDimExpr):
                sizes[ir.AffineDimExpr(expr).position] = ir.RankedTensorType(value.type).shape[axis]
    points = math.prod(sizes.values())
    return len(sizes) == len(op.attributes["iterator_types"]) and min(sizes.values()) >= 0 and points <= _FEW_POINTS


@register
@dataclass(frozen=True)
class MarkHostFallback(Pass):
    """Mark the operations that no kernel can take (`tile.host`, with the reason).

    They stay in the host function and become scalar loops. Operations that follow from weights alone are not marked:
    they run at compile time.

    Before:
    ```mlir
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<64xf4E2M1FN>) -> tensor<64xf4E2M1FN> {
      %e = tensor.empty() : tensor<64xf4E2M1FN>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x : tensor<64xf4E2M1FN>) outs(%e : tensor<64xf4E2M1FN>) {
      ^bb0(%a: f4E2M1FN, %o: f4E2M1FN):
        %n = arith.negf %a : f4E2M1FN
        linalg.yield %n : f4E2M1FN
      } -> tensor<64xf4E2M1FN>
      return %y : tensor<64xf4E2M1FN>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%x : tensor<64xf4E2M1FN>) outs(%e : tensor<64xf4E2M1FN>)
        attrs = {tile.host = "there are no tiles of f4E2M1FN"} {
    ```
    """

    name: ClassVar[str] = "tile-mark-host-fallback"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    def run(self, op: ir.Operation) -> None:
        """Visit every generic that runs with the model."""
        weights = Weights()
        for block in blocks(op):
            for inner in block.operations:
                operation = inner.operation
                if operation.name != "linalg.generic" or any(weights.only(x) for x in operation.results):
                    continue
                reason = reason_for_host(operation)
                if reason:
                    decisions.HOST.set(operation, reason)
