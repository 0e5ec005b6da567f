# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a description says of a grid of cores with private memories: its network, its memory ports, its overheads.

The properties are those of the PLMR model (WaferLLM, OSDI 2025, section 3): many cores, latency by distance, little
memory, few routes.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import UserError

#: How cores are wired: a grid; a grid whose rows and columns are closed to rings; all to all at one distance.
TOPOLOGIES = ("mesh", "torus", "exchange")
#: Who finds the way of data: static routes of one color each, as on WSE; or headers of packets, which get around what
#: is broken.
ROUTING = ("static", "packets")


@dataclass(frozen=True)
class Overheads:
    """Costs of software that an ideal machine does not have; all in cycles but the factor.

    Attributes:
        round: at the end of each round of a compute-shift loop.
        collective: of each collective.
        vector_call: of each vector instruction.
        per_mac: of a multiply-add, at least; 0: as many at once as the vector unit holds, which is the least always.
        communication: times that messages take what the links allow.
    """

    round: float = 0.0
    collective: float = 0.0
    vector_call: float = 0.0
    per_mac: float = 0.0
    communication: float = 1.0


@dataclass(frozen=True)
class Mesh:
    """A grid of cores.

    Attributes:
        width, height: cores that a program may occupy.
        topology, routing: of `TOPOLOGIES`, `ROUTING`.
        alpha_cycles: per hop.
        ramp_cycles: between a core and its router.
        stage_cycles: of a software stage beyond both ramps: what one instruction takes from a wavelet to the next.
        base_cycles: that each message takes besides.
        link_bytes_per_cycle: of one link in one direction: a wavelet, a flit.
        packet_rates: (bytes of a packet, bytes per cycle) pairs where small ones are slow; the largest is the longest
            packet. Empty: any message at the rate of the link.
        colors, reserved_colors: identifiers of routes that a router knows, and those that a program cannot have; 0: no
            such limit.
        queue_depth: entries per color at a router.
        switch_positions: routes of one color that a router switches between.
        sram_banks, bank_bytes: of a core's memory: banks and the width of one.
        read_bytes_per_cycle, write_bytes_per_cycle: of a core's memory.
        code_bytes: of a core's memory that code, stacks and buffers of the system take.
        offchip_bytes_per_cycle: of the whole machine from and to what lies behind its edge; 0: nothing lies there.
        simd: (dtype, multiply-adds per cycle of one core) pairs.
        soft_f64_cycles: of one operation on f64 in software, where `simd` does not name it: an estimate, as long as
            integer routines for cores of 32 bits take.
        watts: nominal power of the whole machine; 0: not known.
        dead_cores: (y, x) pairs.
        dead_links: (y, x, direction) of the core that the link leaves, ``east``, ``west``, ``south``, ``north``.
        calibrated: overheads found by measurement.
    """

    width: int
    height: int
    topology: str = "mesh"
    routing: str = "static"
    alpha_cycles: int = 1
    ramp_cycles: int = 2
    stage_cycles: int = 1
    base_cycles: int = 0
    link_bytes_per_cycle: float = 4.0
    packet_rates: tuple[tuple[int, float], ...] = ()
    colors: int = 24
    reserved_colors: int = 3
    queue_depth: int = 2
    switch_positions: int = 4
    sram_banks: int = 8
    bank_bytes: int = 4
    read_bytes_per_cycle: int = 16
    write_bytes_per_cycle: int = 8
    code_bytes: int = 0
    offchip_bytes_per_cycle: float = 0.0
    simd: tuple[tuple[str, int], ...] = (("f32", 1),)
    soft_f64_cycles: float = 64.0
    watts: float = 0.0
    dead_cores: tuple[tuple[int, int], ...] = ()
    dead_links: tuple[tuple[int, int, str], ...] = ()
    calibrated: Overheads = Overheads()

    def __post_init__(self) -> None:
        """Check the words and the sizes."""
        for field, allowed in (("topology", TOPOLOGIES), ("routing", ROUTING)):
            if getattr(self, field) not in allowed:
                raise UserError(f"mesh: {field} is '{getattr(self, field)}': use one of {', '.join(allowed)}")
        for field in ("width", "height", "link_bytes_per_cycle", "queue_depth"):
            if getattr(self, field) <= 0:
                raise UserError(f"mesh: {field} must be more than 0, not {getattr(self, field)}")
        for y, x, *_ in (*self.dead_cores, *self.dead_links):
            if not (0 <= y < self.height and 0 <= x < self.width):
                raise UserError(f"mesh: a defect at ({y}, {x}) is outside of {self.height} x {self.width} cores")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, as in the TOML files."""
        values = dataclasses.asdict(self)
        values["simd"] = dict(self.simd)
        for field in ("packet_rates", "dead_cores", "dead_links"):
            values[field] = [list(row) for row in values[field]]
        return {name: value for name, value in values.items() if value != []}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Mesh:
        """Return the mesh of plain values.

        Raises:
            UserError: a field is missing or unknown.
        """
        known = {field.name for field in dataclasses.fields(Mesh)}
        rest = dict(values)
        check_fields(rest, known, "mesh")
        for needed in ("width", "height"):
            if needed not in rest:
                raise UserError(f"mesh: {needed} is missing")
        calibrated = dict(rest.pop("calibrated", {}))
        check_fields(calibrated, {field.name for field in dataclasses.fields(Overheads)}, "mesh.calibrated")
        simd = tuple(sorted(rest.pop("simd", {"f32": 1}).items()))
        rows = {
            name: tuple(tuple(row) for row in rest.pop(name, ()))
            for name in ("packet_rates", "dead_cores", "dead_links")
        }
        return Mesh(simd=simd, calibrated=Overheads(**calibrated), **rows, **rest)


def check_fields(values: Mapping[str, Any], known: set[str], where: str) -> None:
    """Check that all fields are known.

    Raises:
        UserError: one is not; the nearest known one is named.
    """
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the fields are {', '.join(sorted(known))}"
            raise UserError(f"{where}: there is no field '{name}': {hint}")
