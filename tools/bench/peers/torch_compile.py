# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch.compile (Inductor) on the module that bench.onnx_torch makes."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import torch
import torch._inductor.config

from bench.onnx_torch import convert
from bench.peers.torch import Torch, special


class TorchCompile(Torch):
    """Inductor with constant folding of weights (freezing), default mode, static shapes."""

    settings = "inductor, freezing, default mode, static shapes, kept memory"

    def function(self, proto: onnx.ModelProto) -> Callable[..., object]:
        """The compiled module."""
        torch._inductor.config.freezing = True
        torch._dynamo.config.cache_size_limit = 64
        fused = special(proto, self._inputs)
        attention = fused is not None and len(self._inputs) == 3
        module = fused if attention else convert(proto)
        return torch.compile(module, dynamic=False)


PEER = TorchCompile
