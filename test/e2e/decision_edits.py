# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an edit of each declared attribute changes code: program, pass that reads it next, what is replaced by what."""

from __future__ import annotations

from dataclasses import dataclass

CPU, GPU = "cpu:icelake-server", "cuda:sm_90a"


@dataclass(frozen=True)
class Edit:
    """One case.

    Attributes:
        name: of the attribute, without `tile.`.
        target: compiled for.
        program: of `decision_borders`.
        reader: the pass whose input is edited.
        old: pattern of what is edited, the first place of it.
        new: what stands there instead.
        alone: pipeline of the pass, where the program is too small to become code: what the pass makes changes.
        refused: pattern of the error that the edit is answered by.
    """

    name: str
    target: str
    program: str
    reader: str
    old: str
    new: str
    alone: str = ""
    refused: str = ""


_LIT = "test/lib/"
_NEXT = "convert-tile-launch-to-runtime"
_SECOND = r"tile\.nest = 0 : i64, tile\.task = 0 : i64(?=\})"
_ROOT = "tile.rtile = #tile.rtile<l2 = [16, 32], register = [1, 32], order = [0, 1]>"
EDITS = (
    Edit("task", CPU, "planned", "tile-apply-layouts", _SECOND, f"tile.task = 1 : i64, tile.nest = 7 : i64, {_ROOT}"),
    Edit("nest", CPU, "planned", "tile-apply-layouts", _SECOND, f"tile.task = 0 : i64, tile.nest = 7 : i64, {_ROOT}"),
    Edit("name", CPU, "planned", _NEXT, r'tile\.name = "x"', 'tile.name = "z"'),
    Edit("result", CPU, "planned", _NEXT, r"tile\.result = 0 : i64", 'tile.global = "z"'),
    Edit("arena", CPU, "planned", _NEXT, r"tile\.arena\b(?!_)", 'tile.name = "z"'),
    Edit("arena_bytes", CPU, "planned", _NEXT, r"tile\.arena_bytes = \d+", "tile.arena_bytes = 4096"),
    Edit("scratch_bytes", CPU, "planned", _NEXT, r"tile\.scratch_bytes = \d+", "tile.scratch_bytes = 65536"),
    Edit("code", CPU, "planned", _NEXT, r"tile\.code, ", "", refused="is no tile.kernel or tile.program here"),
    Edit("global", CPU, "weights", _NEXT, r'tile\.global = "', 'tile.global = "other_'),
    Edit("host", CPU, "plain", "tile-plan-fusion", r"test\.negation", 'tile.host = "mine"'),
    Edit("host", GPU, "plain", "tile-plan-fusion", r"test\.negation", 'tile.host = "mine"'),
    Edit("apart", CPU, "plain", "tile-plan-fusion", r"test\.product", "tile.apart"),
    Edit("apart", GPU, "plain", "tile-plan-fusion", r"test\.product", "tile.apart"),
    Edit("kernel", CPU, "planned", "tile-apply-layouts", r'tile\.kernel = "product"', 'tile.kernel = "renamed"'),
    Edit("kernel", GPU, "plain", "tile-form-groups", r'tile\.kernel = "product', 'tile.kernel = "renamed'),
    Edit("rtile", CPU, "planned", "tile-apply-layouts", r"register = \[8, 32", "register = [4, 16"),
    Edit("rtile", GPU, "plain", "tile-groups-to-kernels", r"shared = \[\d+", "shared = [32"),
    Edit("layouts", CPU, "planned", "tile-apply-layouts", r"#tile\.layout<perm = \[1, 0\]>\]", "unit]"),
    Edit("pack_rtiles", CPU, "planned", "tile-apply-layouts", r"register = \[16, 16\]", "register = [8, 32]"),
    Edit(
        "prefetch",
        CPU,
        "planned",
        "tile-apply-layouts",
        r"tile\.layouts",
        "tile.prefetch = array<i64: 0>, tile.layouts",
    ),
    Edit(
        "tails",
        CPU,
        "open",
        "tile-apply-layouts",
        r"tile\.layouts",
        "tile.tails = [array<i64: 3, 1>, array<i64>, array<i64>], tile.layouts",
    ),
    Edit(
        "bounds",
        CPU,
        "open",
        "tile-apply-layouts",
        r"tile\.layouts",
        "tile.bounds = array<i64: 40, 64, 48>, tile.layouts",
    ),
    Edit("pack_apart", CPU, "open", "tile-apply-layouts", r"tile\.layouts", "tile.pack_apart, tile.layouts"),
    Edit(
        "grid",
        CPU,
        _LIT + "Transforms/GroupToKernel/tile-groups-to-kernels.mlir#6",
        "tile-groups-to-kernels",
        r"tile\.grid = array<i64: 0, 1>",
        "tile.grid = array<i64: 1, 0>",
    ),
    Edit(
        "block_sums",
        CPU,
        _LIT + "Transforms/GroupToKernel/tile-groups-to-kernels-block-sums.mlir#0",
        "tile-groups-to-kernels",
        r"tile\.block_sums = \d+ : i64,? ?",
        "",
    ),
    Edit("stream", CPU, "planned", "tile-apply-layouts", r"tile\.layouts", "tile.stream, tile.layouts"),
    Edit(
        "task",
        GPU,
        "plain",
        "tile-plan-gpu-tiles",
        r"tile\.task = 0",
        "tile.task = 1",
        refused="in a task of which no operation has",
    ),
    Edit(
        "nest",
        GPU,
        "plain",
        "tile-plan-gpu-tiles",
        r"tile\.nest = 0",
        "tile.nest = 1",
        refused="without exactly one root",
    ),
    Edit(
        "fetched",
        GPU,
        _LIT + "Transforms/Pipelining/tile-fetch-matrices.mlir#0",
        "tile-fetch-matrices",
        r"tile\.fetched, ",
        "",
    ),
    Edit("stages", GPU, "large", "tile-groups-to-kernels", r"tile\.stages = \d+", "tile.stages = 2"),
    Edit("specialized", GPU, "large", "tile-groups-to-kernels", r"tile\.specialized, ", ""),
    Edit("warps", GPU, "plain", "tile-groups-to-kernels", r"tile\.warps = \d+", "tile.warps = 2"),
    Edit(
        "padded", GPU, "plain", "tile-groups-to-kernels", r"tile\.padded,? ?", "", refused="is not laid out in groups"
    ),
    Edit("raster", GPU, "large", "tile-kernels-to-gpu", r"tile\.raster = \d+", "tile.raster = 2"),
    Edit("persistent", GPU, "large", "tile-kernels-to-gpu", r"tile\.persistent = \d+ : i64, ", ""),
    Edit("occupancy", GPU, "large", "tile-specialize-warps", r"tile\.occupancy = \d+", "tile.occupancy = 2"),
    Edit("staged", GPU, "large", "tile-stage-stores", r"tile\.staged = \d+", "tile.staged = 1"),
    Edit(
        "cluster",
        GPU,
        _LIT + "Transforms/GroupToKernel/tile-groups-to-kernels-padded.mlir#4",
        "tile-groups-to-kernels",
        r"tile\.cluster = array<i64: \d",
        "tile.cluster = array<i64: 1",
    ),
    Edit(
        "grid",
        GPU,
        "large",
        "tile-kernels-to-gpu",
        r"tile\.grid = array<i64: \d+",
        "tile.grid = array<i64: 7",
        refused="has clusters of 2 tasks",
    ),
    Edit("threads", GPU, "plain", "tile-assign-distributed-layouts", r"tile\.threads = \d+", "tile.threads = 64"),
    Edit(
        "params",
        GPU,
        "plain",
        "tile-assign-distributed-layouts",
        r"align = \d+ : i64, arg = 0",
        "align = 4 : i64, arg = 0",
    ),
    Edit("shared_bytes", GPU, "plain", "tile-plan-scratch", r"tile\.shared_bytes = \d+", "tile.shared_bytes = 4096"),
    Edit(
        "align",
        GPU,
        _LIT + "Conversion/TileToGPU/convert-tile-to-gpu.mlir#0",
        "convert-tile-to-gpu",
        r"tile\.align = \d+",
        "tile.align = 2",
    ),
    Edit("result", GPU, "plain", "tile-plan-arena", r"tile\.result = 0", "tile.result = 1"),
    Edit("unit", GPU, "large", "tile-copies-to-cp-async", r'tile\.unit = "wgmma"', 'tile.unit = "mma"'),
    Edit("global", GPU, "weights", "tile-plan-arena", r'tile\.global = "', 'tile.global = "other_'),
    Edit("tf32", GPU, "plain", "tile-plan-fusion", r"test\.product", "tile.tf32"),
    Edit(
        "image",
        CPU,
        _LIT + "Transforms/GroupToKernel/tile-groups-to-kernels-image.mlir#0",
        "tile-groups-to-kernels",
        r"tile\.image = array<i64: \d+",
        "tile.image = array<i64: 1",
    ),
    Edit("streamed", CPU, "streamed", "convert-tile-to-vector", r" ?\{tile\.streamed\}", ""),
    Edit("tasks", GPU, "large", "tile-specialize-warps", r" ?\{tile\.tasks\}", ""),
    Edit("pending", GPU, "large", "convert-tile-to-gpu", r"tile\.pending = \d+", "tile.pending = 3"),
    Edit("starts", GPU, "large", "convert-tile-to-gpu", r"tile\.starts, ", ""),
    Edit("scratch", GPU, "large", "convert-tile-to-gpu", r"tile\.scratch = (\d+)", "tile.scratch = 1024"),
    Edit("box", GPU, "large", "tile-plan-scratch", r"slots = \d+", "slots = 1"),
    Edit("layouts", GPU, "large", "tile-specialize-warps", r"swizzle = 128", "swizzle = 64"),
    Edit(
        "stagger",
        GPU,
        _LIT + "Transforms/Pipelining/tile-stagger-products.mlir#0",
        "tile-stagger-products",
        r"tile\.stagger",
        "test.stagger",
    ),
    Edit(
        "stream_k",
        GPU,
        _LIT + "Transforms/Pipelining/tile-stream-k.mlir#0",
        "tile-stream-k",
        r"tile\.stream_k = \d+",
        "tile.stream_k = 3",
    ),
    Edit(
        "no_ring",
        GPU,
        _LIT + "Transforms/Pipelining/tile-pipeline-loads.mlir#2",
        "tile-pipeline-loads",
        r"tile\.no_ring",
        "test.ring",
    ),
    Edit(
        "order",
        CPU,
        _LIT + "Transforms/Plan/tile-apply-orders.mlir#0",
        "tile-apply-orders",
        r"tile\.order",
        "test.order",
        "builtin.module(tile-apply-orders)",
    ),
    Edit(
        "implicit_padding",
        GPU,
        _LIT + "Transforms/Plan/tile-form-groups.mlir#2",
        "tile-form-groups",
        r"tile\.implicit_padding",
        "test.implicit_padding",
        "builtin.module(tile-form-groups)",
    ),
    Edit(
        "online",
        CPU,
        _LIT + "Transforms/Plan/tile-apply-online.mlir#0",
        "tile-apply-online",
        r"tile\.online = array<i64: 1, \d+",
        "tile.online = array<i64: 1, 256",
        "builtin.module(tile-apply-online)",
        refused="runs in blocks of 512",
    ),
    Edit(
        "online",
        GPU,
        _LIT + "Transforms/Plan/tile-apply-online.mlir#0",
        "tile-apply-online",
        r"tile\.online = array<i64: 1, \d+",
        "tile.online = array<i64: 1, 256",
        "builtin.module(tile-apply-online)",
        refused="runs in blocks of 512",
    ),
    Edit(
        "vector",
        GPU,
        "plain",
        "convert-tile-to-gpu",
        r"tile\.load (%\w+)\[([^\]]*)\]",
        r"tile.load \1[\2] {tile.vector = 1 : i64}",
    ),
)

#: What has no edit that changes code yet, by target.
UNEDITED = {
    CPU: (
        "block device gathers globals inputs live options outputs overlap packed program_events program_units "
        "rows steps tasks_inside tell units weights "
    ),
    GPU: (
        "arena block bounds device equal_sizes gathers live may_overlap multicast one_thread options packed "
        "partial ring roles rounded rows same_memory scratch_free swizzle waits weights "
    ),
}
