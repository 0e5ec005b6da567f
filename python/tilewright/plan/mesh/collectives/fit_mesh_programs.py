# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fit-mesh-programs`: addresses and colors of programs for a mesh of cores, and all checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices.device import Device
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, option, register


def _mesh(device: Device) -> str | None:
    return device.name if device.mesh is not None else None


@register
@dataclass(frozen=True)
class FitMeshPrograms(Pass):
    """Give buffers of mesh programs addresses and routes colors, and check all that is known before a run.

    Addresses and colors are decisions, as attributes: those that were there are made anew. A program that does not fit
    a core's memory or a router's colors, races, waits for itself, or receives what nobody sends is an error at its
    instruction; a remark gives what it takes of the machine (WaferLLM's PLMR), and warns of values that nobody reads.

    Before:
    ```mlir
    func.func @f(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
      %r = coremesh.program "shift" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
        coremesh.buffer @A : tensor<2x3xf32> slots 2
        coremesh.route @left along x ring from (p + 1) mod 3
        coremesh.place %in in @A block(y, x) ring : tensor<4x9xf32>
        %s = coremesh.send @A on @left
        %t = coremesh.recv @A[1] from @left
        coremesh.wait round %s, %t
        %out = coremesh.collect @A[1] block(y, (x + 1) mod 3) ring : tensor<4x9xf32>
        coremesh.yield %out : tensor<4x9xf32>
      }
      return %r : tensor<4x9xf32>
    }
    ```
    After:
    ```mlir
    coremesh.buffer @A : tensor<2x3xf32> slots 2 address 5120
    coremesh.route @left along x ring from (p + 1) mod 3 colors [0, 1, 2] by ...
    ```
    """

    name: ClassVar[str] = "tile-fit-mesh-programs"
    dialects: ClassVar[tuple[str, ...]] = ("coremesh",)
    machine: str = device_option("wse2", _mesh, "the mesh, by name")
    preset: str = option("ideal", "of the machine: ideal or calibrated")

    def run(self, op: ir.Operation) -> None:
        """Visit all programs."""
        from tilewright.plan.mesh.collectives.fit_mesh_programs_rewrite import rewrite

        rewrite(self, op)
