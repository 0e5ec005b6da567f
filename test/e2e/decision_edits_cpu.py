# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The edits of attributes that decide about code for a CPU."""

from __future__ import annotations

from decision_edit import ARTIFACT, CPU, Edit

_PAIRS = "test/python/plan/recurrences/tile-plan-wavefronts.mlir#1"
_UNROLLED = "test/lib/Transforms/Recurrences/tile-unroll-recurrences.mlir#0"
_SHIFTED = "test/lib/Transforms/Recurrences/tile-fuse-shifted.mlir#3"
_SKEW = "test/lib/Transforms/Recurrences/tile-skew-recurrences.mlir#0"
_LIT = "test/lib/"
_COVER = "test/python/plan/sparse/tile-apply-sparsity.mlir#0"
_DYNAMIC = "test/python/plan/sparse/tile-lower-sparse-dynamic.mlir#0"
_PRODUCT = r"(sparse_tile\.matmul [^:]*?) :"
_EPILOGUE = "test/lib/Transforms/Plan/tile-form-epilogues.mlir#1"
_APPENDED = "test/lib/Transforms/HostBuffers/tile-results-to-arguments.mlir#5"
_SIZES = "test/lib/Conversion/TileToRuntime/convert-tile-launch-to-runtime.mlir#5"
_NEXT = "convert-tile-launch-to-runtime"
_SECOND = r"tile\.nest = 0 : i64, tile\.task = 0 : i64(?=\})"
_ROOT = "tile.rtile = #tile.rtile<l2 = [16, 32], register = [1, 32], order = [0, 1]>"

