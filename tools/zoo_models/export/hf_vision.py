# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vision models of transformers with small configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import transformers as hf

from .hf_text import mask, tokens
from .torch_export import TorchModel

BATCHES = ({"batch": 2}, {"batch": 1}, {"batch": 5})


def images(module: torch.nn.Module, size: int, call: Callable, outputs: Sequence[str]) -> TorchModel:
    """A module that takes images of one size and any batch."""

    def inputs(sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
        return {"pixel_values": torch.randn(sizes["batch"], 3, size, size)}

    return TorchModel(module, inputs, {"pixel_values": {0: "batch"}}, BATCHES, call, outputs)


def vision(name: str, size: int = 32, head: str = "Model", result: str = "last_hidden_state", **configuration: Any):
    """A vision model of transformers."""

    def make() -> TorchModel:
        torch.manual_seed(0)
        kind = getattr(hf, f"{name}Config")
        module = getattr(hf, f"{name}{head}")(kind(**configuration)).eval()
        return images(module, size, lambda m, x: [getattr(m(x["pixel_values"]), result)], [result])

    return make


def clip() -> TorchModel:
    """CLIP: scores of images for texts, with any number of each."""
    torch.manual_seed(0)
    text = {"vocab_size": 97, "max_position_embeddings": 24, "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}
    parts = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    configuration = hf.CLIPConfig(
        text_config=parts | text, vision_config=parts | {"image_size": 32, "patch_size": 8}, projection_dim=16
    )
    module = hf.CLIPModel(configuration).eval()

    def inputs(sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
        b, s = sizes["texts"], sizes["sequence"]
        return {
            "input_ids": tokens(b, s),
            "attention_mask": mask(b, s),
            "pixel_values": torch.randn(sizes["images"], 3, 32, 32),
        }

    axes = {0: "texts", 1: "sequence"}
    return TorchModel(
        module,
        inputs,
        {"input_ids": axes, "attention_mask": axes, "pixel_values": {0: "images"}},
        (
            {"texts": 3, "sequence": 7, "images": 2},
            {"texts": 1, "sequence": 11, "images": 4},
            {"texts": 5, "sequence": 20, "images": 1},
        ),
        lambda m, x: [m(**x).logits_per_image],
        ["logits_per_image"],
    )


VIT = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
STAGES = {"depths": [1, 1], "num_stages": 2, "hidden_sizes": [16, 32]}
SWIN = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
SEGFORMER = {
    "num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [4, 2], "hidden_sizes": [16, 32], "patch_sizes": [7, 3],
    "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16,
}  # fmt: skip
MOBILEVIT = {
    "image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 16, 24, 32],
    "num_attention_heads": 4,
}  # fmt: skip
MODELS: dict[str, Callable[[], TorchModel]] = {
    "vit": vision("ViT", **VIT),
    "deit": vision("DeiT", **VIT),
    "beit": vision("Beit", use_relative_position_bias=True, **VIT),
    "dinov2": vision("Dinov2", **VIT),
    "swin": vision("Swin", **SWIN),
    "convnext": vision("ConvNext", 32, **STAGES),
    "segformer": vision("Segformer", 64, "ForSemanticSegmentation", "logits", **SEGFORMER),
    "mobilevit": vision("MobileViT", 64, **MOBILEVIT),
    "clip": clip,
    "clip_vision": vision("CLIPVision", **VIT),
}
