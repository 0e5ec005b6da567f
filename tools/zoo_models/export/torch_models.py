# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of PyTorch itself and of torchvision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torchvision

from .hf_text import TEXT_SIZES, mask
from .hf_vision import images
from .torch_export import TorchModel


def transformer_encoder() -> TorchModel:
    """torch.nn.TransformerEncoder with a mask of padding."""
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)  # one fused operation, which the exporter by tracing refuses
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
    module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    def inputs(sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
        b, s = sizes["batch"], sizes["sequence"]
        return {"hidden": torch.randn(b, s, 32), "padding": mask(b, s) == 0}

    axes = {0: "batch", 1: "sequence"}
    return TorchModel(
        module,
        inputs,
        {"hidden": axes, "padding": axes},
        TEXT_SIZES,
        lambda m, x: [m(x["hidden"], src_key_padding_mask=x["padding"])],
        ["encoded"],
    )


def classifier(name: str, size: int = 64, **options: Any) -> Callable[[], TorchModel]:
    """A classifier of torchvision."""

    def make() -> TorchModel:
        torch.manual_seed(0)
        module = settled(torchvision.models.get_model(name, weights=None, num_classes=10, **options))
        return images(module, size, lambda m, x: [m(x["pixel_values"])], ["logits"])

    return make


def segmentation(name: str, size: int = 64) -> Callable[[], TorchModel]:
    """A segmentation network of torchvision."""

    def make() -> TorchModel:
        torch.manual_seed(0)
        options = {"weights": None, "weights_backbone": None, "num_classes": 5}
        module = settled(torchvision.models.get_model(name, **options))
        return images(module, size, lambda m, x: [m(x["pixel_values"])["out"]], ["out"])

    return make


def detection(name: str, size: int = 64, scaled: bool = True) -> Callable[[], TorchModel]:
    """A detector of torchvision: boxes, scores and labels of one image, as many as it finds.

    `scaled`: it takes the size that it scales images to. One that does not is SSDLite, whose weights at the start give
    each box the same score: which of them are suppressed would be chance.
    """

    def make() -> TorchModel:
        torch.manual_seed(0)
        sides = {"min_size": size, "max_size": size} if scaled else {"detections_per_img": 20}
        module = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=4, **sides).eval()
        if not scaled:
            told_apart(module)

        def call(m: torch.nn.Module, x: dict[str, torch.Tensor]) -> list[torch.Tensor]:
            found = m([x["image"]])[0]
            return [found[name] for name in ("boxes", "scores", "labels")]

        return TorchModel(
            module,
            lambda sizes: {"image": torch.rand(3, size, size)},
            {},
            ({}, {}),
            call,
            ["boxes", "scores", "labels"],
        )

    return make


def told_apart(detector: torch.nn.Module) -> torch.nn.Module:
    """Weights that do not shrink what they are given, and scores neither equal nor all near one."""
    for part in settled(detector).modules():
        if isinstance(part, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(part.weight)
    for weight in detector.head.classification_head.parameters():
        weight.data.mul_(0.3)
    return detector


def settled(module: torch.nn.Module) -> torch.nn.Module:
    """Statistics of batch normalization as after some training: with those at the start deep networks overflow."""
    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.running_mean, -0.1, 0.1)
            torch.nn.init.uniform_(part.running_var, 0.8, 1.2)
    return module.eval()


MODELS: dict[str, Callable[[], TorchModel]] = {
    "transformer_encoder": transformer_encoder,
    "resnet18": classifier("resnet18"),
    "mobilenet_v2": classifier("mobilenet_v2"),
    "mobilenet_v3_small": classifier("mobilenet_v3_small"),
    "efficientnet_b0": classifier("efficientnet_b0"),
    "shufflenet_v2": classifier("shufflenet_v2_x0_5"),
    "squeezenet1_1": classifier("squeezenet1_1"),
    "densenet121": classifier("densenet121"),
    "regnet_y_400mf": classifier("regnet_y_400mf"),
    "convnext_tiny": classifier("convnext_tiny", 32),
    "swin_t": classifier("swin_t"),
    "googlenet": classifier("googlenet", aux_logits=False, init_weights=False),
    "fcn_resnet50": segmentation("fcn_resnet50"),
    "deeplabv3_mobilenet": segmentation("deeplabv3_mobilenet_v3_large"),
    "lraspp_mobilenet": segmentation("lraspp_mobilenet_v3_large"),
    "retinanet": detection("retinanet_resnet50_fpn"),
    "ssdlite": detection("ssdlite320_mobilenet_v3_large", scaled=False),
    "fasterrcnn_mobilenet": detection("fasterrcnn_mobilenet_v3_large_320_fpn"),
}