CPU_EDITS = (
    Edit("task", CPU, "planned", "tile-apply-layouts", _SECOND, f"tile.task = 1 : i64, tile.nest = 7 : i64, {_ROOT}"),
    Edit("nest", CPU, "planned", "tile-apply-layouts", _SECOND, f"tile.task = 0 : i64, tile.nest = 7 : i64, {_ROOT}"),
    Edit("name", CPU, "planned", _NEXT, r'tile\.name = "x"', 'tile.name = "z"'),
    Edit("result", CPU, "planned", _NEXT, r"tile\.result = 0 : i64", 'tile.global = "z"'),
    Edit(
        "appends",
        CPU,
        _APPENDED,
        "tile-results-to-arguments",
        r"tile\.appends = array<i64: 0",
        "tile.appends = array<i64: 7",
    ),
    Edit("sizes_of", CPU, _SIZES, _NEXT, r"tile\.sizes_of = 0 : i64", 'tile.name = "z"'),
    Edit("arena", CPU, "planned", _NEXT, r"tile\.arena\b(?!_)", 'tile.name = "z"'),
    Edit("scratch_bytes", CPU, "planned", _NEXT, r"tile\.scratch_bytes = \d+", "tile.scratch_bytes = 65536"),
    Edit("code", CPU, "planned", _NEXT, r"tile\.code, ", "", refused="is no tile.kernel or tile.program here"),
    Edit("global", CPU, "weights", _NEXT, r'tile\.global = "', 'tile.global = "other_'),
    Edit("host", CPU, "plain", "tile-plan-fusion", r"test\.negation", 'tile.host = "mine"'),
    Edit("apart", CPU, "plain", "tile-plan-fusion", r"test\.product", "tile.apart"),
    Edit("kernel", CPU, "planned", "tile-apply-layouts", r'tile\.kernel = "product"', 'tile.kernel = "renamed"'),
    Edit("rtile", CPU, "planned", "tile-apply-layouts", r"register = \[8, 32", "register = [4, 16"),
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
        _LIT + "Transforms/GroupToKernel/tile-groups-to-kernels.mlir#7",
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
        "image",
        CPU,
        _LIT + "Transforms/GroupToKernel/tile-groups-to-kernels-image.mlir#0",
        "tile-groups-to-kernels",
        r"tile\.image = array<i64: \d+",
        "tile.image = array<i64: 1",
    ),
    Edit("streamed", CPU, "streamed", "convert-tile-to-vector", r" ?\{tile\.streamed\}", ""),
    # The module, its entry, the artifact
    Edit("device", CPU, "plain", "tile-plan-tiles", "vector_bits = 512", "vector_bits = 256"),
    Edit("options", CPU, "plain", "tile-plan-tiles", "opt_level", 'choices = ["product_32x64x48:1"], opt_level'),
    Edit("weights", CPU, "causal", "tile-plan-online", r', tile\.weights = "[^"]*"', ""),
    Edit(
        "weights",
        CPU,
        "causal",
        "tile-plan-online",
        r'tile\.weights = "[^"]*"',
        'tile.weights = "nowhere"',
        refused="the module's weights are to be in 'nowhere'",
    ),
    Edit("inputs", CPU, "opened", ARTIFACT, r'tile\.inputs = \["a", "b"', 'tile.inputs = ["b", "a"'),
    Edit(
        "inputs",
        CPU,
        "opened",
        ARTIFACT,
        r'tile\.inputs = \["a"',
        'tile.inputs = ["z"',
        refused="takes z, b .*but the model has a, b",
    ),
    Edit(
        "outputs",
        CPU,
        "opened",
        ARTIFACT,
        r'tile\.outputs = \["y"',
        'tile.outputs = ["z"',
        refused="takes z .*but the model has y",
    ),
    Edit(
        "globals",
        CPU,
        "opened",
        ARTIFACT,
        r'tile\.globals = \["',
        'tile.globals = ["other_',
        refused="needs the weight other_",
    ),
    Edit("arena_bytes", CPU, "opened", ARTIFACT, r"tile\.arena_bytes = \d+", "tile.arena_bytes = 4096"),
    Edit("tell", CPU, "gathered", _NEXT, r" \{tile\.tell\}", ""),
    # The plan
    Edit("rows", CPU, "attention", "tile-plan-tiles", r"tile\.rows = array<i64: 0, 1>", "tile.rows = array<i64: 1, 0>"),
    Edit(
        "rows",
        CPU,
        "attention",
        "tile-plan-tiles",
        r"tile\.rows = array<i64: 0, 1>",
        "tile.rows = array<i64: 0>",
        refused="has 1 loops in `tile.rows`, and the last nest .* 2",
    ),
    Edit(
        "rows",
        CPU,
        "softmax",
        "tile-plan-tiles",
        r"tile\.rows = array<i64: 0>, ",
        "",
        refused="is in a nest of which no operation has",
    ),
    Edit(
        "rtile",
        CPU,
        "softmax",
        "tile-mark-levels",
        r"tile\.rtile = [^>]*>",
        "test.tile",
        refused="a register group without a root",
    ),
    Edit("block", CPU, "attention", "tile-plan-tiles", r"tile\.block = \d+", "tile.block = 32"),
    Edit(
        "gathers", CPU, "gathered", "tile-plan-tiles", r"tile\.gathers = array<i64: 0>", "tile.gathers = array<i64: 1>"
    ),
    Edit("packed", CPU, "small", "tile-plan-tiles", r"tile\.packed = \{[^}]*\}, ", ""),
    Edit("live", CPU, "causal", "tile-apply-layouts", r"(tile\.live = array<i64: 1, 64, 0, 0, 0), 64", r"\1, 128"),
    Edit("skip", CPU, "masked", "tile-plan-online", r",? ?tile\.skip = 2 : i64", ""),
    Edit("pair", CPU, _PAIRS, "tile-plan-wavefronts", r"i64: 3, 9", "i64: 1, 99"),
    Edit("unroll", CPU, _UNROLLED, "tile-unroll-recurrences", r"\n +attributes {tile\.unroll}", ""),
    Edit("wavefront", CPU, _SKEW, "tile-skew-recurrences", r"\n +attributes {tile\.wavefront}", ""),
    Edit("shift", CPU, _SHIFTED, "tile-fuse-shifted", r" {tile\.shift = 1 : i64}", ""),
    Edit("sparsity", CPU, _COVER, "tile-apply-sparsity", r"cover = [^\n]*, kernels = [^\]]*\]", 'cover = "dense"'),
    Edit(
        "sparsity",
        CPU,
        _COVER,
        "tile-apply-sparsity",
        r"tesa<block.*mask>, kernels = [^\]]*\]",
        "tesa<nm<2 : 4, axis = 0>>",
        refused="2:4 along axis 0 does not fit the weight",
    ),
    *(
        Edit("sparsity", CPU, _DYNAMIC, "tile-lower-sparse", _PRODUCT, rf"\1 {{tile.sparsity = {{{share} = 0.25}}}} :")
        for share in ("rows_above", "dense_above")
    ),
    Edit("epilogue", CPU, _EPILOGUE, "tile-form-epilogues", r", tile\.epilogue", ""),
    # Kernels and programs
    Edit(
        "overlap",
        CPU,
        _LIT + "Transforms/GroupToKernel/tile-overlap-tasks.mlir#0",
        "tile-overlap-tasks",
        r"tile\.overlap = 4",
        "tile.overlap = 2",
    ),
    Edit(
        "tasks_inside",
        CPU,
        _LIT + "Conversion/TileToRuntime/convert-tile-kernel-to-func.mlir#0",
        "convert-tile-kernel-to-func",
        r"tile\.tasks_inside",
        "test.tasks",
    ),
    Edit("level", CPU, "tasks", "tile-sink-loops", r', tile\.level = "thread"', ""),
    Edit("independent", CPU, "tasks", "tile-plan-levels", r" \{tile\.independent\}", ""),
    Edit(
        "units",
        CPU,
        _LIT + "Transforms/Programs/tile-form-programs.mlir#0",
        "tile-form-programs",
        r"tile\.units = 2",
        "tile.units = 3",
    ),
    Edit(
        "steps",
        CPU,
        _LIT + "Transforms/Programs/tile-form-programs.mlir#0",
        "tile-form-programs",
        r"tile\.steps = 2",
        "tile.steps = 4",
    ),
    Edit("program_units", CPU, "program", _NEXT, r"tile\.program_units = 2", "tile.program_units = 1"),
    Edit("program_events", CPU, "program", _NEXT, r"tile\.program_events = 1", "tile.program_events = 40"),
    Edit("order", CPU, "attention", "tile-apply-orders", r" \{tile\.order = array<i64: 0, 2, 1>\}", " {}", every=True),
    Edit("online", CPU, "causal", "tile-form-groups", r"(tile\.online = array<i64: \d+), 64", r"\1, 32", every=True),
    Edit(
        "online",
        CPU,
        "causal",
        "tile-form-groups",
        r"(tile\.online = array<i64: 2), 64",
        r"\1, 32",
        refused="runs in blocks of",
    ),
)
