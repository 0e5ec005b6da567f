# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""transformers, by both exporters of PyTorch."""

from __future__ import annotations

from pathlib import Path

from .hf_models import MODELS
from .torch_export import Variant, by_exporters

#: What torch.export captures too: it takes ten times as long as the exporter that traces.
CAPTURED = {
    "bert", "distilbert", "roberta", "xlm_roberta", "albert", "mpnet", "electra", "deberta_v2", "modernbert",
    "squeezebert", "mobilebert", "convbert", "roformer", "gpt2_past", "llama_past", "t5", "vit",
}  # fmt: skip
#: What the exporter that traces refuses: Fourier transforms and differences.
CAPTURED_ONLY = {"fnet", "whisper"}


def variants(_out: Path) -> dict[str, Variant]:
    """Each model by the exporter that traces, some by the other one too or alone."""
    traced = {name: make for name, make in MODELS.items() if name not in CAPTURED_ONLY}
    captured = {name: make for name, make in MODELS.items() if name in CAPTURED | CAPTURED_ONLY}
    return by_exporters(traced, ("script",)) | by_exporters(captured, ("dynamo",))
