# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From tile kernels to the llvm and nvvm dialects, for an NVIDIA GPU.

Loops with `tile.stages` load ahead of time, through rings in shared memory; on Hopper (sm_90a) by TMA, for products by
wgmma. The passes that make code for Hopper alone do nothing where the module's device is another one.
"""

from __future__ import annotations

from tilewright.passes.pipeline import PassSpec

_DEVICE = "gpu.module"

_AHEAD = (
    PassSpec("tile-stagger-products", "Hopper: scores of the next block beside the product of this one"),
    PassSpec("tile-split-masks", "blocks that a mask does not cut compare nothing"),
    PassSpec("tile-pipeline-loads", "loops load ahead of time, into rings in shared memory"),
    PassSpec("tile-share-operands", "Hopper: what matrix units read again and again, and no ring brings"),
    PassSpec("tile-fetch-matrices", "Hopper: what the sums of products meet comes beside their last steps"),
    PassSpec("canonicalize", "numbers of steps and slots that are constant"),
    PassSpec("cse", "addresses that several copies share"),
    PassSpec("tile-mark-multicasts", "Hopper: what all blocks of a cluster load, each loads a part of"),
    PassSpec("tile-select-wgmma", "Hopper: products that four warps do from shared memory, in the background"),
    PassSpec("tile-promote-sums", "Hopper: its units add float8 with few bits; vector units take over in time"),
)

_TO_THREADS = (
    PassSpec("tile-kernels-to-gpu", "a task is a thread block; what the host must know is written on it"),
    PassSpec("tile-assign-distributed-layouts", "which thread holds what: from products and from memory"),
    PassSpec("tile-specialize-warps", "Hopper: one warp moves data (TMA), the others compute"),
    PassSpec("tile-defer-waits", "Hopper: products that run on while something else is computed"),
    PassSpec("tile-stage-stores", "Hopper: results go to memory by TMA, in boxes from shared memory"),
    PassSpec("tile-copies-to-cp-async", "the copies of other kernels are those of all threads"),
    PassSpec("tile-plan-scratch", "exchanges between warps get their place in shared memory"),
    PassSpec("tile-place-barriers", "a task's order of loads and stores, kept by its threads"),
    PassSpec("convert-tile-to-gpu", "tiles become registers, moves and instructions"),
    PassSpec("tile-scope-barriers", "computing warps do not wait for one that moves data"),
    PassSpec("tile-inline-launches", "what a kernel launches, its own blocks do, and meet behind it"),
    PassSpec("tile-count-meetings", "for the report, as long as loops have bounds"),
)

_NUMBERS = (
    PassSpec("canonicalize", "index arithmetic with constants folds"),
    PassSpec("cse", "thread numbers and coordinates that accesses share"),
    PassSpec("loop-invariant-code-motion", "addresses leave the loop over k"),
    PassSpec("tile-math-to-intrinsics", "what the special function unit computes well enough"),
    PassSpec("tile-expand-math", "the other functions, without a library: arithmetic on scalars", on=_DEVICE),
    PassSpec("tile-math-to-intrinsics", "roots, roundings and fused products of those"),
    PassSpec("tile-expand-floats", "small floats that the hardware does not convert", on=_DEVICE),
)

_TO_LLVM = (
    PassSpec("tile-keep-loops", "ptxas would unroll loops of products until registers run out"),
    PassSpec("convert-scf-to-cf", "structured control flow ends here", on=_DEVICE),
    PassSpec("expand-strided-metadata", "views as base, offset and strides", on=_DEVICE),
    PassSpec("lower-affine", "the index arithmetic that the views brought", on=_DEVICE),
    PassSpec("canonicalize", "what that folds to", on=_DEVICE),
    PassSpec("cse", "equal addresses", on=_DEVICE),
    PassSpec(
        "convert-gpu-to-nvvm",
        "the rest of the function; buffers are bare pointers",
        {"use-bare-ptr-memref-call-conv": True},
        on=_DEVICE,
    ),
    PassSpec("tile-pass-offsets", "of hundreds of launches each has its buffers, not a register for each", on=_DEVICE),
    PassSpec("tile-mark-grid-constants", "TMA's descriptors are parameters by value"),
    PassSpec("convert-nvvm-to-llvm", "instructions that have no intrinsic, as inline assembly", on=_DEVICE),
    PassSpec("reconcile-unrealized-casts", "nothing but the llvm and nvvm dialects may be left", on=_DEVICE),
)

LOWER: tuple[PassSpec, ...] = (*_AHEAD, *_TO_THREADS, *_NUMBERS, *_TO_LLVM)
"""From tile kernels on: phase `lower` of a GPU without its host program."""
