# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch: layout CSR times a dense matrix."""

from __future__ import annotations

import numpy as np
import torch

from bench.sparse_product import SparseProduct


class TorchCsr(SparseProduct):
    """`torch.mm` into kept memory, in inference mode."""

    settings = "layout sparse_csr, torch.mm with out="

    def version(self) -> str:
        """The package's version."""
        return torch.__version__

    def prepare(self, weight: np.ndarray, x: np.ndarray, threads: int) -> None:
        """Hold the operands."""
        torch.set_num_threads(threads)
        self._weight, self._x = self.convert(torch.from_numpy(weight)), torch.from_numpy(x)
        self._result = torch.empty(weight.shape[0], x.shape[1])

    def convert(self, weight: torch.Tensor) -> torch.Tensor:
        """The weight in this format."""
        return weight.to_sparse_csr()

    def run(self) -> None:
        """Multiply."""
        with torch.inference_mode():
            torch.mm(self._weight, self._x, out=self._result)


PEER = TorchCsr
