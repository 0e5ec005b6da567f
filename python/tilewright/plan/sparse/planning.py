# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides for each product whose constant operand has zeros: a cover of what is not zero, or dense, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import Pattern
from tilewright.ir import decisions
from tilewright.ir.generics import kinds
from tilewright.ir.structure import LinalgOp, Weights, blocks, describe
from tilewright.ir.target_info import options_of
from tilewright.mlir import ir
from tilewright.plan.cost.sparse import Sizes, Taken, dense_seconds
from tilewright.plan.sparse.candidates import Candidate, Search, name_of
from tilewright.plan.sparse.constants import LEAST_ZEROS, array_of, has_zeros, zero_part
from tilewright.plan.sparse.cover import Lattice
from tilewright.plan.sparse.decision import Sparsity
from tilewright.plan.sparse.probe import asked
from tilewright.plan.sparse.weights import WeightProduct, is_product, weight_product

#: Elements of a weight that are worth a kernel of their own.
_LEAST_ELEMENTS = 1 << 10
_MOST_BITS = 32


def pruned_operands(root: ir.Operation) -> Iterator[tuple[LinalgOp, int]]:
    """The reductions that read a constant of floats with zeros, and which of their inputs that is."""
    weights = Weights()
    for block in blocks(root):
        for position, view in enumerate(block.operations):
            op = view.operation
            if op.name != "linalg.generic" or len(op.results) != 1 or decisions.HOST.on(op) or not any(kinds(op)):
                continue
            inputs = list(op.operands)[:-1]
            # Dense models are to pay next to nothing: operations are described where there are zeros.
            found = [number for number, value in enumerate(inputs) if weights.only(value) and has_zeros(value)]
            if found and not weights.only(op.results[0]):
                described = describe(op, position)
                yield from ((described, number) for number in found)


def decide(op: LinalgOp, number: int, device: Device, margin: float) -> Sparsity | None:
    """What is decided of a reduction that reads a constant with zeros; None where these are too few.

    Args:
        op: the operation.
        number: which of its inputs is the constant.
        device: the machine.
        margin: the part of the dense product's time that a cover has to save.
    """
    array = array_of(op.inputs[number].value)
    if array is None or zero_part(array) < LEAST_ZEROS:
        return None
    density = 1.0 - zero_part(array)
    product = weight_product(op, number) if is_product(op) else "it is no product of two tensors"
    against = product if isinstance(product, str) else _against(product)
    if against is not None:
        return Sparsity((), density=density, reason=against)
    assert isinstance(product, WeightProduct)
    return _chosen(product, Lattice(product.matrix(array) != 0), density, device, margin)


def _against(product: WeightProduct) -> str | None:
    """Why a product of matrices is left dense, whatever its weight holds."""
    options = options_of(product.op.op)
    if options.precision != "f32":
        return f"precision {options.precision} multiplies dense operands"
    if product.k * product.n < _LEAST_ELEMENTS:
        return f"{product.k * product.n} elements are too few for a kernel of their own"
    widths = [ir.RankedTensorType(a.value.type).element_type.width for a in product.op.inputs]
    if max(widths) > _MOST_BITS:
        return "there are no sparse kernels of f64"
    return "its operands have different types" if len(set(widths)) > 1 else None


def _chosen(product: WeightProduct, lattice: Lattice, density: float, device: Device, margin: float) -> Sparsity:
    """The fastest of all covers, or dense."""
    element = ir.RankedTensorType(product.weight.type).element_type
    sizes = Sizes(product.m, product.n, product.k, element.width // 8)
    dense = dense_seconds(sizes, device)
    families = _Asked(product, device)
    found = Search(lattice, sizes, device, families.takes).ranked()
    dense_ns = _ns(dense)
    if not found:
        why = "; ".join(families.reasons) or "no family of kernels is for its pattern"
        return Sparsity((), density=density, ns=dense_ns, dense_ns=dense_ns, reason=why)
    best = found[0]
    if best.seconds > (1 - margin) * dense:
        return Sparsity(
            (),
            density=density,
            ns=dense_ns,
            dense_ns=dense_ns,
            runner_up=best.patterns,
            runner_up_ns=_ns(best.seconds),
            reason=f"a cover saves less than {margin:.0%} of the dense time",
        )
    other = next((c for c in found if c.patterns != best.patterns), None)
    if other is not None and other.seconds > dense:
        other = None
    return Sparsity(
        best.patterns,
        tuple(region.kernel for region in best.regions),
        best.least,
        tuple(region.units for region in best.regions),
        density,
        _ns(best.seconds),
        () if other is None else other.patterns,
        dense_ns if other is None else _ns(other.seconds),
        dense_ns,
        _told(best, lattice),
    )


def _told(best: Candidate, lattice: Lattice) -> str:
    many = "" if len(best.regions) == 1 else f", in {len(best.regions)} regions"
    return f"{name_of(lattice)}{many}"


class _Asked:
    """Asks families of kernels, and keeps what they say against a product."""

    def __init__(self, product: WeightProduct, device: Device) -> None:
        self._elements = product.elements
        self._sizes = product.sizes
        self._device = device
        self._known: dict[tuple[str, Pattern], Taken | str] = {}

    def takes(self, kernel: str, pattern: Pattern, units: int) -> Taken | str:
        """How a family takes the product, or why it does not."""
        del units
        key = (kernel, pattern)
        if key not in self._known:
            self._known[key] = asked(kernel, pattern, self._sizes, self._elements, self._device)
        return self._known[key]

    @property
    def reasons(self) -> list[str]:
        """Why families do not take what they were asked for, one reason of each."""
        return list({key[0]: f"{key[0]}: {why}" for key, why in self._known.items() if isinstance(why, str)}.values())


def _ns(seconds: float) -> int:
    return round(float(f"{seconds:.3e}") * 1e9)


def plan(root: ir.Operation, device: Device, margin: float) -> None:
    """Write `tile.sparsity` on the products that have none yet."""
    for op, number in list(pruned_operands(root)):
        if decisions.SPARSITY.on(op.op):
            continue
        found = decide(op, number, device, margin)
        if found is not None:
            found.write(op.op)
