# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asks the families of kernels whether they take a product that does not stand in the IR yet."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tilewright.core.errors import UserError
from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Pattern
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.passes.weights import bound
from tilewright.plan.cost.sparse import Taken, unit_of
from tilewright.plan.sparse.cover import spread
from tilewright.plan.sparse.forms.form import Form, Product
from tilewright.plan.sparse.lowering import product_of
from tilewright.plan.sparse.registry import FORMS

T = TypeVar("T")
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def transposed(pattern: Pattern) -> Pattern:
    """The pattern of a matrix, for the transposed one."""
    if isinstance(pattern, NM):
        return NM(pattern.n, pattern.m, 1 - pattern.axis, tuple(reversed(pattern.unit)))
    return Block((pattern.shape[1], pattern.shape[0])) if isinstance(pattern, Block) else pattern


def held_types(encoded: ir.Type, units: int) -> list[ir.RankedTensorType]:
    """Types of the parts of an encoded tensor of which `units` units are kept."""
    kinds = [ir.RankedTensorType(kind) for kind in part_types(encoded)]
    return [
        ir.RankedTensorType.get([units if size == _DYNAMIC else size for size in kind.shape], kind.element_type)
        for kind in kinds
    ]


def asked(
    kernel: str, pattern: Pattern, sizes: Sequence[int], elements: Sequence[ir.Type], device: Device
) -> Taken | str:
    """How a family takes `x [m, k] @ w [k, n]`, or why it does not.

    A family that takes the weight on either side gets it as it stands: nothing is transposed around it.

    Args:
        kernel: the family.
        pattern: of the weight, as [k, n].
        sizes: m, n, k; below zero where a run brings them.
        elements: element types of the operands and of the result.
        device: the machine.
    """
    form = next((form for form in FORMS if form.name == kernel), None)
    if form is None:
        return f'there is no family "{kernel}"'
    m, n, k = sizes
    return _asked(form, pattern, (m, n, k), (str(elements[0]), str(elements[1])), device)


@functools.lru_cache(4096)
def _asked(
    form: Form, pattern: Pattern, sizes: tuple[int, int, int], elements: tuple[str, str], device: Device
) -> Taken | str:
    """The same with plain values: layers of one shape ask once."""
    reasons = []
    for left in (False, True):
        try:
            probe = _Probe(transposed(pattern) if left else pattern, left, sizes, elements)
        except UserError as error:
            return str(error)
        why = probe.ask(probe.units // 8, lambda product: form.reason_against(product, device))
        if why is None:
            return Taken(left, _line(form, probe, device))
        reasons.append(why)
    return reasons[0]


def _line(form: Form, probe: _Probe, device: Device) -> tuple[float, float] | None:
    """Seconds without a unit and for each, as a family predicts them; None where it does not."""
    if not hasattr(form, "seconds"):
        return None
    predict: Callable[[Product, Device], float] = getattr(form, "seconds")  # noqa: B009
    many = max(probe.units // 8, 2)
    if isinstance(probe.pattern, NM):
        return 0.0, probe.ask(many, lambda product: predict(product, device)) / max(probe.units, 1)
    few = max(many // 4, 1)
    one, two = (probe.ask(units, lambda product: predict(product, device)) for units in (few, many))
    each = max(two - one, 0.0) / (many - few)
    return one - few * each, each


@dataclass(frozen=True)
class _Probe:
    """A product that stands in a module of its own.

    Attributes:
        pattern: of the encoded operand, as it stands.
        left: whether that is the left one.
        sizes: m, n, k of `x @ w`; below zero where a run brings them.
        elements: element types of the operands and of the result, as text.
    """

    pattern: Pattern
    left: bool
    sizes: tuple[int, int, int]
    elements: tuple[str, str]

    @property
    def shape(self) -> tuple[int, int]:
        """Of the encoded operand."""
        _, n, k = self.sizes
        return (n, k) if self.left else (k, n)

    @property
    def units(self) -> int:
        """Units that the whole operand has; of N:M, those that are kept."""
        unit = unit_of(self.pattern)
        grid = [-(-size // step) for size, step in zip(self.shape, unit, strict=True)]
        if isinstance(self.pattern, NM):
            grid[self.pattern.axis] = -(-grid[self.pattern.axis] // self.pattern.m) * self.pattern.n
        return grid[0] * grid[1]

    def ask(self, kept: int, question: Callable[[Product], T]) -> T:
        """What someone says of the product, with so many units kept, evenly spread."""
        m, n, k = (size if size >= 0 else _DYNAMIC for size in self.sizes)
        operand, sum_type = (ir.Type.parse(text) for text in self.elements)
        plain = ir.RankedTensorType.get(self.shape, operand)
        encoded = Tesa.one(self.pattern).type(self.shape, operand)
        dense = ir.RankedTensorType.get([k, m] if self.left else [m, k], operand)
        result = ir.RankedTensorType.get([n, m] if self.left else [m, n], sum_type)
        with ir.Location.unknown():
            module, block = _module(plain, dense, result)
            with ir.InsertionPoint(block), bound(module.operation, {"w": self._elements(kept)}):
                weight = create("ml_program.global_load_const", [], plain, {"global": ir.FlatSymbolRefAttr.get("w")})
                whole = assembled(create("sparse_tile.pack", [weight], encoded), kept)
                activations, init = block.arguments
                operands = [whole, activations, init] if self.left else [activations, whole, init]
                # It is asked for by name: whether it is faster than a dense product is decided here.
                named = {"kernel": ir.StringAttr.get("asked")}
                matmul = ir.Operation.create(
                    "sparse_tile.matmul", results=[result], operands=operands, attributes=named
                )
                return question(product_of(matmul))

    def _elements(self, kept: int) -> np.ndarray:
        """Ones in so many units."""
        unit = unit_of(self.pattern)
        grid = np.zeros([-(-size // step) for size, step in zip(self.shape, unit, strict=True)], np.uint8)
        if grid.size:
            grid.reshape(-1)[np.arange(max(kept, 1), dtype=np.int64) * grid.size // max(kept, 1) % grid.size] = 1
        return spread(grid, unit, self.shape)


def _module(plain: ir.Type, dense: ir.Type, result: ir.Type) -> tuple[ir.Module, ir.Block]:
    """A module with a weight `w`, and the empty body of a function of the other operands."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        extern = ir.Attribute.parse(f"#ml_program.extern : {plain}")
        named = {"sym_name": ir.StringAttr.get("w"), "type": ir.TypeAttr.get(plain), "value": extern}
        ir.Operation.create("ml_program.global", attributes={**named, "sym_visibility": ir.StringAttr.get("private")})
        kind = ir.FunctionType.get([dense, result], [])
        attributes = {"sym_name": ir.StringAttr.get("probe"), "function_type": ir.TypeAttr.get(kind)}
        function = ir.Operation.create("func.func", attributes=attributes, regions=1)
    return module, ir.Block.create_at_start(function.regions[0], list(kind.inputs))


def assembled(packed: ir.Value, units: int) -> ir.Value:
    """An encoded tensor of which `units` units are kept, assembled of parts of known sizes at the insertion point."""
    parts = ir.Operation.create("sparse_tile.parts", results=held_types(packed.type, units), operands=[packed])
    return create("sparse_tile.assemble", list(parts.results), packed.type)
