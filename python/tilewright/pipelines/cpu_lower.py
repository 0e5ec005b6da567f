# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From kernels and launches on tensors to the llvm dialect, for a CPU."""

from __future__ import annotations

from tilewright.passes.pipeline import PassSpec

_BUFFERIZE = {
    "bufferize-function-boundaries": True,
    "function-boundary-type-conversion": "identity-layout-map",
    "unknown-type-conversion": "identity-layout-map",
    "buffer-alignment": 64,
    "allow-return-allocs-from-loops": True,
}

TO_BUFFERS: tuple[PassSpec, ...] = (
    PassSpec(
        "tile-globals-to-arguments", "weights are data: bufferization must see who reads them, and that none writes"
    ),
    PassSpec("tile-own-places", "tensors that are put together of parts have places of their own"),
    PassSpec("eliminate-empty-tensors", "a slice that is inserted somewhere is computed in its place"),
    PassSpec("tile-reuse-operands", "a sum takes the place of the residual that ends in it"),
    PassSpec("tile-branches-in-place", "what two branches make has one place, which may be the caller's"),
    PassSpec("tile-loops-in-place", "what a loop carries has one place, which the arena can give it"),
    PassSpec("tile-open-strides", "kernels take the places, slices too, that their results are made in"),
    PassSpec("one-shot-bufferize", "launches write where their results live, in place where no one reads", _BUFFERIZE),
    PassSpec("cse", "two equal views are one: a copy of a slice onto itself shows"),
    PassSpec("canonicalize", "copies onto themselves go; loops no longer carry buffers"),
    PassSpec("tile-ping-pong-buffers", "a loop's next state, made apart, is no copy: two buffers change places"),
    PassSpec("tile-results-to-arguments", "results are written into the caller's buffers"),
)
"""From tensors to buffers, on every machine."""

PLACES: tuple[PassSpec, ...] = (
    PassSpec("tile-plan-arena", "temporaries share one allocation by lifetime"),
    PassSpec("tile-share-buffers", "those of run-time sizes too, where the sizes are equal"),
)
"""Where buffers are, on every machine."""

COPIES: tuple[PassSpec, ...] = (
    PassSpec("tile-copies-to-kernels", "what bufferization had to copy is copied on all threads, with a remark"),
    PassSpec("tile-kernel-layouts", "slices have strides now: kernels see which neighbours lie side by side"),
)
"""What buffers mean for kernels, on every machine."""

FOLD_CLONES = PassSpec("convert-bufferization-to-memref", "clones of results as copies")
OVERLAP = PassSpec("tile-overlap-tasks", "a row is stored while the next one is computed; who fetches what is known")

_FREE: tuple[PassSpec, ...] = (
    PassSpec("tile-free-buffers", "what has no place in the arena is freed: loops may allocate", on="func.func"),
    PassSpec("canonicalize", "ownership that is known folds"),
    PassSpec("buffer-deallocation-simplification", "most owners are known", on="func.func"),
    PassSpec("sccp", "ownership that loops hand round unchanged is known"),
    PassSpec("canonicalize", "and folds, with what is carried"),
    PassSpec("bufferization-lower-deallocations", "the others are compared at run time"),
)

_FETCH: tuple[PassSpec, ...] = (
    PassSpec("tile-prefetch-epilogues", "what follows a product is fetched while it runs, line by line"),
    PassSpec("tile-prefetch-rows", "rows from far, fetched by the nest before"),
)

SCHEDULE: tuple[PassSpec, ...] = (*TO_BUFFERS, *PLACES, *_FREE, FOLD_CLONES, *COPIES, *_FETCH, OVERLAP)
"""Phase `schedule` of a CPU, but for programs."""

TASK_LOOPS: tuple[PassSpec, ...] = (
    PassSpec("tile-find-task-loops", "buffers are known: which tasks need nothing of others"),
    PassSpec("tile-plan-levels", "such loops need no meeting of tasks"),
    PassSpec("tile-sink-loops", "each task runs them by itself; other loops see one launch"),
    PassSpec("canonicalize", "views that only these kernels need"),
    PassSpec("tile-keep-states", "what each of their threads needs of its own states it keeps"),
)

PROGRAMS: tuple[PassSpec, ...] = (
    *TASK_LOOPS,
    PassSpec("tile-plan-programs", "steps too short for a launch each are one program"),
    PassSpec("tile-form-programs", "tasks on units with waits, instead of launches"),
)
"""The last passes of phase `schedule`."""


