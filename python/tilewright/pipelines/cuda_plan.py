# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From layer 1 to tile kernels for an NVIDIA GPU: phases normalize, plan and tile.

They share their passes with the CPU (`cpu.py`), but for the tiles (`plan/gpu`): tasks are CTAs, sizes are powers of
two with bounds at ragged edges, and what a task keeps between its nests is in registers or shared memory.
"""

from __future__ import annotations

from tilewright.normalize import passes
from tilewright.passes.pipeline import PassSpec, Phase

TARGET = PassSpec("tile-verify-target", "border: the module says for which GPU", {"kind": "gpu"})

#: What a CPU's pipeline does to scaled operands, and more: of 16 bits, too, a softmax and its products can be one loop
#: over blocks.
_SCALED = (
    PassSpec("tile-float8-products", "float8 that a model dequantizes is multiplied as it is, where units can"),
    PassSpec("tile-fold-roundings", "a maximum of narrow numbers is one of them: nothing to round"),
    PassSpec("tile-sink-scales", "products read keys as they lie; their sums are scaled in registers"),
    PassSpec(
        "tile-scale-results",
        "a softmax before a product divides the fewest numbers; exponentials may be rounded before they are divided",
        {"rounded": True, "always": True},
    ),
)

NORMALIZE = Phase(
    "normalize", [TARGET, *passes(_SCALED)], summary="one form of each operation, static shapes, few reshapes"
)

_ASKED = (
    PassSpec(
        "tile-allow-tf32", "products of f32 run on tensor cores, where precision tf32 was asked for", {"asked": True}
    ),
    PassSpec("tile-narrow-products", "products of the precision that was asked for", {"asked": True}),
    PassSpec("tile-promote-float8", "sums of float8 in f32, though units add them with fewer bits"),
)

_SPARSE = (
    PassSpec("tile-skip-padding", "rows that nobody reads are no work; all that follows sees packed tokens"),
    PassSpec("tile-group-experts", "a mixture of experts is seen as a whole, before its products are"),
    PassSpec("tile-plan-sparsity", "zeros of weights: which products leave them out, by which kernels"),
    PassSpec("tile-apply-sparsity", "these are products with encoded operands"),
    PassSpec("tile-plan-dynamic", "operands that a run fills with zeros, where finding them costs little"),
    PassSpec("tile-lower-sparse", "products with encoded operands are kernels of their own"),
    PassSpec("tile-fold-transposes", "what these read and write transposed, their neighbours write and read so"),
    PassSpec("tile-sink-reshapes", "batches are taken apart behind what follows these kernels element by element"),
    PassSpec("tile-plan-epilogues", "what follows these kernels element by element, which fusion cannot reach into"),
    PassSpec("tile-form-epilogues", "is computed in their tasks; what is left is planned for what they store"),
)

PLAN = Phase(
    "plan",
    [
        TARGET,
        *_SPARSE,
        *_ASKED,
        PassSpec("tile-int8-matmul", "quantized bytes are multiplied as bytes"),
        PassSpec("tile-fold-padding", "windows read over the border of an image: no memory holds it"),
        PassSpec("tile-narrow-operands", "products read f16 and bf16 as they lie, in half the bytes; units widen them"),
        PassSpec("tile-im2col-rows", "rows of a window are rows of memory, where channels are few"),
        PassSpec("tile-follow-groups", "what follows a convolution in groups meets it in registers"),
        PassSpec("tile-fuse-dequantization", "a product of few rows waits for its weights: fewer bytes"),
        PassSpec("tile-expand-decodes", "who multiplies codes is decided: what decodes them is arithmetic"),
        PassSpec("tile-transpose-operands", "no unit transposes bytes and tf32; vectors ask for an order, too"),
        PassSpec("tile-inline-widenings", "a launch for a few hundred numbers; readers widen them in registers"),
        PassSpec("tile-materialize-fills", "padding is work that a kernel must do; see it before fusing"),
        PassSpec("tile-bind-scalars", "sizes that a run brings are memory to kernels, as all that they read"),
        PassSpec("tile-mark-host-fallback", "what kernels cannot take stays on the host, with the reason"),
        PassSpec("tile-approximate-exponentials", "operands of 16 bits keep less than the unit has"),
        PassSpec("tile-split-k", "few tasks leave a GPU idle; each part is a task"),
        PassSpec("tile-split-kv", "so do few queries with many keys; parts of the keys are tasks"),
        PassSpec("tile-plan-fusion", "which operations meet in registers and in a CTA"),
        PassSpec("tile-plan-gpu-tiles", "tiles follow from the nests"),
        PassSpec("tile-hoist-init", "what follows from weights alone runs at compile time; groups must not hold it"),
        PassSpec("tile-form-groups", "the decisions become regions", {"level": "shared"}),
        PassSpec("tile-apply-online", "loops over blocks stand in the groups of their tasks"),
        PassSpec("tile-mark-levels", "where operations meet follows from the groups; now it can be read"),
        PassSpec("tile-verify-plan", "border: every operation has a group, every nest a root with its tile"),
    ],
    summary="decide what meets where, with tiles for CTAs and their shared memory",
)
"""Deciding passes (Python) leave attributes; rewriting ones (C++) carry them out."""

_KERNEL = "tile.kernel"

TILE = Phase(
    "tile",
    [
        TARGET,
        PassSpec("tile-groups-to-kernels", "a group and its attributes become tasks, loops and tiles"),
        PassSpec("canonicalize", "folds the index arithmetic of loops that run once"),
        PassSpec("loop-invariant-code-motion", "bounds of tiles leave the loops: they can be compared", on=_KERNEL),
        PassSpec("cse", "addresses, bounds and loads that two operations share", on=_KERNEL),
        PassSpec("tile-buffers-to-registers", "rows that fit need no shared memory", on=_KERNEL),
        PassSpec("canonicalize", "what was stored for no one goes"),
        PassSpec("cse", "what buffers kept apart", on=_KERNEL),
        PassSpec("tile-fold-exponents", "scores of attention: a multiply-add and a power each", on=_KERNEL),
        PassSpec("tile-compute-ramps", "positions that a causal mask compares: no table of them is loaded"),
        PassSpec("canonicalize", "scales and roundings that are gone"),
        PassSpec("tile-stream-k", "the last waves of a product are work for all blocks"),
        PassSpec("tile-dedupe-kernels", "equal layers share a kernel: it is compiled once"),
        PassSpec("symbol-dce", "weights that only @init reads are no longer needed by @main"),
        PassSpec("tile-verify-kernels", "border: no linalg or tensor operation in a kernel"),
    ],
    summary="make a kernel and a launch of each outermost group",
)

PHASES: tuple[Phase, Phase, Phase] = (NORMALIZE, PLAN, TILE)
"""Phases normalize, plan and tile, for any NVIDIA GPU."""
