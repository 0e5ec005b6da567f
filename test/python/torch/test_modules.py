# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of torch, torchvision and transformers under torch.compile: three sizes each, as without it.

Skipped where one of these packages is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
vision = pytest.importorskip("torchvision.models")
transformers = pytest.importorskip("transformers")

import tilewright.torch  # noqa: E402, F401
from tilewright.compiler import driver  # noqa: E402

nn = torch.nn
SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
TEXT = {**SMALL, "vocab_size": 100, "max_position_embeddings": 64}
DECODER = {**TEXT, "num_key_value_heads": 1, "use_cache": False}
GPT2 = {"vocab_size": 100, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2, "use_cache": False}

Case = tuple[Callable[[], Any], Callable[[int], Any], tuple[int, ...]]


class Broken(nn.Module):
    """A branch on data, which breaks the graph, and results of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: Any) -> dict[str, Any]:
        y = self.first(x).relu()
        y = -y if y.sum() > 0 else y + 1
        return {"out": self.last(y), "parts": (y, [x * 2])}


class Attention(nn.Module):
    """Attention to itself, with its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.inner(x, x, x)


def rows(*shape: int) -> Callable[[int], Any]:
    return lambda size: torch.randn(size, *shape)


def tokens(size: int) -> Any:
    return torch.randint(0, 100, (size, 6 + size))


def images(side: int) -> Callable[[int], Any]:
    return rows(3, side, side)


def convolutions() -> Any:
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
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False)


def of(name: str, config: str, **options: Any) -> Callable[[], Any]:
    """A small model of transformers with random weights."""
    return lambda: getattr(transformers, name)(getattr(transformers, config)(**options))


#: What makes a module, what makes its input of a size, and the dimensions that are open.
CASES: dict[str, Case] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), rows(8), (0,)),
    "broken": (Broken, rows(16), (0,)),
    "encoder": (encoder, rows(10, 32), (0,)),
    "attention": (Attention, rows(7, 32), (0,)),
    "convolutions": (convolutions, images(16), (0,)),
    "embedding": (
        lambda: nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 3), nn.Softmax(-1)),
        tokens,
        (0, 1),
    ),
    "resnet18": (lambda: vision.resnet18(), images(64), (0,)),
    "mobilenet_v3_small": (lambda: vision.mobilenet_v3_small(), images(64), (0,)),
    "squeezenet1_1": (lambda: vision.squeezenet1_1(), images(64), (0,)),
    "shufflenet_v2_x0_5": (lambda: vision.shufflenet_v2_x0_5(), images(64), (0,)),
    "vision_transformer": (lambda: vision.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10), images(32), (0,)),
    "bert": (of("BertModel", "BertConfig", **TEXT), tokens, (0, 1)),
    "distilbert": (
        of("DistilBertModel", "DistilBertConfig", vocab_size=100, dim=32, n_layers=2, n_heads=2, hidden_dim=64),
        tokens,
        (0, 1),
    ),
    "gpt2": (of("GPT2LMHeadModel", "GPT2Config", **GPT2), tokens, (0, 1)),
    "llama": (of("LlamaForCausalLM", "LlamaConfig", **DECODER), tokens, (0, 1)),
    "qwen2": (of("Qwen2ForCausalLM", "Qwen2Config", **DECODER), tokens, (0, 1)),
    "t5": (
        of("T5EncoderModel", "T5Config", vocab_size=100, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2),
        tokens,
        (0, 1),
    ),
    "vit": (of("ViTModel", "ViTConfig", image_size=32, patch_size=8, **SMALL), images(32), (0,)),
    "albert": (of("AlbertModel", "AlbertConfig", embedding_size=16, **TEXT), tokens, (0, 1)),
    "electra": (of("ElectraModel", "ElectraConfig", embedding_size=16, **TEXT), tokens, (0, 1)),
    "clip_text": (of("CLIPTextModel", "CLIPTextConfig", **TEXT), tokens, (0, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_three_sizes_without_a_recompilation(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Results equal those without torch.compile, in their form; the first size compiles all that the others run."""
    make, inputs, axes = CASES[name]
    build, builds, counts = driver.build, [], []
    monkeypatch.setattr(driver, "build", lambda *args: builds.append(args) or build(*args))
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    torch.manual_seed(0)
    module = make().eval()
    fast = torch.compile(module, backend="tilewright", options={"threads": 1})
    with torch.inference_mode(), caplog.at_level(logging.WARNING, logger="tilewright"):
        for size in (2, 3, 5):
            x = inputs(size)
            for axis in axes:
                torch._dynamo.mark_dynamic(x, axis)
            expected, found = (torch.utils._pytree.tree_flatten(run(x)) for run in (module, fast))
            assert str(found[1]) == str(expected[1])
            for ours, theirs in zip(found[0], expected[0], strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
            counts.append(len(builds))
    told = [record.getMessage() for record in caplog.records if record.name == "tilewright"]
    assert counts[0] > 0 and counts == counts[:1] * 3, counts
    assert not [line for line in told if "runs in PyTorch" in line]