_SMALL_FLOATS = tuple("bf16 f16 f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU f6E2M3FN f6E3M2FN f4E2M1FN".split())


_NUMBERS: tuple[PassSpec, ...] = (
    PassSpec("convert-math-to-funcs", "powers of integers as loops of multiplications"),
    PassSpec("convert-complex-to-standard", "complex functions as functions of their parts"),
    PassSpec("math-extend-to-supported-types", "functions of small floats as functions of f32", {"target-type": "f32"}),
    PassSpec(
        "arith-emulate-unsupported-floats",
        "arithmetic of small floats as arithmetic of f32",
        {"source-types": _SMALL_FLOATS, "target-type": "f32"},
    ),
    PassSpec("tile-expand-floats", "conversions of small floats as arithmetic on bits; no library is called"),
    PassSpec("arith-expand", "rounding divisions of integers on the host", on="func.func"),
)
"""Arithmetic that processors lack, as arithmetic that they have."""

_VECTORS: tuple[PassSpec, ...] = (
    PassSpec("canonicalize", "constant indices and masks fold"),
    PassSpec("cse", "addresses that loads share"),
    PassSpec("loop-invariant-code-motion", "views, constants and addresses leave the loops"),
    PassSpec("tile-unswitch-fetches", "conditions have left them too: no step branches", on="tile.kernel"),
)

_FROM_VECTORS: tuple[PassSpec, ...] = (
    PassSpec("convert-host-math-to-libm", "functions on f64, on the host"),
    PassSpec("convert-tile-kernel-to-func", "a kernel is a function over a range of tasks"),
    PassSpec("convert-tile-launch-to-runtime", "the host function passes descriptors to the run-time"),
    PassSpec("canonicalize", "descriptors read as constants where types are static"),
    PassSpec("cse", "the constants of expanded math"),
    PassSpec("loop-invariant-code-motion", "what does not depend on the task leaves the task loop"),
    PassSpec("lower-affine", "affine.apply as arithmetic"),
    PassSpec("convert-scf-to-cf", "structured control flow ends here"),
    PassSpec("memref-expand", "reshapes and atomic operations that have no direct lowering"),
    PassSpec("tile-reshapes-to-casts", "dimensions split by sizes known at run time only"),
    PassSpec("expand-strided-metadata", "views as base, offset and strides"),
    PassSpec("lower-affine", "the index arithmetic that the views brought"),
    PassSpec("convert-vector-to-llvm", "vectors are native already"),
    PassSpec("finalize-memref-to-llvm", "buffers as descriptors"),
    PassSpec("convert-complex-to-llvm", "complex numbers as pairs"),
    PassSpec("convert-math-to-llvm", "what processors compute: sqrt, fma, floor"),
    PassSpec("convert-arith-to-llvm", "arithmetic"),
    PassSpec("convert-index-to-llvm", "index arithmetic"),
    PassSpec("convert-func-to-llvm", "functions"),
    PassSpec("convert-cf-to-llvm", "branches"),
    PassSpec("convert-ub-to-llvm", "poison"),
    PassSpec("reconcile-unrealized-casts", "nothing but the llvm dialect may be left"),
)


_CLEANUP: tuple[PassSpec, ...] = (
    PassSpec("tile-floats-to-bits", "small floats only move by now; LLVM would call a library to move some"),
    PassSpec("canonicalize", "folds what the conversions left"),
    PassSpec("cse", "equal address computations"),
    PassSpec("tile-sanitize", "accesses are checked where the options ask for it"),
)


LOWER: tuple[PassSpec, ...] = (
    PassSpec("convert-linalg-to-loops", "what the plan left on the host becomes scalar loops"),
    PassSpec("convert-tile-to-vector", "tiles become native vectors, a list for each"),
    PassSpec(
        "tile-sink-to-uses",
        "sums of a matrix unit are more vectors than registers: one after the other",
        on="tile.kernel",
    ),
    *_NUMBERS,
    *_VECTORS,
    PassSpec("tile-expand-math", "no call of a math library: polynomials on whole vectors"),
    *_FROM_VECTORS,
    *_CLEANUP,
)
"""Phase `lower`: vectors and instructions are those of the module's device."""
