# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules written for the table: graph breaks, results of several kinds, state, and layers of vision models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


class Broken(nn.Module):
    """A branch on data, which breaks the graph, and results of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: Any) -> dict[str, Any]:
        """x [n, 16]."""
        y = self.first(x).relu()
        y = -y if y.sum() > 0 else y + 1
        return {"out": self.last(y), "parts": (y, [x * 2])}


class EarlyExit(nn.Module):
    """Layers until the result is sure enough: a loop that data ends, which Python runs; its body is compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.head = nn.Linear(16, 4)

    def turn(self, x: Any, layer: Any) -> Any:
        """One layer, and the scores after it."""
        x = x + layer(x).tanh()
        return x, self.head(x).softmax(-1)

    def forward(self, x: Any) -> Any:
        """x [n, 16]."""
        for layer in self.layers:
            x, scores = self.turn(x, layer)
            if scores.amax(-1).min() > 0.99:
                break
        return scores


@torch.compiler.disable
def _outside(x: Any) -> Any:
    """What is never traced; that its result has as many rows as a call brings, PyTorch cannot know."""
    result = torch.from_numpy(x.numpy()[::-1].copy())
    torch._dynamo.mark_dynamic(result, 0)
    return result


class Disabled(nn.Module):
    """A function that a user keeps out of what is compiled, between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: Any) -> Any:
        """x [n, 16]."""
        return self.last(_outside(self.first(x).relu()))


class Printing(nn.Module):
    """What Python does beside: it prints, and counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 16)
        self.calls = 0

    def forward(self, x: Any) -> Any:
        """x [n, 16]."""
        self.calls += 1
        y = self.first(x).relu()
        print("called", file=_Nowhere())
        return self.last(y) + x


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


class Running(nn.Module):
    """Buffers that a call changes: running statistics in training mode, and a count."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(16, 8), nn.BatchNorm1d(8)
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x: Any) -> Any:
        """x [n, 16]; the norm goes by the batch whatever the mode of the module is."""
        self.norm.train()
        y = self.norm(self.layer(x))
        self.total += y.sum(0)
        return y, self.total.clone()


@dataclass
class Detected:
    """A result that is an object of a class of the user's."""

    boxes: Any
    scores: list[Any]


class Detector(nn.Module):
    """A result that is a dataclass, and one that is a view of another."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3, stride=2)
        self.boxes, self.scores = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        """x [n, 3, h, w]."""
        features = self.body(x).relu()
        boxes = self.boxes(features).flatten(2)
        return Detected(boxes, [boxes.transpose(1, 2), self.scores(features).sigmoid()])


class UNet(nn.Module):
    """Down, up and across."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)])
        self.up = nn.Conv2d(24, 8, 3, padding=1)
        self.norm = nn.InstanceNorm2d(8, affine=True)

    def forward(self, x: Any) -> Any:
        """x [n, 3, h, w], h and w even."""
        first = self.down[0](x).relu()
        second = nn.functional.silu(self.down[1](first))
        wide = nn.functional.interpolate(second, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.norm(self.up(torch.cat([first, wide], 1)))


class Attention(nn.Module):
    """Attention to itself, with its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        """x [n, tokens, 32]."""
        return self.inner(x, x, x)
