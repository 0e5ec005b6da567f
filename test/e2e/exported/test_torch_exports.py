# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ten modules of PyTorch as its tracing exporter writes them for opset 11, and as ONNX Runtime's optimizer does then.

Without PyTorch it is skipped; `test_optimized_files.py` has such graphs by hand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from test_optimized_files import LEVELS, agree, session

import tilewright as tw

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # pyright: ignore[reportMissingImports]
from torch.nn import functional  # noqa: E402  # pyright: ignore[reportMissingImports]


class Layer(nn.Module):
    """An encoder's layer with a mask, or a decoder's: causal, with its norms ahead."""

    def __init__(self, causal: bool, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.causal, self.heads = causal, heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.register_buffer("triangle", torch.tril(torch.ones(1, 1, 32, 32)).bool())

    def attend(self, x, mask):
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (y.view(split).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / split[3] ** 0.5
        if self.causal:
            scores = scores.masked_fill(~self.triangle[:, :, :length, :length], -1e9)
        else:
            scores = scores + ((1.0 - mask.float()) * -10000.0)[:, None, None]
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x, mask=None):
        if self.causal:
            x = x + self.attend(self.norms[0](x), mask)
            return x + self.inner(self.norms[1](x))
        x = self.norms[0](x + self.attend(x, mask))
        return self.norms[1](x + self.inner(x))


class Small(nn.Module):
    """MobileNet's blocks."""

    def __init__(self) -> None:
        super().__init__()
        first = [nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 8, 3, 1, 1, groups=8)]
        last = [nn.BatchNorm2d(8), nn.Hardswish(), nn.Conv2d(8, 16, 1), nn.SiLU()]
        pool = nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False)
        self.body, self.head = nn.Sequential(*first, *last, pool), nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class Shaped(nn.Module):
    """A U with a skip, and a bilinear end."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
        self.up, self.last, self.bent = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 2, 1), nn.PReLU(8)

    def forward(self, x):
        y = self.bent(self.first(x))
        joined = torch.cat([y, self.up(functional.leaky_relu(self.down(y)))], 1)
        return functional.interpolate(self.last(joined), scale_factor=2, mode="bilinear", align_corners=False)


class Excited(nn.Module):
    """Group norm, squeeze and excitation, reflection, the largest places."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(4, 16)
        parts = [nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 4, 1), nn.ReLU(), nn.Conv2d(4, 16, 1), nn.Hardsigmoid()]
        self.share = nn.Sequential(*parts)

    def forward(self, x):
        y = functional.elu(self.norm(self.conv(x)))
        y = y * self.share(y) + y
        return functional.pad(y, (1, 1, 2, 0), mode="reflect").amax((2, 3)), y.flatten(2).topk(3, -1)[0]


class Tagger(nn.Module):
    """A bidirectional LSTM over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cells = nn.Embedding(30, 8), nn.LSTM(8, 12, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 4)

    def forward(self, ids):
        y, (h, _) = self.cells(self.words(ids))
        return self.head(y).log_softmax(-1), h


class Gated(nn.Module):
    """A GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.cells, self.head = nn.GRU(6, 10), nn.Linear(10, 3)

    def forward(self, x):
        y, h = self.cells(x)
        return torch.sigmoid(self.head(y)), h


class Picked(nn.Module):
    """Indices, conditions, running sums."""

    def forward(self, x, at):
        y = x[:, at]
        bent = torch.where(y > 0, y, y.exp() - 1)
        rows = torch.gather(x, 1, at[None].expand(x.shape[0], -1))
        return bent.cumsum(1), rows, (x[:, ::2] ** 2).sum(-1).sqrt(), x.masked_fill(x < 0, 0.5).argmax(-1)


class Boxes(nn.Module):
    """A detector's end."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, 2, 1)
        self.register_buffer("anchors", torch.rand(1, 16, 2))

    def forward(self, x):
        y = self.conv(x).flatten(2).transpose(1, 2)
        middle, size = torch.sigmoid(y[..., :2]) + self.anchors, y[..., 2:4].clamp(max=4.0).exp()
        return torch.cat([middle - size / 2, middle + size / 2], -1), *y[..., 4:].softmax(-1).max(-1)


class Dense(nn.Module):
    """Activations of all kinds between dense layers, a normalized product."""

    def __init__(self) -> None:
        super().__init__()
        parts = [nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 20), nn.Softplus(), nn.Dropout(), nn.Linear(20, 20)]
        self.body, self.last = nn.Sequential(*parts, nn.Mish(), nn.LayerNorm(20)), nn.Parameter(torch.randn(20, 7))

    def forward(self, x):
        y = self.body(x)
        return functional.normalize(y @ self.last, dim=-1), (y[:, :, None] * y[:, None]).logsumexp(-1)


def _words(n: int) -> tuple:
    return (torch.randint(0, 30, (n, 4 + n)),)


def _masked(n: int) -> tuple:
    return torch.randn(n, 5 + n, 32), (torch.rand(n, 5 + n) > 0.3).long()


#: by name: the module, its inputs for a number, and the open dimensions of each
MODULES: dict[str, tuple[Callable[[], Any], Callable[[int], tuple], list[dict[int, str]]]] = {
    "encoder": (lambda: Layer(False), _masked, [{0: "batch", 1: "length"}] * 2),
    "decoder": (lambda: Layer(True), lambda n: (torch.randn(n, 3 * n, 32),), [{0: "batch", 1: "length"}]),
    "small": (Small, lambda n: (torch.randn(n, 3, 15, 16),), [{0: "batch"}]),
    "shaped": (Shaped, lambda n: (torch.randn(n, 3, 8, 8 + 2 * n),), [{0: "batch", 3: "width"}]),
    "excited": (Excited, lambda n: (torch.randn(n, 3, 8, 8),), [{0: "batch"}]),
    "tagger": (Tagger, _words, [{0: "batch", 1: "length"}]),
    "gated": (Gated, lambda n: (torch.randn(3 + n, n, 6),), [{0: "length", 1: "batch"}]),
    "picked": (Picked, lambda n: (torch.randn(n, 9), torch.tensor([1, 4, 8, 0])), [{0: "batch"}, {}]),
    "boxes": (Boxes, lambda n: (torch.randn(n, 3, 8, 8),), [{0: "batch"}]),
    "dense": (Dense, lambda n: (torch.randn(n, 10),), [{0: "batch"}]),
}


def exported(name: str, folder: Path) -> tuple[Path, list[str]]:
    """The module's file of opset 11, and the names of its inputs."""
    torch.manual_seed(0)
    make, inputs, opens = MODULES[name]
    given = inputs(2)
    names = [f"x{i}" for i in range(len(given))]
    axes = {n: dims for n, dims in zip(names, opens, strict=True) if dims}
    path = folder / "raw.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"opset_version": 11, "input_names": names, "dynamic_axes": axes, "dynamo": False}
        torch.onnx.export(make().eval(), given, str(path), **options)
    return path, names


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_all_levels(name, tmp_path):
    """One artifact each of the exported file and of what the optimizer makes of it at three levels."""
    path, names = exported(name, tmp_path)
    plain = session(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    for level in (None, *LEVELS):
        written = path if level is None else tmp_path / f"{level}.onnx"
        if level is not None:
            session(path, LEVELS[level], written)
        compiled = tw.compile(written, sizes="general")
        for n in (2, 3):
            arrays = {k: v.numpy() for k, v in zip(names, MODULES[name][1](n), strict=True)}
            results = [np.asarray(y) for y in compiled(**arrays)]
            agree(results, plain.run(None, arrays))
