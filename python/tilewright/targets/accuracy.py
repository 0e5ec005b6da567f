# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accuracy as a choice: convolutions that multiply less, for errors of rounding that are somewhat larger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.errors import UserError
from tilewright.pipelines.pipeline import PassSpec
from tilewright.targets.precision import with_pass

if TYPE_CHECKING:
    from tilewright.devices import Device
    from tilewright.pipelines.pipeline import Pipeline

ACCURACIES = {"exact": (), "winograd": (2,), "winograd4": (2, 4)}
"""The choices, with the tiles that `tile-winograd` may take for each."""


def check(accuracy: str, precision: str, tune: float, target: str, pipeline: Any) -> None:
    """Raise UserError for an accuracy that does not exist, or that cannot be had.

    Raises:
        UserError: unknown accuracy; together with narrow products or measured tiles; a pipeline of the user's, or
            another target than a CPU.
    """
    if accuracy not in ACCURACIES:
        raise UserError(f"there is no accuracy {accuracy!r}; there are {', '.join(ACCURACIES)}")
    if accuracy == "exact":
        return
    if target.partition(":")[0] != "cpu" or pipeline is not None:
        raise UserError(f"accuracy={accuracy!r} is for CPUs and their own pipeline")
    if precision != "f32":
        raise UserError(f"accuracy={accuracy!r} is for sums of f32 products: leave it out with precision={precision!r}")
    if tune:
        raise UserError(f"tune= measures exact sums: leave it out with accuracy={accuracy!r}")


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
