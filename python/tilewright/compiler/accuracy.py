# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy as a choice: convolutions that multiply less, for errors of rounding that are somewhat larger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.compiler.options import ACCURACIES
from tilewright.compiler.precision import with_pass
from tilewright.passes.pipeline import PassSpec

if TYPE_CHECKING:
    from tilewright.devices import Device
    from tilewright.passes.pipeline import Pipeline


def with_winograd(pipeline: Pipeline, device: Device, accuracy: str) -> Pipeline:
    """Return a CPU's pipeline in which phase `plan` begins with `tile-winograd`, as the accuracy asks."""
    tiles = ACCURACIES[accuracy]
    if not tiles:
        return pipeline
    from tilewright.pipelines.cpu import levels

    options: dict[str, Any] = {"tiles": tiles, "peak": device.units.peak_of("f32") / 2e9}
    options |= {name: value for name, value in levels(device).items() if name != "l3-bytes"}
    spec = PassSpec("tile-winograd", f"accuracy {accuracy} was asked for", options)
    return with_pass(pipeline, spec)
