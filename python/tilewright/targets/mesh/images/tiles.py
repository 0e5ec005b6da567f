# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one core has of a convolution as a product, for `cutting.cuts`: parts of it read one image."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.targets.mesh.cutting.cuts import Tiles
from tilewright.targets.mesh.cutting.parts import Parts


@dataclass(frozen=True)
class WindowTiles(Tiles):
    """Windows as rows of a matrix; `k` counts places of a window.

    Attributes:
        channels: of one place.
        image: bytes of what windows are read from, until the last part is made.
    """

    channels: int = 1
    image: int = 0

    @property
    def least(self) -> int:
        """Bytes of each tile once, of one part."""
        depth = self.k * self.channels
        return (self.m * depth + depth * self.n) * self.operand + self.m * self.n * self.result

    def beside(self, parts: Parts) -> int:
        """Of several parts, the image, and the result so far."""
        return 0 if parts.count == 1 else self.image + self.m * self.n * self.result

    def joining(self, parts: Parts) -> int:
        """Bytes where results are added or joined, beside the image."""
        return 0 if parts.count == 1 else self.image + super().joining(parts)
