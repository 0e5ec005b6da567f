# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tilewright again, compiled for the sizes of the inputs alone: what one compilation for all sizes is measured by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import tilewright as tw
from bench.peers.tilewright import Tilewright


class Specialized(Tilewright):
    """`tw.compile(model, shapes=...)`."""

    settings = "sizes known when it was compiled"

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Compile for these shapes."""
        shapes = {name: array.shape for name, array in inputs.items()}
        self._model = tw.compile(str(model), target="cpu", threads=threads, shapes=shapes)
        self._allocate(inputs)


PEER = Specialized
