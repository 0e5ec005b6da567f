# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds plans to shapes of products that large models take by themselves, so that small ones take them too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from tilewright.core import config
from tilewright.devices.nvidia import for_arch
from tilewright.passes.pipeline import Pipeline
from tilewright.pipelines import with_target
from tilewright.pipelines.cuda import PIPELINE
from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import Shape
from tilewright.plan.model.gpu import Gpu


@contextmanager
def held_to(wanted: Mapping[str, object]) -> Iterator[None]:
    """Let plans take only shapes with these attributes, wherever there are some; nothing is read from the cache."""
    every = gemm_time.shapes

    def some(problem: Problem, gpu: Gpu) -> list[Shape]:
        found = list(every(problem, gpu))
        return [one for one in found if all(getattr(one, name) == value for name, value in wanted.items())] or found

    with patch.object(gemm_time, "shapes", some), config.cache.override(False):
        yield


def of_units(arch: str, units: int) -> Pipeline | None:
    """The pipeline of a GPU of that architecture with so many multiprocessors; None for 0: the architecture's own."""
    if not units:
        return None
    device = for_arch(arch)
    few = replace(device.units, count=units)
    return with_target(PIPELINE, replace(device, name=f"{device.name}-of-{units}", units=few))
