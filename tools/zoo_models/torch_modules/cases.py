# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The modules of the table: what makes each, what makes its input of a size, and the dimensions that stay open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from zoo_models.torch_modules import written

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
TEXT = {**SMALL, "vocab_size": 100, "max_position_embeddings": 64}
DECODER = {**TEXT, "num_key_value_heads": 1, "use_cache": False}
CACHED = {**DECODER, "use_cache": True}
GPT2 = {"vocab_size": 100, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "use_cache": False}
DISTILBERT = {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
T5 = {"vocab_size": 100, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}


@dataclass(frozen=True)
class Case:
    """A module.

    Attributes:
        make: makes it; in training mode where it has to be.
        inputs: an input of a size.
        axes: the dimensions of the input that stay open.
        breaks: whether Dynamo has to break its graph.
        tolerance: how far a result may be off, of its largest number.
    """

    make: Callable[[], Any]
    inputs: Callable[[int], Any]
    axes: tuple[int, ...] = (0,)
    breaks: bool = False
    tolerance: float = 1e-4


def rows(*shape: int, dtype: Any = None) -> Callable[[int], Any]:
    """Random numbers of [size, *shape]."""
    return lambda size: torch.randn(size, *shape).to(dtype)


def tokens(size: int) -> Any:
    """Numbers of tokens, [size, 6 + size]."""
    return torch.randint(0, 100, (size, 6 + size))


def convolutions() -> Any:
    """Layers of vision models, one behind the other."""
    first = [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.ConvTranspose2d(8, 4, 2, 2),
    ]
    last = [nn.GroupNorm(2, 4), nn.PixelShuffle(2), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(9, 5)]
    return nn.Sequential(*first, *last)


def encoder() -> Any:
    """Two layers of torch.nn, which take PyTorch's fast path."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)


def mlp() -> Any:
    """Products, a norm and an activation."""
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def embedding() -> Any:
    """A table of words."""
    return nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 3), nn.Softmax(-1))


def vision(name: str, **options: Any) -> Case:
    """A model of torchvision with random weights, for images of 64 x 64."""

    def make() -> Any:
        import torchvision

        return getattr(torchvision.models, name)(**options)

    return Case(make, rows(3, 64, 64))


def text(name: str, config: str, **options: Any) -> Case:
    """A small model of transformers with random weights; batch and length are open."""
    return Case(_of(name, config, options), tokens, (0, 1))


def _of(name: str, config: str, options: dict[str, Any]) -> Callable[[], Any]:
    def make() -> Any:
        import transformers

        return getattr(transformers, name)(getattr(transformers, config)(**options))

    return make


def _vision_transformer() -> Any:
    import torchvision

    return torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)


CASES: dict[str, Case] = {
    "mlp": Case(mlp, rows(8)),
    "mlp_bfloat16": Case(lambda: mlp().bfloat16(), rows(8, dtype=torch.bfloat16), tolerance=2e-2),
    "broken": Case(written.Broken, rows(16), breaks=True),
    "early_exit": Case(written.EarlyExit, rows(16)),
    "disabled": Case(written.Disabled, rows(16), breaks=True),
    "printing": Case(written.Printing, rows(16), breaks=True),
    "running": Case(written.Running, rows(16)),
    "detector": Case(written.Detector, rows(3, 17, 17)),
    "unet": Case(written.UNet, rows(3, 16, 16)),
    "encoder": Case(encoder, rows(10, 32)),
    "attention": Case(written.Attention, rows(7, 32)),
    "convolutions": Case(convolutions, rows(3, 16, 16)),
    "embedding": Case(embedding, tokens, (0, 1)),
    "resnet18": vision("resnet18"),
    "mobilenet_v3_small": vision("mobilenet_v3_small"),
    "squeezenet1_1": vision("squeezenet1_1"),
    "shufflenet_v2_x0_5": vision("shufflenet_v2_x0_5"),
    "vision_transformer": Case(_vision_transformer, rows(3, 32, 32)),
    "bert": text("BertModel", "BertConfig", **TEXT),
    "distilbert": text("DistilBertModel", "DistilBertConfig", **DISTILBERT),
    "gpt2": text("GPT2LMHeadModel", "GPT2Config", **GPT2),
    "llama": text("LlamaForCausalLM", "LlamaConfig", **DECODER),
    "llama_cache": text("LlamaForCausalLM", "LlamaConfig", **CACHED),
    "qwen2": text("Qwen2ForCausalLM", "Qwen2Config", **DECODER),
    "t5": text("T5EncoderModel", "T5Config", **T5),
    "vit": Case(_of("ViTModel", "ViTConfig", {"image_size": 32, "patch_size": 8, **SMALL}), rows(3, 32, 32)),
    "albert": text("AlbertModel", "AlbertConfig", embedding_size=16, **TEXT),
    "electra": text("ElectraModel", "ElectraConfig", embedding_size=16, **TEXT),
    "clip_text": text("CLIPTextModel", "CLIPTextConfig", **TEXT),
}
