# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes for an NVIDIA GPU, from the options."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.passes.pipeline import PassSpec, Pipeline
from tilewright.pipelines import cuda, cuda_plan

if TYPE_CHECKING:
    from tilewright.core.options import CompileOptions
    from tilewright.devices import Device


def pipeline(device: Device, options: CompileOptions) -> Pipeline:
    """Return the phases for a GPU.

    Raises:
        UserError: the description is not that of an NVIDIA GPU.
    """
    whole = cuda.pipeline(device, fast=options.accuracy == "fast")
    if options.precision != "f32":
        first = _narrowing(options)
        phases = [replace(p, passes=(first, *p.passes)) if p.name == "plan" else p for p in whole.phases]
        whole = replace(whole, phases=tuple(phases))
    return cuda_plan.with_choices(whole, options.choices) if options.choices else whole


def _narrowing(options: CompileOptions) -> PassSpec:
    """The pass that a precision asks for."""
    if options.precision == "tf32":
        return PassSpec("tile-allow-tf32", "precision tf32 was asked for")
    chosen: dict[str, Any] = {"ranges": options.ranges} if options.ranges else {}
    chosen["windows"] = True  # tensor cores multiply convolutions, too
    if options.precision == "bf16":
        chosen["pairs"] = True  # bytes of keys would need ranges that no weight tells
    return PassSpec("tile-narrow-products", f"precision {options.precision} was asked for", chosen)
