# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From layer 1 to machine code for a CPU: the phases, each a list of passes with the reason why it stands there.

They are the same for every CPU and all options: passes read the device and the options on the module
(`ir/target_info.py`), and do nothing where these ask for nothing.
"""

from __future__ import annotations

from tilewright.normalize import PASSES as NORMALIZE
from tilewright.passes.pipeline import PassSpec, Phase, Pipeline
from tilewright.pipelines.cpu_lower import LOWER, PROGRAMS, SCHEDULE

_TARGET = PassSpec("tile-verify-target", "border: the module says for which CPU", {"kind": "cpu"})

_ASKED: tuple[PassSpec, ...] = (
    PassSpec("tile-narrow-products", "products of the precision that was asked for", {"asked": True}),
    PassSpec("tile-winograd", "convolutions that multiply less, where the accuracy allows it", {"asked": True}),
)

_NARROW: tuple[PassSpec, ...] = (
    PassSpec("tile-int8-matmul", "quantized bytes are multiplied as bytes, where there are instructions for it"),
    PassSpec("tile-mark-widened", "a user should know where small numbers bring no speed; later, operands are wide"),
    PassSpec("tile-widen-operands", "small floats that are multiplied often are widened once; their makers can do it"),
    PassSpec(
        "tile-weight-only-quantization",
        "what bytes multiply as bytes is known; other small weights are widened in registers where rows are few",
    ),
    PassSpec("tile-expand-decodes", "who multiplies codes is decided: what decodes them is arithmetic"),
)
"""Which operands products read as they are, before anything is planned for them."""

_SPARSE: tuple[PassSpec, ...] = (
    PassSpec("tile-skip-padding", "rows that nobody reads are no work; all that follows sees packed tokens"),
    PassSpec("tile-group-experts", "a mixture of experts is seen as a whole, before its products are"),
    PassSpec("tile-plan-sparsity", "zeros of weights: which products leave them out, by which kernels"),
    PassSpec("tile-apply-sparsity", "these are products with encoded operands"),
    PassSpec("tile-plan-dynamic", "operands that a run fills with zeros, where finding them costs little"),
    PassSpec(
        "tile-lower-sparse", "products with encoded operands are kernels of their own, which others are planned around"
    ),
    PassSpec("tile-fold-transposes", "what these read and write transposed, their neighbours write and read so"),
    PassSpec("tile-sink-reshapes", "batches are taken apart behind what follows these kernels element by element"),
    PassSpec("tile-plan-epilogues", "what follows these kernels element by element, which fusion cannot reach into"),
    PassSpec("tile-form-epilogues", "is computed in their tasks; what is left is planned for what they store"),
)
"""What is known of zeros, before products are planned as dense ones."""

PLAN = Phase(
    "plan",
    [
        _TARGET,
        *_SPARSE,
        *_ASKED,
        *_NARROW,
        PassSpec(
            "tile-split-micro-batches",
            "images that outgrow the caches together run in micro-batches; all that follows sees the size of one",
        ),
        PassSpec("tile-materialize-fills", "padding is work that a kernel must do; see it before fusing"),
        PassSpec("tile-bind-scalars", "sizes that a run brings are memory to kernels, as all that they read"),
        PassSpec("tile-mark-host-fallback", "what kernels cannot take stays on the host, with the reason"),
        PassSpec("tile-plan-orders", "lanes of intermediate tensors where the least is read against its order"),
        PassSpec("tile-apply-orders", "fusion and tiles follow from the maps in that order"),
        PassSpec(
            "tile-skip-masked-blocks",
            "what says where a mask of the run leaves something is a kernel of its own; products are still products",
        ),
        PassSpec("tile-gather-joins", "windows of keys and values are read where they lie, whoever shares a task"),
        PassSpec("tile-plan-fusion", "which operations meet in registers and in a task"),
        PassSpec("tile-plan-tiles", "tiles follow from the nests; layouts from the tiles"),
        PassSpec(
            "tile-plan-online",
            "reductions of long rows in one loop: who shares a nest is known, masks are still as they were given",
        ),
        PassSpec("tile-apply-layouts", "packing of weights appears as operations on weights"),
        PassSpec("tile-hoist-init", "what follows from weights alone runs at compile time; groups must not hold it"),
        PassSpec("tile-form-groups", "the decisions become regions", {"level": "l2"}),
        PassSpec("tile-apply-online", "loops over blocks stand in the groups of their tasks"),
        PassSpec("tile-mark-levels", "where operations meet follows from the groups; now it can be read"),
        PassSpec("tile-verify-plan", "border: every operation has a group, every nest a root with its tile"),
    ],
    summary="decide what meets at which level, with which tiles and layouts",
)
"""Deciding passes (Python) leave attributes; rewriting ones (C++) carry them out."""


TILE = Phase(
    "tile",
    [
        _TARGET,
        PassSpec("tile-groups-to-kernels", "a group and its attributes become tasks, loops and tiles"),
        PassSpec("canonicalize", "folds the index arithmetic of loops that run once"),
        PassSpec("cse", "addresses and loads that two operations share", on="tile.kernel"),
        PassSpec("tile-dedupe-kernels", "equal layers share a kernel: it is compiled once"),
        PassSpec("symbol-dce", "weights that only @init reads are no longer needed by @main"),
        PassSpec("tile-verify-kernels", "border: no linalg or tensor operation in a kernel"),
    ],
    summary="make a kernel and a launch of each outermost group",
)

PIPELINE = Pipeline(
    "cpu",
    [
        Phase("normalize", NORMALIZE, summary="one form of each operation, static shapes, few reshapes"),
        PLAN,
        TILE,
        Phase(
            "schedule",
            [_TARGET, *SCHEDULE, *PROGRAMS],
            summary="order, buffers and one arena for the host function",
        ),
        Phase("lower", [_TARGET, *LOWER], summary="tiles to vectors, everything to the llvm dialect"),
    ],
    summary="layer 1 to the llvm dialect, for a CPU",
)
