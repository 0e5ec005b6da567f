# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rungs that faults are drawn for, in the ladder's order."""

from __future__ import annotations

from bench.gpu.ladder.faulty.boxes import Boxes
from bench.gpu.ladder.faulty.family import Family
from bench.gpu.ladder.faulty.launches import Launches
from bench.gpu.ladder.faulty.products import Products
from bench.gpu.ladder.faulty.rings import Rings

FAMILIES: tuple[Family, ...] = (Launches(), Boxes(), Products(), Rings())
