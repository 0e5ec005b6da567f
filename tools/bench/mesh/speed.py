# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the simulators take, in processor seconds of the host, and their memory, beside limits set for them."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.mesh.layers import HALF, decode
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer, prefill_layer
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh import functional, wavelets
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program

_TURNS = 3
#: Of what takes hundredths of a second.
_SHORT = 40
_SIDE = 64


def _least(run: Callable[[], object], turns: int = _TURNS) -> float:
    """Of several turns: other work on the machine only adds."""
    taken = []
    for _ in range(turns):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return min(taken)


def speed() -> list[dict[str, Any]]:
    """Rows of seconds and limits; last the most memory that this process ever held, other tables' included."""
    rows = [*_whole_machines(), *_every_core()]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB
    return [*rows, {"what": "memory of the process, at its fullest", "gibibytes": round(most, 2), "limit": 2}]


def _whole_machines() -> list[dict[str, Any]]:
    """Tier T1: a product, in full and by its period; a layer of a decoder for one token."""
    wafer = machine("wse2", "calibrated")
    product = shifted_product(Product(12960, 12960, 12960, 720, 720, HALF))
    rows = [
        _row(f"T1, MeshGEMM of 720 x 720 cores, {how}", _least(run), limit)
        for how, limit, run in (
            ("in full", 2.0, lambda: time_program(product, wafer, period=False, loads=False)),
            ("by its period", 0.1, lambda: time_program(product, wafer, loads=False)),
        )
    ]
    for side in (360, 420, 660):
        layer = decode("8B", side, 4096)
        taken = _least(lambda layer=layer: time_program(layer, wafer, loads=False), _SHORT)
        rows.append(_row(f"T1, decode layer of 8B, {side} x {side}", taken, 0.05))
    return rows


def _every_core() -> list[dict[str, Any]]:
    """Tiers F and T2 on 64 x 64 cores."""
    layer = prefill_layer(PrefillLayer(Decoder(256, 512, 4, 2), _SIDE, _SIDE))
    sizes = {buffer.name: buffer.dtype for buffer in layer.buffers}
    given = {place.name: np.ones(place.shape, sizes[place.slot.buffer]) for place in layer.inputs}
    rows = [_row("F, two layers of a decoder", 2 * _least(lambda: functional.run(layer, given), 1), 60)]
    product = shifted_product(Product(8 * _SIDE, 8 * _SIDE, 8 * _SIDE, _SIDE, _SIDE, np.dtype("float32")))
    found = []
    taken = _least(lambda: found.append(wavelets.simulate(product, machine("wse2"))), 1)
    cycles = found[0].cycles
    scaled = taken * 1e5 / cycles
    return [*rows, _row("T2, 1e5 cycles of a product", scaled, 60, cycles=cycles, measured=round(taken, 2))]


def _row(what: str, seconds: float, limit: float, **more: Any) -> dict[str, Any]:
    return {"what": what, "seconds": float(f"{seconds:.3g}"), "limit": limit, **more}
