# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-verify-target`: the border before a phase, whose passes follow from the module's device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import UserError
from tilewright.ir.target_info import device_of, options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register

_NOUNS = {"cpu": "a CPU", "gpu": "a GPU"}


@register
@dataclass(frozen=True)
class VerifyTarget(Pass):
    """Check that a module names the device that it is compiled for, one of the right kind (`tile.device`).

    Without a device it fails with ``this phase needs to know the device, and the module names none``; for a GPU in a
    pipeline of CPUs with ``this phase makes code for a CPU, and the module's device 'nvidia-h100' is a GPU``.

    Before:
    ```mlir
    module attributes {tile.device = #tile.device<name = "small", kind = "cpu", levels = [
        {name = "l2", kind = "cache", bytes = 1048576 : i64}], units = {count = 1 : i64, frequency = 1.0e9 : f64,
        registers = 16 : i64, vector_bits = 256 : i64}>} {
    }
    ```
    After: unchanged
    """

    name: ClassVar[str] = "tile-verify-target"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    kind: str = option("", "cpu or gpu; empty: any")

    def run(self, op: ir.Operation) -> None:
        """Look at the module."""
        device = device_of(op, "this phase")
        options_of(op)  # malformed ones are an error
        if self.kind and device.kind != self.kind:
            wanted, found = (_NOUNS.get(kind, f"a {kind}") for kind in (self.kind, device.kind))
            raise UserError(
                f"this phase makes code for {wanted}, and the module's device '{device.name}' is {found}: run the "
                "phases of its kind (--tile-cpu-..., --tile-cuda-...), or tile-set-target with another target"
            )
