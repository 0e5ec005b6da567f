# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a module's IR does not show of the model it comes from: ``tile.signature``, a dictionary on the module.

Inputs and outputs as users see them (names, element types with signs, sizes), how calls are made and the phase that
the IR was written after. Dumps carry it, so that a compilation can begin at any of them::

    module attributes {tile.signature = {
      phase = "plan",
      inputs = [{dtype = "f32", name = "x", shape = [16, 64]}],
      outputs = [{dtype = "f32", name = "y", shape = [16, 32]}]}} { ... }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.mlir import ir


def write(module: ir.Operation, values: Mapping[str, Any]) -> None:
    """Write a signature on a module, in the place of the one it has.

    Args:
        module: the outermost op.
        values: text, numbers, truth values, None, and lists and dictionaries of these.
    """
    with module.context:
        module.attributes[decisions.SIGNATURE] = _attribute(values)


def find(module: ir.Operation) -> dict[str, Any] | None:
    """Return the signature of a module; None where it has none.

    Raises:
        UserError: it is no dictionary of plain values.
    """
    if decisions.SIGNATURE not in module.attributes:
        return None
    found = _value(module.attributes[decisions.SIGNATURE])
    if not isinstance(found, dict):
        raise UserError(f"`{decisions.SIGNATURE}` must be a dictionary, not {found!r}")
    return found


def _attribute(value: Any) -> ir.Attribute:
    if value is None:
        return ir.UnitAttr.get()
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get(ir.F64Type.get(), value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, Mapping):
        # Attributes have names that MLIR can print, in alphabetical order: other names and orders as pairs.
        if all(name.isidentifier() for name in value) and sorted(value) == list(value) and "pairs" not in value:
            return ir.DictAttr.get({name: _attribute(inner) for name, inner in value.items()})
        return ir.DictAttr.get({"pairs": _attribute([[name, inner] for name, inner in value.items()])})
    if isinstance(value, Sequence):
        return ir.ArrayAttr.get([_attribute(inner) for inner in value])
    raise TypeError(f"no plain value: {value!r}")


def _value(attribute: ir.Attribute) -> Any:
    if isinstance(attribute, ir.UnitAttr):
        return None
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr | ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.ArrayAttr):
        return [_value(inner) for inner in attribute]
    if isinstance(attribute, ir.DictAttr):
        found = {named.name: _value(named.attr) for named in attribute}
        return dict(found["pairs"]) if set(found) == {"pairs"} else found
    raise UserError(f"`{decisions.SIGNATURE}` holds {attribute}: text, numbers, lists and dictionaries are allowed")
