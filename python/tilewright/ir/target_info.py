# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a module is compiled for, and how, as attributes of it: ``tile.device`` and ``tile.options``.

They are written once, at the start of a compilation, and read by passes, so that IR at any border between phases is all
that the rest of the compilation follows from::

    module attributes {
      tile.device = #tile.device<name = "nvidia-h100", cpu = "sm_90a", ...>,
      tile.options = {accuracy = "exact", opt_level = 3 : i64, precision = "f32"}
    } { ... }
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import UserError
from tilewright.devices.attribute import from_attribute, text_of, to_attribute, value_of
from tilewright.devices.device import Device
from tilewright.devices.rates import usual_rate
from tilewright.ir import decisions
from tilewright.mlir import ir

DEVICE = decisions.DEVICE
OPTIONS = decisions.OPTIONS
_MOST_KEPT = 64


@dataclass(frozen=True)
class ModuleOptions:
    """What passes read of a compilation's options.

    Attributes:
        precision: ``f32``, ``tf32``, ``bf16`` or ``int8``: what products are to be narrowed to.
        accuracy: ``exact``, ``winograd``, ``winograd4`` or ``fast``.
        opt_level: LLVM's optimization level, 0 to 3.
        choices: ``KERNEL:NUMBER`` texts: kernels that take another candidate of their tiles than the first.
        ranges: ``LOW:HIGH`` of the activation of each product, for precision ``int8``.
        sanitize: ``address`` where code for a CPU checks its accesses to memory, else empty.
        resident: weights have to stay in the memories of a mesh's cores.
        padded: name of the input that is zero at padding, whose results nobody reads; else empty.
        append_in_place: results that are an input with rows behind it are written behind it.
    """

    precision: str = "f32"
    accuracy: str = "exact"
    opt_level: int = 3
    choices: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    sanitize: str = ""
    resident: bool = False
    padded: str = ""
    append_in_place: bool = False


_FIELDS = {field.name for field in dataclasses.fields(ModuleOptions)}


def annotate(
    module: ir.Module | ir.Operation | ir.OpView,
    device: Device,
    options: ModuleOptions | Mapping[str, Any] | None = None,
) -> None:
    """Write on a module what it is compiled for, in the place of what it said before.

    Args:
        module: the outermost op.
        device: the machine.
        options: fields of :class:`ModuleOptions`; those that are left out have their defaults.

    Raises:
        UserError: there is no option of such a name.
    """
    values = options if isinstance(options, ModuleOptions) else _checked(options or {}, "annotate")
    kept = {name: value for name, value in dataclasses.asdict(values).items() if value not in ((), "")}
    for name in ("resident", "append_in_place"):
        if not kept[name]:
            del kept[name]
    root = module.operation
    root.attributes[DEVICE] = to_attribute(device, root.context)
    root.attributes[OPTIONS] = ir.Attribute.parse(text_of(kept), root.context)


def device_of(op: ir.Operation | ir.OpView, reader: str = "this step") -> Device:
    """Return the device that the module around `op` is compiled for.

    Args:
        op: any op of the module, or the module.
        reader: who asks, for the error.

    Raises:
        UserError: the module names none.
    """
    device = find_device(op)
    if device is None:
        raise UserError(
            f"{reader} needs to know the device, and the module names none in `{DEVICE}`: run the pass "
            "tile-set-target{target=...} first, e.g. tile-opt --tile-set-target=target=cpu:znver5"
        )
    return device


def find_device(op: ir.Operation | ir.OpView) -> Device | None:
    """Return the device that the module around `op` is compiled for; None where it names none.

    Raises:
        UserError: what stands there is no description of a device.
    """
    attribute = _attribute(op, DEVICE)
    return None if attribute is None else _device(attribute)


def rate_of(op: ir.Operation | ir.OpView, name: str) -> float:
    """Return a rate of the device that the module around `op` is compiled for; a usual CPU's where it names none.

    Raises:
        InternalError: no such rate is declared.
    """
    device = find_device(op)
    return usual_rate("cpu", name) if device is None else device.rate(name)


def options_of(op: ir.Operation | ir.OpView) -> ModuleOptions:
    """Return the options that the module around `op` is compiled with; the defaults where it has none.

    Raises:
        UserError: it has an option that does not exist.
    """
    attribute = _attribute(op, OPTIONS)
    if attribute is None:
        return ModuleOptions()
    values = value_of(attribute)
    if not isinstance(values, dict):
        raise UserError(f"`{OPTIONS}` must be a dictionary, not {attribute}")
    return _checked(values, f"`{OPTIONS}`")


def _checked(values: Mapping[str, Any], where: str) -> ModuleOptions:
    unknown = sorted(values.keys() - _FIELDS)
    if unknown:
        raise UserError(f"{where} has no option '{unknown[0]}': there are {', '.join(sorted(_FIELDS))}")
    return ModuleOptions(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def around(op: ir.Operation | ir.OpView) -> Iterator[ir.Operation]:
    """Yield an op, the op around it, and so on to the outermost one."""
    at: Any = op.operation
    yield at
    while at.attached and at.parent is not None:  # a copy is not attached, and has no parent
        at = at.parent.operation
        yield at


def _attribute(op: ir.Operation | ir.OpView, name: str) -> ir.Attribute | None:
    """The attribute on the nearest op around `op` that has it, itself included."""
    return next((at.attributes[name] for at in around(op) if name in at.attributes), None)


_devices: OrderedDict[str, Device] = OrderedDict()
_lock = threading.Lock()


def _device(attribute: ir.Attribute) -> Device:
    """The device of an attribute. A description is read once: its text tells all of it."""
    text = str(attribute)
    with _lock:
        found = _devices.get(text)
    if found is None:
        found = from_attribute(attribute)
        with _lock:
            _devices[text] = found
            while len(_devices) > _MOST_KEPT:
                _devices.popitem(last=False)
    return found
