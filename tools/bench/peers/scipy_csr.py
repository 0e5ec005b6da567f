# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SciPy: compressed rows times a dense matrix, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import scipy.sparse

from bench.sparse_product import SparseProduct


class ScipyCsr(SparseProduct):
    """`csr_array @ x`; SciPy allocates the result."""

    settings = "csr_array @ x, one thread"

    def version(self) -> str:
        """The package's version."""
        return scipy.__version__

    def prepare(self, weight: np.ndarray, x: np.ndarray, threads: int) -> None:
        """Hold the operands."""
        self._weight, self._x = self.convert(weight), x

    def convert(self, weight: np.ndarray) -> Any:
        """The weight in this format."""
        return scipy.sparse.csr_array(weight)

    def run(self) -> None:
        """Multiply."""
        self._result = self._weight @ self._x


PEER = ScipyCsr
