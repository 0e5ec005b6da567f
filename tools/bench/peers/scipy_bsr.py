# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SciPy: blocks of 32 x 32 times a dense matrix, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from bench.peers.scipy_csr import ScipyCsr
from bench.sparse_product import BLOCK


class ScipyBsr(ScipyCsr):
    """`bsr_array @ x`; SciPy allocates the result."""

    settings = "bsr_array of 32 x 32 @ x, one thread"

    def convert(self, weight: np.ndarray) -> Any:
        """The weight in this format."""
        return scipy.sparse.bsr_array(weight, blocksize=BLOCK)


PEER = ScipyBsr
