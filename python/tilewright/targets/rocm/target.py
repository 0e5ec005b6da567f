# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target ``rocm``: AMD GPUs. Kernels become text, which nothing here runs; it is untested on hardware."""

from __future__ import annotations

from tilewright.targets.base import Target


class RocmTarget(Target):
    """An AMD GPU by its architecture, e.g. ``rocm:gfx942``."""

    kind = "rocm"
    refusal = "{t.name!r} is text only, and untested on hardware: tilewright.targets.rocm.assembly makes it of kernels"

    def check_name(self) -> None:
        """Take every string: what there is code for is asked by `assembly`."""
