# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From tile kernels to the llvm and nvvm dialects, for an NVIDIA GPU."""

from __future__ import annotations

from tilewright.pipelines.pipeline import PassSpec

_DEVICE = "gpu.module"

LOWER: tuple[PassSpec, ...] = (
    PassSpec("convert-tile-to-gpu", "a task is a thread block; a tile is spread over its threads"),
    PassSpec("canonicalize", "index arithmetic with constants folds"),
    PassSpec("cse", "thread numbers and coordinates that accesses share"),
    PassSpec("loop-invariant-code-motion", "addresses leave the loop over k"),
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
    PassSpec("reconcile-unrealized-casts", "nothing but the llvm and nvvm dialects may be left", on=_DEVICE),
)


def lower(arch: str) -> tuple[PassSpec, ...]:
    """The passes for an architecture such as ``sm_90a``."""
    del arch
    return LOWER
