# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of the device on the module change what passes in C++ decide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilewright import devices
from tilewright.devices.attribute import to_attribute
from tilewright.mlir import ir
from tilewright.mlir.passmanager import PassManager

FOLDER = Path(__file__).parent
#: A lit test of a pass and a limit -> a value with which the test is lowered otherwise.
LIMITS = [
    ("tile-prefetch-epilogues", "prefetch_cycles", 1 << 20),
    ("tile-prefetch-epilogues", "fma_per_cycle", 1),
    ("tile-prefetch-epilogues", "fma_latency", 1 << 20),
    ("tile-prefetch-epilogues", "line_bytes", 128),
    ("tile-prefetch-rows", "prefetch_l1_bytes", 0),
    ("tile-prefetch-rows", "function_work", 0),
    ("tile-prefetch-rows", "hiding_work", 1 << 20),
    ("tile-overlap-tasks", "function_work", 0),
    ("tile-overlap-tasks", "hiding_work", 1 << 20),
    ("tile-groups-to-kernels-open-prefetch", "prefetch_tiles", 2),
    ("tile-groups-to-kernels-open-prefetch", "prefetch_few_tiles", 2),
    ("tile-groups-to-kernels-open-prefetch", "line_bytes", 128),
]


def lowered(name: str, limits: dict[str, int]) -> str:
    """All modules of a lit test, lowered by its pass for a CPU with `limits`."""
    tested = name.removesuffix("-open-prefetch")
    base = devices.get("cpu:amd-zen4")
    device = replace(base, limits=tuple({**dict(base.limits), **limits}.items()))
    found = []
    for part in (FOLDER / f"{name}.mlir").read_text().split("// -----"):
        with ir.Context() as context:
            context.allow_unregistered_dialects = True
            module = ir.Module.parse(part)
            module.operation.attributes["tile.device"] = to_attribute(device)
            PassManager.parse(f"builtin.module({tested})").run(module.operation)
            del module.operation.attributes["tile.device"]
            found.append(str(module))
    return "\n".join(found)


@pytest.mark.parametrize(("name", "limit", "value"), LIMITS)
def test_a_limit_of_the_device_changes_the_code(name: str, limit: str, value: int) -> None:
    assert lowered(name, {limit: value}) != lowered(name, {})
