# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile kernels for GPUs, run by the reference interpreter: the phases up to `tile` must not change a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright import devices
from tilewright.bisection.stages import Stage, run_steps, start, steps_of
from tilewright.compiler.source import open_source
from tilewright.ir.target_info import annotate
from tilewright.passes.pipeline import Pipeline
from tilewright.pipelines import cuda_plan


def planned(model: Any, device: str = "nvidia-h100", shapes: Mapping[str, Any] | None = None) -> tuple[Stage, Stage]:
    """The module as imported and after phase `tile`, with the weights of both; raises what a pass raises."""
    symbolic = shapes is None
    imported = open_source(model).load(dict(shapes) if shapes else None, symbolic)
    annotate(imported.module, devices.get(device))
    pipeline = Pipeline("cuda", cuda_plan.PHASES)
    run = run_steps(start(imported.module, dict(imported.weights)), steps_of(pipeline))
    if run.error is not None:
        raise run.error
    return run.stages[0], run.stages[-1]
