# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From layer 1 to machine code for a CPU: the phases, each a list of passes with the reason why it stands there."""

from __future__ import annotations

from tilewright.devices import Device, remember
from tilewright.devices.x86 import dot_products, matrix_units
from tilewright.normalize import PASSES as NORMALIZE
from tilewright.passes.pipeline import PassSpec, Phase, Pipeline
from tilewright.pipelines.cpu_lower import SCHEDULE, lower, programs

_LEVEL = "l2"


def levels(device: Device) -> dict[str, object]:
    """Capacities, and bytes per nanosecond of one core, of what tiles move through."""
    caches = [level for level in device.levels if level.kind == "cache"]
    inner, outer, memory = device.level(_LEVEL), caches[-1], device.levels[-1]
    rates = {"l2-rate": inner, "l3-rate": outer, "memory-rate": memory}
    known = {name: level.bandwidth / 1e9 for name, level in rates.items() if level.bandwidth}
    return {"l2-bytes": inner.bytes, "l3-bytes": outer.bytes, **known}


def _nearest(device: Device) -> dict[str, object]:
    """The L1 cache, where the description has one: bytes, and lines of a set."""
    first = next(level for level in device.levels if level.kind == "cache")
    if first.name == _LEVEL:
        return {}
    return {"l1-bytes": first.bytes, "l1-ways": device.limit("l1_ways", 8)}


def dots(device: Device) -> dict[str, tuple[str, ...]]:
    """The option of passes that says which products in groups the machine has instructions for."""
    found = dot_products(device.features)
    return {"dots": found} if found else {}


def _narrow(device: Device) -> list[PassSpec]:
    """Which factors products read as they are, before anything is planned for them."""
    known = sorted({*dot_products(device.features), *matrix_units(device.features)})
    wide = PassSpec(
        "tile-widen-operands",
        "small floats that are multiplied often are widened once; what makes them can do it",
        options={"keep": tuple(known)} if known else {},
    )
    told = PassSpec(
        "tile-mark-widened",
        "a user should know where small numbers bring no speed; later, factors are wide",
        options={"lanes": device.lanes(32), **dots(device), **_matrix(device)},
    )
    small = PassSpec(
        "tile-weight-only-quantization",
        "what bytes multiply as bytes is known; other small weights are widened in registers where rows are few",
        options=_widening(device),
    )
    if "i8" not in known:
        return [told, wide, small]
    found = PassSpec("tile-int8-matmul", "quantized bytes are multiplied as bytes", options=_matrix(device))
    return [found, told, wide, small]


def _widening(device: Device) -> dict[str, object]:
    """How fast a core multiplies vectors, and reads what they multiply."""
    lanes, memory = device.lanes(32), device.levels[-1].bandwidth
    rates = {"rate": dict(device.units.peak).get("f32", 0.0) / (2e9 * lanes), "memory-rate": (memory or 0.0) / 1e9}
    return {"lanes": lanes, **{name: rate for name, rate in rates.items() if rate}}


def _matrix(device: Device) -> dict[str, tuple[str, ...]]:
    """The option of passes that says what a matrix unit multiplies."""
    found = matrix_units(device.features)
    return {"matrix": found} if found else {}


def plan(device: Device, choices: tuple[str, ...] = ()) -> Phase:
    """Deciding passes (Python) leave attributes; rewriting ones (C++) carry them out."""
    machine = {
        "lanes": device.lanes(32),
        "registers": device.units.registers,
        **_nearest(device),
        "l2-bytes": device.level(_LEVEL).bytes,
        **{name: value for name, value in levels(device).items() if name in ("l3-bytes", "l3-rate", "memory-rate")},
        "device": remember(device),
        "cores": device.units.count,
        **dots(device),
        **_matrix(device),
    }
    if choices:
        machine["choices"] = choices
    return Phase(
        "plan",
        [
            *_narrow(device),
            PassSpec(
                "tile-split-micro-batches",
                "images that outgrow the caches together run in rounds; all that follows sees the size of one",
                options={"l3-bytes": levels(device)["l3-bytes"]},
            ),
            PassSpec("tile-materialize-fills", "padding is work that a kernel must do; see it before fusing"),
            PassSpec("tile-mark-host-fallback", "what kernels cannot take stays on the host, with the reason"),
            PassSpec("tile-plan-orders", "lanes of intermediate tensors where the least is read against its order"),
            PassSpec("tile-apply-orders", "fusion and tiles follow from the maps in that order"),
            PassSpec("tile-plan-fusion", "which operations meet in registers and in a task", options=levels(device)),
            PassSpec("tile-plan-tiles", "tiles follow from the nests; layouts from the tiles", options=machine),
            PassSpec(
                "tile-plan-online",
                "reductions of long rows in one loop: who shares a nest is known, masks are still as they were given",
                options={"l2-bytes": device.level(_LEVEL).bytes},
            ),
            PassSpec("tile-apply-layouts", "packing of weights appears as operations on weights"),
            PassSpec(
                "tile-hoist-init", "what follows from weights alone runs at compile time; groups must not hold it"
            ),
            PassSpec("tile-form-groups", "the decisions become regions", options={"level": _LEVEL}),
            PassSpec("tile-apply-online", "loops over blocks stand in the groups of their tasks"),
            PassSpec(
                "tile-mark-levels",
                "where operations meet follows from the groups; now it can be read",
                options={"l1-bytes": device.levels[0].bytes} if device.levels[0].kind == "cache" else {},
            ),
            PassSpec("tile-verify-plan", "border: every operation has a group, every nest a root with its tile"),
        ],
        summary="decide what meets at which level, with which tiles and layouts",
    )


TILE = Phase(
    "tile",
    [
        PassSpec("tile-groups-to-kernels", "a group and its attributes become tasks, loops and tiles"),
        PassSpec("canonicalize", "folds the index arithmetic of loops that run once"),
        PassSpec("cse", "addresses and loads that two operations share", on="tile.kernel"),
        PassSpec("tile-dedupe-kernels", "equal layers share a kernel: it is compiled once"),
        PassSpec("symbol-dce", "weights that only @init reads are no longer needed by @main"),
        PassSpec("tile-verify-kernels", "border: no linalg or tensor operation in a kernel"),
    ],
    summary="make a kernel and a launch of each outermost group",
)


def pipeline(device: Device, choices: tuple[str, ...] = ()) -> Pipeline:
    """The phases for a CPU with the given description.

    Args:
        device: the CPU.
        choices: KERNEL:NUMBER texts, see `tile-plan-tiles`: tiles that were measured to be faster than the first.

    Raises:
        UserError: the description lacks a level or unit that a tile is sized for.
    """
    return Pipeline(
        "cpu",
        [
            Phase("normalize", NORMALIZE, summary="one form of each operation, static shapes, few reshapes"),
            plan(device, choices),
            TILE,
            Phase(
                "schedule",
                [*SCHEDULE, *programs(device.units.count)],
                summary="order, buffers and one arena for the host function",
            ),
            Phase(
                "lower",
                lower(device.units.vector_bits, dots(device)),
                summary="tiles to vectors, everything to the llvm dialect",
            ),
        ],
        summary="layer 1 to the llvm dialect, for a CPU",
    )
