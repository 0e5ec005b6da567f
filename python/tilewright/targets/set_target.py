# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-set-target`: what a module is compiled for, and how."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.devices.attribute import from_attribute
from tilewright.devices.device import Device
from tilewright.ir.target_info import ModuleOptions, annotate
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register
from tilewright.targets import registry


@register
@dataclass(frozen=True)
class SetTarget(Pass):
    """Write on a module what it is compiled for (`tile.device`), and with which options (`tile.options`).

    All other passes read both there. What a module said before is replaced.

    Before:
    ```mlir
    module {
    }
    ```
    After:
    ```mlir
    module attributes {tile.device = #tile.device<name = "x86-64-v3", cpu = "x86-64-v3", features = [
    ...
    tile.options = {accuracy = "exact", opt_level = 3 : i64, precision = "f32"}
    ```
    """

    name: ClassVar[str] = "tile-set-target"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    target: str = option("cpu:x86-64-v3", "cpu:NAME, FILE.toml, cuda:ARCH, a description's name, or #tile.device<...>")
    precision: str = option("f32", "f32, tf32, bf16 or int8: what products are to be narrowed to")
    accuracy: str = option("exact", "exact, winograd, winograd4 or fast")
    opt_level: int = option(3, "LLVM's optimization level, 0 to 3")
    choices: tuple[str, ...] = option((), "KERNEL:NUMBER, kernels that take another candidate of tiles than the first")
    ranges: tuple[str, ...] = option((), "LOW:HIGH of the activation of each product, for precision int8")
    sanitize: str = option("", "address: code for a CPU checks its accesses to memory")
    resident: bool = option(False, "weights have to stay in the memories of a mesh's cores")
    padded: str = option("", "the input that is zero at padding, whose results nobody reads")
    append_in_place: bool = option(False, "results that are an input with rows behind it are written behind it")

    def run(self, op: ir.Operation) -> None:
        """Annotate the op, a module."""
        names = [field.name for field in dataclasses.fields(ModuleOptions)]
        annotate(op, device_named(self.target, op.context), {name: getattr(self, name) for name in names})


def device_named(target: str, context: ir.Context | None = None) -> Device:
    """Return the device that a target string means, or the text of a `#tile.device<...>` describes.

    Raises:
        UserError: there is none, or the target has no device.
    """
    if target.startswith("#tile.device<"):
        return from_attribute(ir.Attribute.parse(target, context))
    if registry.find(target.partition(":")[0]) is None:
        return devices.get(target)  # a description's name or file
    device = registry.parse_target(target).device
    if device is None:
        raise UserError(f"target '{target}' has no device: no pass decides anything for it")
    return device
