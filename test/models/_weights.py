# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random weights of sensible scale: activations keep a variance near one through the depth of the network."""

from __future__ import annotations

import numpy as np


class Weights:
    """A seeded source of float32 weights."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        """N(0, scale^2)."""
        return self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def linear(self, outputs: int, inputs: int, gain: float = 1.0) -> np.ndarray:
        """[outputs, inputs] with variance gain^2 / inputs."""
        return self.normal(outputs, inputs, scale=gain / np.sqrt(inputs))

    def conv(self, outputs: int, inputs: int, *window: int, gain: float = 2.0**0.5) -> np.ndarray:
        """[outputs, inputs, *window] with He's scale (inputs = channels of one group)."""
        return self.normal(outputs, inputs, *window, scale=gain / np.sqrt(inputs * np.prod(window)))

    def near_one(self, size: int, spread: float = 0.1) -> np.ndarray:
        """A scale vector around one."""
        return np.float32(1) + self.normal(size, scale=spread)

    def positive(self, size: int) -> np.ndarray:
        """A variance vector in [0.5, 1.5)."""
        return self.random.random(size, dtype=np.float32) + np.float32(0.5)
