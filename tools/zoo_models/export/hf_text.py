# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text models of transformers with small configurations: encoders, decoders with past, encoder and decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers as hf

from .torch_export import TorchModel

VOCABULARY = 97
SMALL = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
TEXT_SIZES = ({"batch": 2, "sequence": 11}, {"batch": 1, "sequence": 5}, {"batch": 3, "sequence": 24})
PAST_SIZES = (
    {"batch": 2, "sequence": 3, "past": 5},
    {"batch": 1, "sequence": 1, "past": 9},
    {"batch": 3, "sequence": 7, "past": 0},
)


def tokens(*shape: int) -> torch.Tensor:
    """Tokens that every configuration here knows, but not its special ones."""
    return torch.randint(5, VOCABULARY, shape)


def mask(batch: int, sequence: int) -> torch.Tensor:
    """A mask whose later sentences end in padding."""
    lengths = torch.tensor([max(1, sequence - 2 * i) for i in range(batch)])
    return (torch.arange(sequence)[None, :] < lengths[:, None]).to(torch.int64)


def encoder(name: str, **configuration: Any) -> Callable[[], TorchModel]:
    """A text encoder: last hidden state of tokens and a mask."""

    def make() -> TorchModel:
        torch.manual_seed(0)
        kind = getattr(hf, f"{name}Config")
        module = getattr(hf, f"{name}Model")(kind(**(SMALL | configuration))).eval()

        def inputs(sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
            b, s = sizes["batch"], sizes["sequence"]
            return {"input_ids": tokens(b, s), "attention_mask": mask(b, s)}

        axes = {0: "batch", 1: "sequence"}
        return TorchModel(
            module,
            inputs,
            {"input_ids": axes, "attention_mask": axes},
            TEXT_SIZES,
            lambda m, x: [m(input_ids=x["input_ids"], attention_mask=x["attention_mask"]).last_hidden_state],
            ["last_hidden_state"],
        )

    return make


def cache_of(x: Mapping[str, torch.Tensor], layers: int) -> Any:
    """The cache that flat inputs of past keys and values make."""
    data = [(x[f"past_key_values.{i}.key"], x[f"past_key_values.{i}.value"]) for i in range(layers)]
    return hf.DynamicCache(data)


def present(cache: Any) -> list[torch.Tensor]:
    """The keys and values of a cache, layer by layer."""
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]


def decoder(
    name: str,
    heads: int = 4,
    head_size: int = 8,
    head: str = "ForCausalLM",
    positions: bool = True,
    **configuration: Any,
) -> Callable[[], TorchModel]:
    """A decoder with past keys and values: logits and the keys and values of all tokens so far."""

    def make() -> TorchModel:
        torch.manual_seed(0)
        kind = getattr(hf, f"{name}Config")
        module = getattr(hf, f"{name}{head}")(kind(**(SMALL | configuration))).eval()
        layers = module.config.num_hidden_layers
        pairs = [f"{i}.{kind}" for i in range(layers) for kind in ("key", "value")]

        def inputs(sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
            b, s, p = sizes["batch"], sizes["sequence"], sizes["past"]
            found = {"input_ids": tokens(b, s), "attention_mask": torch.ones(b, p + s, dtype=torch.int64)}
            if positions:
                found["position_ids"] = torch.arange(p, p + s)[None].repeat(b, 1)
            return found | {f"past_key_values.{pair}": torch.randn(b, heads, p, head_size) for pair in pairs}

        def call(m: torch.nn.Module, x: dict[str, torch.Tensor]) -> list[torch.Tensor]:
            given = {n: x[n] for n in ("input_ids", "attention_mask", "position_ids") if n in x}
            result = m(**given, past_key_values=cache_of(x, layers), use_cache=True)
            return [result.logits, *present(result.past_key_values)]

        axes: dict[str, Mapping[int, str]] = {
            "input_ids": {0: "batch", 1: "sequence"},
            "attention_mask": {0: "batch", 1: "total"},
        }
        if positions:
            axes["position_ids"] = {0: "batch", 1: "sequence"}
        axes |= {f"past_key_values.{pair}": {0: "batch", 2: "past"} for pair in pairs}
        return TorchModel(module, inputs, axes, PAST_SIZES, call, ["logits", *(f"present.{pair}" for pair in pairs)])

    return make


def encoder_decoder(name: str, **configuration: Any) -> Callable[[], TorchModel]:
    """An encoder and a decoder in one: logits of the decoder's tokens."""

    def make() -> TorchModel:
        torch.manual_seed(0)
        kind = getattr(hf, f"{name}Config")
        module = getattr(hf, f"{name}ForConditionalGeneration")(kind(**configuration)).eval()

        def inputs(sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
            b, s = sizes["batch"], sizes["sequence"]
            return {
                "input_ids": tokens(b, s),
                "attention_mask": mask(b, s),
                "decoder_input_ids": tokens(b, sizes["target"]),
            }

        axes = {0: "batch", 1: "sequence"}
        return TorchModel(
            module,
            inputs,
            {"input_ids": axes, "attention_mask": axes, "decoder_input_ids": {0: "batch", 1: "target"}},
            tuple(sizes | {"target": 3 + i} for i, sizes in enumerate(TEXT_SIZES)),
            lambda m, x: [m(**x, use_cache=False).logits],
            ["logits"],
        )

    return make
