# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From layer 1 to tile kernels for an NVIDIA GPU: phases normalize, plan and tile.

They share their passes with the CPU (`cpu.py`), but for the tiles (`plan/gpu`): tasks are CTAs, sizes are powers of
two with bounds at ragged edges, and what a task keeps between its nests is in registers or shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.devices import Device, remember
from tilewright.devices.nvidia import capability
from tilewright.normalize import PASSES as NORMALIZE
from tilewright.passes.pipeline import PassSpec, Phase, Pipeline

_LEVEL = "shared"
#: Where matrix units multiply float8: compute capability 9.0 on.
_FLOAT8 = PassSpec("tile-float8-products", "float8 that a model dequantizes is multiplied as it is")
#: Part of the peak that products reach which share a task: they have neither rings nor warpgroups. One that takes
#: longer than the launch that it saves is better alone.
_SHARED_TASK = 0.25
#: In the place of `tile-scale-results`: of 16 bits, too, a softmax and its products can be one loop over blocks.
_SOFTMAX = (
    PassSpec("tile-fold-roundings", "a maximum of narrow numbers is one of them: nothing to round"),
    PassSpec("tile-sink-scales", "products read keys as they lie; their sums are scaled in registers"),
    PassSpec(
        "tile-scale-results",
        "a softmax before a product divides the fewest numbers; exponentials may be rounded before they are divided",
        {"rounded": True, "always": True},
    ),
)


def normalize(device: Device) -> Phase:
    """One form of each operation, as for any machine."""
    passes: list[PassSpec] = []
    for spec in NORMALIZE:
        if spec.name == "tile-scale-results":
            passes += (_FLOAT8, *_SOFTMAX) if capability(device) >= 90 else _SOFTMAX
        else:
            passes.append(spec)
    return Phase("normalize", passes, summary="one form of each operation, static shapes, few reshapes")


def levels(device: Device) -> dict[str, object]:
    """Capacities, and bytes per nanosecond of one multiprocessor, of what tiles move through."""
    shared, cache, memory = device.level(_LEVEL), device.level("l2"), device.level("memory")
    peak = dict(device.units.peak).get("f16", device.units.peak_of("f32"))
    return {
        "l2-bytes": shared.bytes,
        "l3-bytes": cache.bytes,
        "l2-rate": shared.bandwidth / 1e9,
        "l3-rate": cache.bandwidth / cache.shared_by / 1e9,
        "memory-rate": memory.bandwidth / memory.shared_by / 1e9,
        "blocks": (64, 32, 16),
        "steps": 64,
        "chains": True,
        "tasks": device.units.count // 2,
        "large": int(peak * device.units.count * device.rate("launch", 2.5e-6) * _SHARED_TASK / 2),
    }


def plan(device: Device) -> Phase:
    """Deciding passes (Python) leave attributes; rewriting ones (C++) carry them out.

    Raises:
        UserError: the description lacks a level, or is not that of an NVIDIA GPU.
    """
    shared = device.level(_LEVEL).bytes
    machine = {"device": remember(device)}
    fills = {"whole-below": int(device.level("memory").bandwidth * device.rate("launch", 2.5e-6))}
    return Phase(
        "plan",
        [
            PassSpec("tile-int8-matmul", "quantized bytes are multiplied as bytes", {"any-signs": True}),
            PassSpec("tile-fold-padding", "windows read over the border of an image: no memory holds it"),
            PassSpec(
                "tile-narrow-operands", "products read f16 and bf16 as they lie, in half the bytes; units widen them"
            ),
            PassSpec("tile-im2col-rows", "rows of a window are rows of memory, where channels are few", machine),
            PassSpec("tile-follow-groups", "what follows a convolution in groups meets it in registers"),
            PassSpec("tile-fuse-dequantization", "a product of few rows waits for its weights: fewer bytes", machine),
            PassSpec("tile-transpose-operands", "no unit turns bytes and tf32; vectors ask for an order, too", machine),
            PassSpec("tile-inline-widenings", "a launch for a few hundred numbers; readers widen them in registers"),
            PassSpec("tile-materialize-fills", "padding is work that a kernel must do; see it before fusing", fills),
            PassSpec("tile-mark-host-fallback", "what kernels cannot take stays on the host, with the reason"),
            PassSpec("tile-split-k", "few tasks leave a GPU idle; each part is a task", machine),
            PassSpec("tile-split-kv", "so do few queries with many keys; parts of the keys are tasks", machine),
            PassSpec("tile-plan-fusion", "which operations meet in registers and in a CTA", levels(device)),
            PassSpec("tile-plan-gpu-tiles", "tiles follow from the nests", machine),
            PassSpec(
                "tile-hoist-init", "what follows from weights alone runs at compile time; groups must not hold it"
            ),
            PassSpec("tile-form-groups", "the decisions become regions", {"level": _LEVEL}),
            PassSpec("tile-apply-online", "loops over blocks stand in the groups of their tasks"),
            PassSpec("tile-mark-levels", "where operations meet follows from the groups; now it can be read"),
            PassSpec("tile-verify-plan", "border: every operation has a group, every nest a root with its tile"),
        ],
        summary=f"decide what meets where, with tiles for CTAs and {shared // 1024} KiB of shared memory",
    )


def tile(device: Device) -> Phase:
    """A kernel and a launch for each outermost group."""
    room = {"buffer-bytes": device.level(_LEVEL).bytes // 2}
    kernel = "tile.kernel"
    return Phase(
        "tile",
        [
            PassSpec("tile-groups-to-kernels", "a group and its attributes become tasks, loops and tiles", room),
            PassSpec("canonicalize", "folds the index arithmetic of loops that run once"),
            PassSpec("loop-invariant-code-motion", "bounds of tiles leave the loops: they can be compared", on=kernel),
            PassSpec("cse", "addresses, bounds and loads that two operations share", on=kernel),
            PassSpec("tile-buffers-to-registers", "rows that fit need no shared memory", on=kernel),
            PassSpec("canonicalize", "what was stored for no one goes"),
            PassSpec("cse", "what buffers kept apart", on=kernel),
            PassSpec("tile-stream-k", "the last waves of a product are work for all blocks"),
            PassSpec("tile-dedupe-kernels", "equal layers share a kernel: it is compiled once"),
            PassSpec("symbol-dce", "weights that only @init reads are no longer needed by @main"),
            PassSpec("tile-verify-kernels", "border: no linalg or tensor operation in a kernel"),
        ],
        summary="make a kernel and a launch of each outermost group",
    )


def phases(device: Device) -> tuple[Phase, Phase, Phase]:
    """Phases normalize, plan and tile for a GPU.

    Raises:
        UserError: the description lacks a level, or is not that of an NVIDIA GPU.
    """
    return normalize(device), plan(device), tile(device)


def with_choices(pipeline: Pipeline, choices: Sequence[str]) -> Pipeline:
    """The same pipeline with candidates of tiles for some kernels, beside those that it names already.

    Args:
        pipeline: one with `tile-plan-gpu-tiles`; others stay as they are.
        choices: KERNEL:NUMBER texts.
    """

    def chosen(spec: PassSpec) -> PassSpec:
        if spec.name != "tile-plan-gpu-tiles":
            return spec
        options = dict(spec.options)
        known = dict(text.rpartition(":")[::2] for text in (*options.get("choices", ()), *choices))  # type: ignore
        options["choices"] = tuple(f"{name}:{number}" for name, number in known.items())
        return replace(spec, options=options)

    phases = [replace(phase, passes=tuple(map(chosen, phase.passes))) for phase in pipeline.phases]
    return replace(pipeline, phases=tuple(phases))
