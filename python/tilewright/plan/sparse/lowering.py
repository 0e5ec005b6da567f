# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of the `sparse_tile` dialect become kernels and generics."""

from __future__ import annotations

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create, is_zeros, maker, walk
from tilewright.ir.target_info import device_of
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.passes import located, remark
from tilewright.plan.sparse.dynamic.lower_dynamic import lower_gather, lower_index, lower_scatter
from tilewright.plan.sparse.encoded import is_constant, pack_of
from tilewright.plan.sparse.forms.cpu.rows_in_lanes import lower_mixture
from tilewright.plan.sparse.forms.cpu.rows_of_blocks import goes_on
from tilewright.plan.sparse.forms.cpu.turned import turn_between
from tilewright.plan.sparse.forms.form import Form, Product
from tilewright.plan.sparse.registry import FORMS
from tilewright.plan.sparse.sink_users import sink_users
from tilewright.plan.sparse.sound_parts import sound_parts

_MOVES = {
    "sparse_tile.index": lower_index,
    "sparse_tile.gather": lower_gather,
    "sparse_tile.scatter": lower_scatter,
}


#: What holds encoded tensors, users before makers.
_CODECS = ("sparse_tile.unpack", "sparse_tile.assemble", "sparse_tile.parts", "sparse_tile.pack")

_AT_COMPILE_TIME = ("pack", "parts", "assemble", "unpack", "quantize", "dequantize")


def lower_operations(op: ir.Operation) -> None:
    """Lower products, then what moves tensors."""
    products = walk(op, "sparse_tile.matmul")
    device = device_of(op, "tile-lower-sparse") if products else None
    mixtures = _mixtures(products)
    _turn_between(products, device)
    for number, matmul in enumerate(products):
        assert device is not None
        if number not in mixtures.values():
            _replace(matmul, products[mixtures[number]] if number in mixtures else None, device)
    for name, lower in _MOVES.items():
        for move in walk(op, name):
            with ir.InsertionPoint(move), move.location:
                made = lower(move)
            for old, new in zip(move.results, made, strict=True):
                old.replace_all_uses_with(_as(old.type, new))
            move.erase()
    for name in _CODECS:
        for left in walk(op, name):
            _simplify(left)
    for name in _AT_COMPILE_TIME:
        for left in walk(op, f"sparse_tile.{name}"):
            _refuse(left)


def _turn_between(products: list[ir.Operation], device: Device | None) -> None:
    """Leave columns across lanes between products that name the family which has them so."""
    firsts: dict[ir.Operation, Product] = {}
    for op in products:
        assert device is not None
        if "kernel" in op.attributes and op.attributes["kernel"].value == "rows_in_lanes":
            with ir.InsertionPoint(op), op.location:
                firsts[op] = product_of(op)
            turn_between(firsts[op], firsts, device)


def _replace(matmul: ir.Operation, last: ir.Operation | None, device: Device) -> None:
    """Put kernels in the place of a product, and of the one that goes on with its sums, if there is one."""
    end = last or matmul
    with ir.InsertionPoint(end), end.location:
        result = _lower_both(matmul, last, device) if last is not None else _lower(matmul, device)
    end.results[0].replace_all_uses_with(result)
    end.erase()
    if last is not None:
        matmul.erase()
    made = maker(result)
    if made is not None and made.name == "scf.if":
        sink_users(made)


def _mixtures(products: list[ir.Operation]) -> dict[int, int]:
    """Numbers of products of blocks, and of those of single elements that go on with their sums in one kernel."""
    found = {number: goes_on(matmul) for number, matmul in enumerate(products)}
    return {number: products.index(last) for number, last in found.items() if last is not None}


def _lower_both(blocks: ir.Operation, last: ir.Operation, device: Device) -> ir.Value:
    """Both products in one kernel, or one after the other where their lists do not go together."""
    both = lower_mixture(product_of(blocks), product_of(last), device)
    if both is not None:
        return both
    first = _lower(blocks, device)
    blocks.results[0].replace_all_uses_with(first)
    return _lower(last, device)


def product_of(op: ir.Operation) -> Product:
    """Read a `sparse_tile.matmul`; takes its encoded operand apart at the current insertion point."""
    a, b, c = op.operands
    left = Tesa.of(a.type) is not None
    if left and Tesa.of(b.type) is not None:
        raise located(UserError("both operands are encoded: unpack one of them (sparse_tile.unpack)"), op)
    encoded, dense = (a, b) if left else (b, a)
    tesa = Tesa.of(encoded.type)
    assert tesa is not None
    (m, k), n = ir.RankedTensorType(a.type).shape, ir.RankedTensorType(b.type).shape[1]
    return Product(op, tesa, left, m, n, k, _parts(encoded), dense, None if is_zeros(c) else c)


def _parts(encoded: ir.Value) -> tuple[ir.Value, ...]:
    """What holds an encoded tensor: what it was assembled of, else taken apart here."""
    made = maker(encoded)
    if made is not None and made.name == "sparse_tile.assemble":
        return sound_parts(made)
    op = ir.Operation.create("sparse_tile.parts", results=part_types(encoded.type), operands=[encoded])
    return tuple(op.results)


def _lower(op: ir.Operation, device: Device) -> ir.Value:
    product = product_of(op)
    form = _form(product, device)
    return form.lower(product, device)


def _form(product: Product, device: Device) -> Form:
    """The family that the operation names, or the first that takes it."""
    asked = product.op.attributes["kernel"].value if "kernel" in product.op.attributes else None
    if asked is None:
        against = {form.name: form.reason_against(product, device) for form in FORMS}
        form = next(form for form in FORMS if against[form.name] is None)
        if form.name == "dense":
            reasons = "; ".join(f"{name}: {why}" for name, why in against.items() if why) or "no family is for it"
            remark(product.op, f"a sparse product is multiplied as a dense one ({reasons})")
        return form
    form = next((form for form in FORMS if form.name == asked), None)
    if form is None:
        names = ", ".join(form.name for form in FORMS)
        raise located(UserError(f'kernel = "{asked}" is no family of kernels; there are {names}'), product.op)
    why = form.reason_against(product, device)
    if why:
        raise located(UserError(f'kernel = "{asked}" does not take this product: {why}'), product.op)
    return form


def _as(kind: ir.Type, value: ir.Value) -> ir.Value:
    """A tensor with the sizes that its users know."""
    return value if value.type == kind else create("tensor.cast", [value], kind)


def _refuse(op: ir.Operation) -> None:
    """Say so where an encoding changes at run time: no kernel does it; `tile-hoist-init` lets @init do the others."""
    if not is_constant(op.results[0]):
        text = (
            f"{op.name} of values that a run brings: encodings change at compile time only. Multiply by parts of a "
            "pattern that a family of kernels reads (sparse_tile.matmul of nm), or give the parts as weights"
        )
        raise located(UnsupportedError(text), op)


def _simplify(op: ir.Operation) -> None:
    """What is packed and unpacked again is as it was; what nobody reads goes."""
    made = pack_of(op.operands[0]) if op.name == "sparse_tile.unpack" else None
    if made is not None:
        op.results[0].replace_all_uses_with(made.operands[0])
    if not any(True for result in op.results for _ in result.uses):
        op.erase()
