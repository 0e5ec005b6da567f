# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch: two of four times a dense matrix, where PyTorch has it (of 2.13: not on CPUs)."""

from __future__ import annotations

import torch

from bench.peers.torch_csr import TorchCsr


class TorchSemi(TorchCsr):
    """`torch.sparse.to_sparse_semi_structured`."""

    settings = "semi-structured (two of four)"

    def convert(self, weight: torch.Tensor) -> torch.Tensor:
        """The weight in this format. Raises RuntimeError where the device has none."""
        return torch.sparse.to_sparse_semi_structured(weight)


PEER = TorchSemi
