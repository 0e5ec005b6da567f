# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes for a CPU, from the options: its pipeline, with what a precision or an accuracy puts before the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.passes.pipeline import PassSpec, Pipeline
from tilewright.pipelines import cpu

if TYPE_CHECKING:
    from tilewright.core.options import CompileOptions
    from tilewright.devices import Device

#: The tiles that `tile-winograd` may take.
_TILES = {"winograd": (2,), "winograd4": (2, 4)}


def pipeline(device: Device, options: CompileOptions) -> Pipeline:
    """Return the phases for a CPU.

    Raises:
        UserError: the description lacks a level or unit that a tile is sized for.
    """
    first: list[PassSpec] = []
    if options.precision != "f32":
        ranges = {"ranges": options.ranges} if options.ranges else {}
        first.append(PassSpec("tile-narrow-products", f"precision {options.precision} was asked for", ranges))
    if options.accuracy in _TILES:
        first.append(
            PassSpec("tile-winograd", f"accuracy {options.accuracy} was asked for", _winograd(device, options))
        )
    whole = cpu.pipeline(device, options.choices)
    phases = [replace(p, passes=(*first, *p.passes)) if p.name == "plan" else p for p in whole.phases]
    return replace(whole, phases=tuple(phases))


def _winograd(device: Device, options: CompileOptions) -> dict[str, Any]:
    chosen: dict[str, Any] = {"tiles": _TILES[options.accuracy], "peak": device.units.peak_of("f32") / 2e9}
    return chosen | {name: value for name, value in cpu.levels(device).items() if name != "l3-bytes"}
