# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From tile kernels to the llvm and nvvm dialects, for an NVIDIA GPU."""

from __future__ import annotations

import re

from tilewright.passes.pipeline import PassSpec

_DEVICE = "gpu.module"


def lower(arch: str, rings: bool = True, fast: bool = False) -> tuple[PassSpec, ...]:
    """Return the passes for an architecture.

    Args:
        arch: such as ``sm_90a``.
        rings: loops with `tile.stages` load ahead of time, through rings in shared memory; on ``sm_90a`` by TMA, for
            products by wgmma. Without it they load when they need the data.
        fast: functions of f32 are the special function unit's approximations as they are.
    """
    found = re.search(r"\d+", arch)
    capability = {"arch": int(found.group()) if found else 80}
    hopper = rings and arch == "sm_90a"
    share = (PassSpec("tile-share-operands", "what matrix units read again and again, and no ring brings"),)
    fetch = (PassSpec("tile-fetch-matrices", "what the sums of products meet comes beside their last steps"),)
    stagger = (PassSpec("tile-stagger-products", "scores of the next block beside the product of this one"),)
    defer = (PassSpec("tile-defer-waits", "products that run on while something else is computed"),)
    ahead = (
        *(stagger if hopper else ()),
        PassSpec("tile-pipeline-loads", "loops load ahead of time, into rings in shared memory"),
        *((*share, *fetch) if hopper else ()),
        PassSpec("canonicalize", "numbers of steps and slots that are constant"),
        PassSpec("cse", "addresses that several copies share"),
    )
    multicast = (PassSpec("tile-mark-multicasts", "what all blocks of a cluster load, each loads a part of"),)
    select = (PassSpec("tile-select-wgmma", "products that four warps do from shared memory, in the background"),)
    specialize = (PassSpec("tile-specialize-warps", "one warp moves data (TMA), the others compute"),)
    rough = {"fast": True} if fast else {}
    stage = (PassSpec("tile-stage-stores", "results go to memory by TMA, in boxes from shared memory"),)
    copies = (PassSpec("tile-copies-to-cp-async", "the copies of other kernels are those of all threads"),)
    return (
        *(ahead if rings else ()),
        *((*multicast, *select) if hopper else ()),
        PassSpec("tile-kernels-to-gpu", "a task is a thread block; what the host must know is written on it"),
        PassSpec(
            "tile-assign-distributed-layouts", "which thread holds what: from products and from memory", capability
        ),
        *((*specialize, *defer, *stage) if hopper else ()),
        *(copies if rings else ()),
        PassSpec("tile-plan-scratch", "exchanges between warps get their place in shared memory"),
        PassSpec("tile-place-barriers", "a task's order of loads and stores, kept by its threads"),
        PassSpec("convert-tile-to-gpu", "tiles become registers, moves and instructions", capability),
        PassSpec("tile-scope-barriers", "computing warps do not wait for one that moves data"),
        PassSpec("canonicalize", "index arithmetic with constants folds"),
        PassSpec("cse", "thread numbers and coordinates that accesses share"),
        PassSpec("loop-invariant-code-motion", "addresses leave the loop over k"),
        PassSpec("tile-math-to-intrinsics", "what the special function unit computes well enough", rough),
        PassSpec("tile-expand-math", "the other functions, without a library: arithmetic on scalars", on=_DEVICE),
        PassSpec("tile-math-to-intrinsics", "roots, roundings and fused products of those", rough),
        PassSpec("tile-expand-floats", "small floats that the hardware does not convert", on=_DEVICE),
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
        PassSpec("tile-mark-grid-constants", "TMA's descriptors are parameters by value"),
        PassSpec("convert-nvvm-to-llvm", "instructions that have no intrinsic, as inline assembly", on=_DEVICE),
        PassSpec("reconcile-unrealized-casts", "nothing but the llvm and nvvm dialects may be left", on=_DEVICE),
    )


LOWER: tuple[PassSpec, ...] = lower("sm_80")
