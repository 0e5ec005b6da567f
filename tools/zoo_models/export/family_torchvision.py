# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own encoder and torchvision, by the exporters of PyTorch."""

from __future__ import annotations

from pathlib import Path

from .torch_export import Variant, by_exporters
from .torch_models import MODELS


def variants(_out: Path) -> dict[str, Variant]:
    """Each model by the exporter that traces, two by the other one too."""
    captured = {name: MODELS[name] for name in ("transformer_encoder", "resnet18")}
    return by_exporters(MODELS, ("script",)) | by_exporters(captured, ("dynamo",))
