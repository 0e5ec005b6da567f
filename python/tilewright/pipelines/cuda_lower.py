# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From tile kernels to the llvm and nvvm dialects, for an NVIDIA GPU."""

from __future__ import annotations

import re

from tilewright.pipelines.pipeline import PassSpec

_DEVICE = "gpu.module"


def lower(arch: str) -> tuple[PassSpec, ...]:
    """Return the passes for an architecture such as ``sm_90a``."""
    found = re.search(r"\d+", arch)
    capability = {"arch": int(found.group()) if found else 80}
    return (
        PassSpec("tile-kernels-to-gpu", "a task is a thread block; what the host must know is written on it"),
        PassSpec("tile-assign-spreads", "which thread holds what: from products and from memory", capability),
        PassSpec("tile-plan-scratch", "exchanges between warps get their place in shared memory"),
        PassSpec("tile-place-barriers", "a task's order of loads and stores, kept by its threads"),
        PassSpec("convert-tile-to-gpu", "tiles become registers, moves and instructions", capability),
        PassSpec("canonicalize", "index arithmetic with constants folds"),
        PassSpec("cse", "thread numbers and coordinates that accesses share"),
        PassSpec("loop-invariant-code-motion", "addresses leave the loop over k"),
        PassSpec("tile-math-to-intrinsics", "what the special function unit computes well enough"),
        PassSpec("tile-expand-math", "the other functions, without a library: arithmetic on scalars", on=_DEVICE),
        PassSpec("tile-math-to-intrinsics", "roots, roundings and fused products of those"),
        PassSpec("tile-expand-floats", "small floats that the hardware does not convert", on=_DEVICE),
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
        PassSpec("convert-nvvm-to-llvm", "instructions that have no intrinsic, as inline assembly", on=_DEVICE),
        PassSpec("reconcile-unrealized-casts", "nothing but the llvm and nvvm dialects may be left", on=_DEVICE),
    )


LOWER: tuple[PassSpec, ...] = lower("sm_80")
