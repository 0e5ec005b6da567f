# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch: layout BSR, blocks of 32 x 32, times a dense matrix."""

from __future__ import annotations

import torch

from bench.peers.torch_csr import TorchCsr
from bench.sparse_product import BLOCK


class TorchBsr(TorchCsr):
    """`torch.mm` into kept memory, in inference mode."""

    settings = "layout sparse_bsr of 32 x 32, torch.mm with out="

    def convert(self, weight: torch.Tensor) -> torch.Tensor:
        """The weight in this format."""
        return weight.to_sparse_bsr(BLOCK)


PEER = TorchBsr
