# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The machine of a simulation: a description from `devices`, and which overheads it has."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from tilewright.core.errors import UserError
from tilewright.devices.device import Device
from tilewright.devices.files import described, file_names
from tilewright.devices.files import load as load_file
from tilewright.devices.mesh import Mesh, Overheads, check_fields
from tilewright.sim.coremesh.program import Buffer, Cost

#: ``ideal``: what the hardware allows; ``calibrated``: with the overheads that were found by measurement.
Preset = Literal["ideal", "calibrated"]
PRESETS = ("ideal", "calibrated")


@dataclass(frozen=True)
class Machine:
    """A grid of cores as the simulator takes it.

    Attributes:
        name: of the description.
        preset: of `PRESETS`.
        clock: hertz.
        sram_bytes: of one core.
        mesh: the grid.
        overheads: of the preset.
    """

    name: str
    preset: str
    clock: float
    sram_bytes: int
    mesh: Mesh
    overheads: Overheads

    def macs_per_cycle(self, bits: int) -> int:
        """Return how many multiply-adds of numbers of `bits` bits a core does in a cycle; of those next in width.

        Of two types of one width the faster counts; of numbers wider than all types, the widest type.
        """
        widths = [(int("".join(c for c in dtype if c.isdigit())), rate) for dtype, rate in self.mesh.simd]
        wide = [width for width, _ in widths if width >= bits]
        nearest = min(wide) if wide else max(width for width, _ in widths)
        return max(rate for width, rate in widths if width == nearest)

    @property
    def double_cycles(self) -> float:
        """Cycles that an operation on f64 takes in software; 0 where cores have a unit."""
        return 0.0 if any(dtype == "f64" for dtype, _ in self.mesh.simd) else self.mesh.soft_f64_cycles

    def combining_cycles(self, buffer: Buffer) -> float:
        """Cycles that a core combines a message of f64 with a buffer for, where that is software; else 0."""
        return math.prod(buffer.shape) * self.double_cycles if buffer.dtype == np.float64 else 0.0

    def kernel_cycles(self, cost: Cost) -> float:
        """Return the cycles of a kernel whose operands are at hand: vector calls, multiply-adds and other results.

        What was measured of a multiply-add (of f16) cannot be less than what the vector unit takes (of wider numbers).
        Operations on f64 in software come on top of what moves and starts them.
        """
        over, lanes = self.overheads, self.macs_per_cycle(cost.dtype_bits)
        macs = max(cost.macs * over.per_mac, math.ceil(cost.macs / lanes))
        calls = cost.vector_calls * over.vector_call + cost.doubles * self.double_cycles
        return macs + math.ceil(cost.elements / lanes) + cost.single + calls

    def message_cycles(self, count: int) -> Fraction:
        """Return the cycles that `count` bytes occupy a link, before the factor of the preset."""
        rates = self.mesh.packet_rates
        if not rates:
            width = Fraction(self.mesh.link_bytes_per_cycle).limit_denominator(1000)
            return Fraction(math.ceil(count / width))
        longest = rates[-1][0]
        whole, rest = divmod(count, longest)
        return whole * _packet_cycles(rates, longest) + (_packet_cycles(rates, rest) if rest else 0)

    def seconds(self, cycles: float) -> float:
        """Return the seconds that cycles take."""
        return cycles / self.clock

    def replace(self, **fields: Any) -> Machine:
        """Return the machine with other fields of its mesh or, by ``clock`` and ``sram_bytes``, its own.

        Raises:
            UserError: there is no such field.
        """
        known = {field.name for field in dataclasses.fields(Mesh)} | {"clock", "sram_bytes"}
        check_fields(fields, known, f"machine '{self.name}'")
        own = {name: fields.pop(name) for name in ("clock", "sram_bytes") if name in fields}
        return dataclasses.replace(self, mesh=dataclasses.replace(self.mesh, **fields), **own)


def _packet_cycles(rates: tuple[tuple[int, float], ...], count: int) -> Fraction:
    """Between the sizes of the table, linear in cycles; below the first, as long as the first: what a packet costs."""
    points = [(size, Fraction(size) / Fraction(rate).limit_denominator(1000)) for size, rate in rates]
    if count <= points[0][0]:
        return points[0][1]
    for (low, first), (high, last) in zip(points, points[1:], strict=False):
        if count <= high:
            return first + (last - first) * Fraction(count - low, high - low)
    raise UserError(f"a packet of {count} bytes is longer than the longest, {points[-1][0]} bytes")


def mesh_names() -> list[str]:
    """Return the names of the meshes that come with Tilewright."""
    return [name for name in file_names() if described(name).mesh]


def machine(which: str | Device, preset: str = "ideal", **fields: Any) -> Machine:
    """Return a machine.

    Args:
        which: a name of `mesh_names`, the path of a ``.toml`` file, or a description.
        preset: of `PRESETS`.
        fields: that differ, see `Machine.replace`.

    Raises:
        UserError: there is no such machine, preset or field, or the description is none of a mesh.
    """
    if preset not in PRESETS:
        raise UserError(f"there is no preset '{preset}': use one of {', '.join(PRESETS)}")
    device = which if isinstance(which, Device) else _find(which)
    if device.mesh is None:
        raise UserError(
            f"'{device.name}' is no mesh of cores but a {device.kind}: use one of {', '.join(mesh_names())}"
        )
    overheads = device.mesh.calibrated if preset == "calibrated" else Overheads()
    made = Machine(device.name, preset, device.units.frequency, device.level("sram").bytes, device.mesh, overheads)
    return made.replace(**fields) if fields else made


def _find(name: str) -> Device:
    if name.endswith(".toml"):
        return load_file(name)
    if name not in file_names():
        raise UserError(f"there is no machine '{name}': use one of {', '.join(mesh_names())} or a .toml file")
    return described(name)
