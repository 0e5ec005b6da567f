# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A device description in the IR: ``#tile.device<name = "host", kind = "cpu", levels = [...], units = {...}>``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import UserError
from tilewright.devices.device import Device

if TYPE_CHECKING:
    from tilewright.mlir import ir


def to_attribute(device: Device, context: ir.Context | None = None) -> ir.Attribute:
    """Return a device as an attribute of the tile dialect, in the given or the current context.

    It also holds the limits of the device's kind: C++ passes read the attribute alone.
    """
    from tilewright.mlir import ir

    said = {**device.to_dict(), "limits": device.all_limits}
    fields = ", ".join(f"{name} = {text_of(value)}" for name, value in said.items())
    return ir.Attribute.parse(f"#tile.device<{fields}>", context)


def from_attribute(attribute: ir.Attribute) -> Device:
    """Return the device that an attribute describes.

    Raises:
        UserError: it is no ``#tile.device``, or its contents are wrong.
    """
    from tilewright.mlir import ir

    text = str(attribute)
    if not text.startswith("#tile.device<"):
        raise UserError(f"expected a #tile.device attribute, not {text[:60]}")
    body = "{" + text.removeprefix("#tile.device<").removesuffix(">") + "}"
    return Device.from_dict(value_of(ir.Attribute.parse(body, attribute.context)), "#tile.device")


def text_of(value: Any) -> str:
    """Return plain values as the text of an attribute: integers are i64, numbers f64."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float):
        return f"{value!r} : f64" if "." in repr(value) else f"{value:.17e} : f64"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {text_of(inner)}" for name, inner in value.items()) + "}"
    return "[" + ", ".join(text_of(inner) for inner in value) + "]"


def value_of(attribute: ir.Attribute) -> Any:
    """Return an attribute of text, numbers, lists and dictionaries as plain values.

    Raises:
        UserError: it holds something else.
    """
    from tilewright.mlir import ir

    if isinstance(attribute, ir.DictAttr):
        return {named.name: value_of(named.attr) for named in attribute}
    if isinstance(attribute, ir.ArrayAttr):
        return [value_of(element) for element in attribute]
    if isinstance(attribute, ir.StringAttr | ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr):
        return attribute.value
    raise UserError(f"#tile.device holds {attribute}: only text, numbers, lists and dictionaries are allowed")
