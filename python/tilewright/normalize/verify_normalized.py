# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-verify-normalized`: the border after phase `normalize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import InternalError
from tilewright.mlir import ir
from tilewright.passes import Pass, located, register
from tilewright.passes.weights import INLINE_BYTES

_AROUND = frozenset({"builtin.module", "func.func", "func.return", "ml_program.global"})
_PLAIN = frozenset(
    {
        "arith.constant",
        "arith.select",
        "cf.assert",
        "linalg.fill",
        "linalg.yield",
        "ml_program.global_load_const",
        "scf.condition",
        "scf.for",
        "scf.if",
        "scf.while",
        "scf.yield",
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.dim",
        "tensor.empty",
        "tensor.expand_shape",
        "tensor.extract",
        "tensor.extract_slice",
        "tensor.from_elements",
        "tensor.generate",
        "tensor.insert",
        "tensor.insert_slice",
        "tensor.pad",
        "tensor.reshape",
        "tensor.splat",
        "tensor.yield",
        "tile.launch",
    }
)
_LEAVES = ("linalg.generic", "linalg.fill", "tile.kernel")  # their regions have rules of their own


@register
@dataclass(frozen=True)
class VerifyNormalized(Pass):
    """Check that a module is in the form that planning relies on.

    Every computation on whole tensors is a linalg.generic. Beside generics there are only fills, operations that make,
    reshape, cut or pad tensors or touch one element, constants of at most 256 bytes (or splats), loads of weights,
    structured control flow, assertions, scalar arithmetic, ops of `sparse_tile`, and launches of kernels. On
    ``linalg.matmul``, say, it fails with ``'linalg.matmul' must not be here after phase normalize``.

    Before:
    ```mlir
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      return %x : tensor<64xf32>
    }
    ```
    After: unchanged.
    """

    name: ClassVar[str] = "tile-verify-normalized"

    def run(self, op: ir.Operation) -> None:
        """Raise InternalError at the first op that breaks a rule."""

        found: list[ir.Operation] = []

        def visit(inner: ir.Operation) -> ir.WalkResult:
            found.append(inner.operation)
            return ir.WalkResult.SKIP if inner.name in _LEAVES else ir.WalkResult.ADVANCE

        op.walk(visit, ir.WalkOrder.PRE_ORDER)
        for inner in found:
            if inner.name not in _LEAVES:
                _check_plain(inner)


def _is_splat(value: ir.Attribute) -> bool:
    if isinstance(value, ir.DenseElementsAttr):
        return value.is_splat
    return str(value).startswith("dense<(")  # complex numbers, which have no class here


def _fail(op: ir.Operation, rule: str) -> None:
    raise located(InternalError(f"'{op.name}' {rule}", ir=str(op)), op)


def _check_plain(op: ir.Operation) -> None:
    if op.name in _AROUND:
        return
    if op.name not in _PLAIN and not op.name.startswith("sparse_tile.") and not _is_scalar(op):
        _fail(
            op,
            "must not be here after phase normalize: every computation on tensors is a linalg.generic; give the op a "
            "decomposition in the front end or in tile-generalize",
        )
    if op.name == "arith.constant":
        _check_constant(op)


def _is_scalar(op: ir.Operation) -> bool:
    """Arithmetic on numbers, such as the position in a loop."""
    values = [*op.operands, *op.results]
    return bool(values) and not any(isinstance(v.type, ir.ShapedType) for v in values)


def _check_constant(op: ir.Operation) -> None:
    kind = op.results[0].type
    if not isinstance(kind, ir.RankedTensorType):
        return
    size = 1
    for n in kind.shape:
        size *= n
    width = getattr(kind.element_type, "width", 128)
    if size * width > INLINE_BYTES * 8 and not _is_splat(op.attributes["value"]):
        _fail(
            op,
            f"holds {size * width // 8} bytes as text; constants above {INLINE_BYTES} bytes are ml_program globals",
        )
