# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of code for other CPUs than the one that they run on."""

from __future__ import annotations

import pytest

from tilewright.runtime.cpu.cpu_features import host_features
from tilewright.targets import registry


def has_avx512() -> bool:
    """Whether this CPU has vectors of 512 bits: plans for it are those of such machines."""
    return "avx512f" in host_features()


def skip_where_it_cannot_run(target: str) -> None:
    """Skip what is left of a test, which has compiled, where this CPU lacks instructions of a target `cpu:...`."""
    if not target.startswith("cpu"):
        return
    missing = set(registry.parse_target(target).needed) - host_features()
    if missing:
        pytest.skip(f"compiled for {target}; this CPU cannot run that without {', '.join(sorted(missing))}")
