# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines: which passes run, in which order, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.devices.attribute import to_attribute
from tilewright.devices.device import Device
from tilewright.passes.pipeline import PassSpec, Pipeline


def with_target(pipeline: Pipeline, device: Device, **options: Any) -> Pipeline:
    """Return a pipeline that begins with `tile-set-target`: for another machine or other options than the module names.

    Args:
        pipeline: with one phase or more.
        device: the machine.
        options: fields of :class:`tilewright.ir.target_info.ModuleOptions`.
    """
    from tilewright.mlir import ir

    with ir.Context() as context:
        text = str(to_attribute(device, context))
    first, *rest = pipeline.phases
    values = {"target": text, **{name.replace("_", "-"): value for name, value in options.items()}}
    chosen = PassSpec("tile-set-target", f"planned for device {device.name}", values)
    return replace(pipeline, phases=(replace(first, passes=(chosen, *first.passes)), *rest))
