# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`sparse_tile.decode` in bodies of generics: which operands are codes, zero points and scales; its arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.generics import body, constant_of, create, create_number, kinds, maker
from tilewright.mlir import ir

NAME = "sparse_tile.decode"


@dataclass(frozen=True)
class Decoding:
    """One `sparse_tile.decode`: `(code - zero) * scale`.

    Attributes:
        op: the operation.
        code: a byte, or a float of 8 bits.
        zero: the zero point; None where there is none.
        scale: the scale; None where there is none.
        unsigned: whether bytes have no sign, those of the zero point as well.
    """

    op: ir.Operation
    code: ir.Value
    zero: ir.Value | None
    scale: ir.Value | None
    unsigned: bool

    @classmethod
    def of(cls, op: ir.Operation) -> Decoding:
        """Read the operation."""
        code, *others = op.operands
        _, zero, scale = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
        at = iter(others)
        return cls(op, code, next(at) if zero else None, next(at) if scale else None, "is_unsigned" in op.attributes)

    @property
    def result(self) -> ir.Type:
        """The type of the number."""
        return self.op.results[0].type

    @property
    def is_float(self) -> bool:
        """Whether the code is a float."""
        return isinstance(self.code.type, ir.FloatType)

    @property
    def known_zero(self) -> float | int | None:
        """The zero point that a constant is, with its sign; 0 where there is none, None where it is no constant."""
        if self.zero is None:
            return 0
        known = constant_of(self.zero)
        return known % 256 if known is not None and self.unsigned and str(self.zero.type) == "i8" else known

    @property
    def of_bytes(self) -> bool:
        """Whether code and zero point are whole numbers of a byte."""
        known = self.known_zero
        if known is None:
            return self.zero is not None and not self.is_float and str(self.zero.type) == "i8"
        return not self.is_float and isinstance(known, int) and -128 <= known <= 255

    @property
    def steps(self) -> int:
        """How many operations :func:`arithmetic` makes of it, constants apart."""
        scaled = 0 if self.scale is None else 1 + (self.scale.type != ir.F32Type.get(self.op.context))
        if self.is_float:
            return 1 + scaled + self._rounds
        if self.zero is None:
            return 1 + scaled + self._rounds
        floats = isinstance(self.zero.type, ir.FloatType)
        widened = constant_of(self.zero) is None and str(self.zero.type) not in ("i32", "f32")
        return 2 + widened + (not floats and str(self.result) != "i32") + scaled + self._rounds

    @property
    def _rounds(self) -> bool:
        return str(self.result) not in ("f32", "i32")


def number(code: ir.Value, zero: ir.Value | None, scale: ir.Value | None, unsigned: bool, result: ir.Type) -> ir.Value:
    """A `sparse_tile.decode`, at the current insertion point."""
    attributes: dict[str, ir.Attribute] = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, int(zero is not None), int(scale is not None)])
    }
    if unsigned:
        attributes["is_unsigned"] = ir.UnitAttr.get()
    return create(NAME, [v for v in (code, zero, scale) if v is not None], result, attributes)


def yielded(op: ir.Operation) -> Decoding | None:
    """The decoding whose number an elementwise generic yields, of an element of an operand; None for other bodies."""
    if op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)):
        return None
    operations = body(op).operations
    made = maker(operations[len(operations) - 1].operands[0])
    if made is None or made.name != NAME or made.block != body(op):
        return None
    found = Decoding.of(made)
    return found if is_argument(found.code, op) else None


def is_argument(value: ir.Value | None, op: ir.Operation) -> bool:
    """Whether a scalar is an element of an operand of a generic."""
    return value is not None and isinstance(value, ir.BlockArgument) and value.owner == body(op)


def steps_of(op: ir.Operation) -> int:
    """How many operations of `arith` and `math` the body of a generic comes to, constants apart."""
    found = 0
    for step in body(op).operations:
        if step.operation.name == NAME:
            found += Decoding.of(step.operation).steps
        elif step.operation.name.startswith(("arith.", "math.")):
            found += step.operation.name != "arith.constant"
    return found


def is_arithmetic(op: ir.Operation) -> bool:
    """Whether the body of a generic computes by `arith` and decodes alone, and something."""
    steps = [step.operation for step in body(op).operations][:-1]
    return bool(steps) and all(s.name.startswith(("arith.", NAME)) and not s.regions for s in steps)


def arithmetic(found: Decoding) -> ir.Value:
    """The number by operations of `arith`, at the current insertion point."""
    return computed(found, found.code)


def computed(found: Decoding, code: ir.Value) -> ir.Value:
    """The number of another code, a byte or an i32, by operations of `arith`, at the current insertion point."""
    i32, f32, result = ir.IntegerType.get_signless(32), ir.F32Type.get(), found.result
    unsigned = found.unsigned
    if found.zero is None:
        value = extended(code, unsigned) if result == i32 else code
    elif isinstance(found.zero.type, ir.FloatType):
        value = create("arith.subf", [as_float(code, f32, unsigned), as_float(found.zero, f32, False)], f32)
    else:
        value = create("arith.subi", [extended(code, unsigned), extended(found.zero, unsigned)], i32)
    return value if result == i32 else _rounded(found, as_float(value, f32, unsigned))


def _rounded(found: Decoding, value: ir.Value) -> ir.Value:
    """A difference in f32, scaled, as the type of the result."""
    if found.scale is not None:
        value = create("arith.mulf", [value, as_float(found.scale, value.type, False)], value.type)
    return value if value.type == found.result else create("arith.truncf", [value], found.result)


def cheap(found: Decoding) -> ir.Value:
    """The number in the cheapest steps that give the same, at the current insertion point.

    A byte less its zero point has nine bits, and a scale in f16 eleven: their product fits into an f32, so rounding it
    to f16 is what a multiplication in f16 gives, which does two numbers at a time and needs no conversion. Differences
    of two bytes are exact in all floats that hold 255, so the difference of two floats stands for a float of a
    difference.
    """
    if found.is_float or str(found.result) == "i32" or not found.of_bytes:
        return arithmetic(found)
    narrow = found.scale is not None and found.scale.type == found.result and isinstance(found.result, ir.F16Type)
    kind = found.result if narrow else ir.F32Type.get()
    value = as_float(found.code, kind, found.unsigned)
    if found.zero is not None:
        known = found.known_zero
        zero = as_float(found.zero, kind, found.unsigned) if known is None else create_number(float(known), kind)
        value = create("arith.subf", [value, zero], kind)
    if narrow:
        return create("arith.mulf", [value, found.scale], kind)
    return _rounded(found, value)


def extended(value: ir.Value, unsigned: bool) -> ir.Value:
    """A byte as an i32, which a constant is at once; an i32 as it is."""
    i32 = ir.IntegerType.get_signless(32)
    if value.type == i32:
        return value
    known = constant_of(value)
    if known is not None:
        return create("arith.constant", [], i32, {"value": ir.IntegerAttr.get(i32, known % 256 if unsigned else known)})
    return create("arith.extui" if unsigned else "arith.extsi", [value], i32)


def as_float(value: ir.Value, kind: ir.Type, unsigned: bool) -> ir.Value:
    """A number as a float, which a constant one is at once."""
    if value.type == kind:
        return value
    if isinstance(value.type, ir.FloatType):
        known = constant_of(value)
        return create("arith.extf", [value], kind) if known is None else create_number(float(known), kind)
    low = unsigned and str(value.type) == "i8"  # wider integers have their sign
    return create("arith.uitofp" if low else "arith.sitofp", [value], kind)
