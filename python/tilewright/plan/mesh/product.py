# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices on a mesh: what is multiplied, how it lies, and what all algorithms share.

The grid has ``height`` x ``width`` cores. Of C = A B, core (I, J) holds block (I, J) of C. The summed dimension is cut
into ``blocks`` = lcm(height, width) pieces: a core holds ``blocks / width`` tiles of A and ``blocks / height`` tiles of
B, on a square grid one of each (WaferLLM, OSDI 2025, section 5: "partition into lcm(Nh, Nw) tiles").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import Any, Literal

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.kernels import Fill, MatMul, Store
from tilewright.plan.mesh.terms import Condition, TermLike, X, Y
from tilewright.plan.mesh.writer import Writer, cores, slot
from tilewright.sim.coremesh.program import Order, Slot

Skew = Literal["host", "run"]
ALL = cores()


@dataclass(frozen=True)
class Product:
    """One product ``[m, k] @ [k, n]`` on a grid.

    Attributes:
        dtype: of both operands in memory; ``accumulator``: of sums; ``result``: of C in memory (default: of operands).
        skew_a, skew_b: who aligns an operand of a shifting algorithm: the ``host``, which writes weights where they are
            needed first, or the program at ``run`` time, for what the chip itself made.
    """

    m: int
    k: int
    n: int
    height: int
    width: int
    dtype: Any = np.float32
    accumulator: Any = None
    result: Any = None
    skew_a: Skew = "host"
    skew_b: Skew = "host"
    blocks: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("m", "k", "n", "height", "width"):
            if getattr(self, name) < 1:
                raise UserError(f"A product on a mesh needs {name} >= 1, and has {name} = {getattr(self, name)}.")
        for name in ("skew_a", "skew_b"):
            if getattr(self, name) not in ("host", "run"):
                raise UserError(f"{name} is '{getattr(self, name)}': operands are aligned by 'host' or at 'run' time.")
        dtype = np.dtype(self.dtype)
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "accumulator", np.dtype(self.accumulator or dtype))
        object.__setattr__(self, "result", np.dtype(self.result or dtype))
        object.__setattr__(self, "blocks", self.height * self.width // gcd(self.height, self.width))

    @property
    def tile(self) -> tuple[int, int, int]:
        """Rows of A, numbers summed, columns of B in one core's product of one round; the last cores' are padded."""
        return -(-self.m // self.height), -(-self.k // self.blocks), -(-self.n // self.width)

    @property
    def held_a(self) -> int:
        """Tiles of A that a core holds."""
        return self.blocks // self.width

    @property
    def held_b(self) -> int:
        """Tiles of B that a core holds."""
        return self.blocks // self.height


class Accumulator:
    """C of a product: zero at first, in the accumulator's type, then an output in the result's.

    Attributes:
        tile: the slot.
    """

    def __init__(self, writer: Writer, product: Product, order: Order) -> None:
        self._writer, self._product, self._order = writer, product, order
        m, _, n = product.tile
        self._shape = (m, n)
        self.name = writer.buffer("C", self._shape, product.accumulator)
        self.tile = slot(self.name)
        writer.compute(ALL, Fill(self._shape, product.accumulator), (), (self.tile,))

    def add(self, a: Slot, b: Slot, *where: Condition) -> None:
        """Add the product of two tiles."""
        who = cores(*where, order=self._order)
        self._writer.compute(who, MatMul(self._product.accumulator), (a, b, self.tile), (self.tile,))

    def finish(self, name: str = "C", block: tuple[TermLike, TermLike] = (Y, X)) -> str:
        """Round to the result's type, and say that this is an output. Returns the buffer."""
        product, home = self._product, self.rounded()
        self._writer.output(name, (product.m, product.n), slot(home), block, self._order)
        return home

    def rounded(self) -> str:
        """Round to the result's type. Returns the buffer."""
        product = self._product
        if product.result == product.accumulator:
            return self.name
        home = self._writer.buffer(f"{self.name}_rounded", self._shape, product.result)
        self._writer.compute(ALL, Store(product.result), (self.tile,), (slot(home),))
        return home
