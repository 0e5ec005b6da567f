# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From tile kernels to the llvm and rocdl dialects, for an AMD GPU. Untested on hardware."""

from __future__ import annotations

from tilewright.core.errors import UserError
from tilewright.passes.pipeline import PassSpec, Phase

_DEVICE = "gpu.module"
#: Architectures whose matrix units are known here (CDNA 3).
ARCHS = ("gfx942",)


def lower(arch: str) -> Phase:
    """Return phase `lower` for an architecture.

    Raises:
        UserError: it is none of :data:`ARCHS`.
    """
    if arch not in ARCHS:
        raise UserError(f"unknown AMD GPU {arch!r}: code is made for {', '.join(ARCHS)}")
    capability = {"arch": int(arch.removeprefix("gfx"))}
    passes = (
        PassSpec("tile-kernels-to-gpu", "a task is a work group; what a host must know is written on it"),
        PassSpec(
            "tile-assign-distributed-layouts", "which thread holds what: from products and from memory", capability
        ),
        PassSpec("tile-plan-scratch", "exchanges between warps get their place in shared memory"),
        PassSpec("tile-place-barriers", "a task's order of loads and stores, kept by its threads"),
        PassSpec("convert-tile-to-gpu", "tiles become registers, moves and instructions", capability),
        PassSpec("tile-shuffles-to-amdgcn", "a wave has 64 lanes, two of our warps", on=_DEVICE),
        PassSpec("canonicalize", "index arithmetic with constants folds"),
        PassSpec("cse", "thread numbers and coordinates that accesses share"),
        PassSpec("loop-invariant-code-motion", "addresses leave the loop over k"),
        PassSpec("tile-expand-math", "no library of functions: arithmetic on the same scalars", on=_DEVICE),
        PassSpec("tile-gpu-math-to-amdgcn", "what is left of it has an instruction", on=_DEVICE),
        PassSpec("convert-scf-to-cf", "structured control flow ends here", on=_DEVICE),
        PassSpec("expand-strided-metadata", "views as base, offset and strides", on=_DEVICE),
        PassSpec("lower-affine", "the index arithmetic that the views brought", on=_DEVICE),
        PassSpec("canonicalize", "what that folds to", on=_DEVICE),
        PassSpec("cse", "equal addresses", on=_DEVICE),
        PassSpec(
            "convert-gpu-to-rocdl",
            "the rest of the function; buffers are bare pointers",
            {"chipset": arch, "runtime": "HIP", "use-bare-ptr-memref-call-conv": True},
            on=_DEVICE,
        ),
        PassSpec("reconcile-unrealized-casts", "nothing but the llvm and rocdl dialects may be left", on=_DEVICE),
    )
    return Phase("lower", passes)


def emit(arch: str) -> Phase:
    """Return the phase that makes assembly of what `lower` left."""
    return Phase(
        "emit",
        (
            PassSpec("rocdl-attach-target", "the chip, and LLVM's optimization level", {"chip": arch, "O": 3}),
            PassSpec("gpu-module-to-binary", "assembly, which needs no ROCm", {"format": "isa"}),
        ),
    )
