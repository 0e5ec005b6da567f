# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of timm, drawn by a seed among those that are small enough."""

from __future__ import annotations

import random
from collections.abc import Callable

import timm
import torch

from .hf_vision import images
from .torch_export import TorchModel
from .torch_models import settled

SEED = 22
COUNT = 12
LARGEST = 8_000_000  # parameters
WORDS = ("tiny", "nano", "pico", "atto", "femto", "small", "xxs", "_xs", "mini", "lite", "050", "s0", "b0", "test_")


def family(name: str) -> str:
    """What a name begins with: a draw takes one model of each."""
    return name.split("_")[0].rstrip("0123456789")


def drawn() -> list[str]:
    """The names: of each family at most one, whose name says that it is small."""
    names = [name for name in timm.list_models() if any(word in name for word in WORDS)]
    random.Random(SEED).shuffle(names)
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(family(name), name)
    return list(found.values())


def model(name: str) -> TorchModel:
    """One of them, at the smallest image that it takes."""
    torch.manual_seed(0)
    kept: Exception | None = None
    for size in (64, 96, 128, 224, 256):
        for options in ({}, {"img_size": size}):
            try:
                module = settled(timm.create_model(name, num_classes=10, **options))
                with torch.no_grad():
                    module(torch.zeros(1, 3, size, size))
            except Exception as error:
                kept = error
                continue
            return images(module, size, lambda m, x: [m(x["pixel_values"])], ["logits"])
    raise ValueError(f"{name} takes none of the sizes tried") from kept


def small(name: str) -> bool:
    """Whether the model is small enough, by the number of its parameters."""
    with torch.device("meta"):
        module = timm.create_model(name, num_classes=10)
    return sum(p.numel() for p in module.parameters()) <= LARGEST


def models() -> dict[str, Callable[[], TorchModel]]:
    """The first small ones of the draw."""
    found: dict[str, Callable[[], TorchModel]] = {}
    for name in drawn():
        if len(found) < COUNT and small(name):
            found[name] = lambda name=name: model(name)
    return found
