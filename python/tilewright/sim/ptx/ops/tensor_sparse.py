# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What mma.sp and wgmma.mma_async.sp share: the operands that say where the kept elements of a belong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.numbers.sparse import UndefinedMetadata, expand_sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.decoder import Decoder
    from tilewright.sim.ptx.syntax.tree import Operand


@dataclass(frozen=True)
class Metadata:
    """The metadata of an instruction.

    Attributes:
        read: reader of the metadata register.
        selector: which lanes of four have what counts.
        bits: of an element of a.
        ordered: whether positions must ascend.
    """

    read: Callable[[Step], np.ndarray]
    selector: int
    bits: int
    ordered: bool

    @staticmethod
    def of(decode: Decoder, operands: tuple[Operand, Operand], depth: int, bits: int, ordered: bool) -> Metadata:
        """The register and the selector of a product of `depth` terms, checked.

        The lanes of a group of four are shared out to depth / 16 of them (16-bit elements).
        """
        selector = decode.constant(operands[1])
        members = depth * max(1, bits // 16) // 16
        if not 0 <= selector < 4 // members:
            choices = 4 // members
            decode.wrong(f"the sparsity selector must be below {choices} for {bits}-bit elements here, not {selector}")
        return Metadata(decode.source(operands[0], "b32"), selector, bits, ordered)

    def expand(self, step: Step, stored: np.ndarray) -> np.ndarray:
        """The kept elements of each warp, ``(W, 16, K/2)``, where they belong: ``(W, 16, K)``."""
        words = step.full(self.read(step)).reshape(-1, 32)
        try:
            return expand_sparse(stored, words, self.selector, self.bits, self.ordered)
        except UndefinedMetadata as error:
            where = np.arange(step.n) // 32 == error.warp
            step.fail("metadata", f"{step.ins.op}: {error}", where)
