# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders that read an encoder's states, exported with the cache of their own tokens (see `decoders.py`).

States and their mask are inputs that stay the same from step to step; keys of the states are computed anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoModelForSeq2SeqLM, DynamicCache, EncoderDecoderCache

VOCABULARY = 97
#: Batch, new tokens, past, tokens of the source.
SIZES = (
    (2, 3, 5, 6),
    (1, 1, 7, 4),
    (1, 6, 0, 9),
    (3, 2, 0, 5),
    (2, 1, 20, 7),
    (1, 17, 0, 3),
    (4, 1, 1, 8),
    (1, 3, 30, 11),
    (3, 5, 11, 2),
    (2, 1, 64, 13),
)
SOURCES = (5, 1, 12, 3, 8, 2, 20, 7)
_T5 = {"d_model": 48, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4}
_COMMON = {"vocab_size": VOCABULARY, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
CONFIGURATIONS = {"t5": ("T5Config", {**_T5, "initializer_factor": 3.0})}


class Step(torch.nn.Module):
    """The decoder with tokens, states, their mask and the past of its own tokens; logits and the cache as outputs."""

    def __init__(self, model: torch.nn.Module, layers: int) -> None:
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, input_ids, encoder_hidden_states, encoder_attention_mask, *past):
        """One step, or several tokens."""
        own = DynamicCache()
        for i in range(self.layers):
            own.update(past[2 * i], past[2 * i + 1], i)
        out = self.model(
            decoder_input_ids=input_ids,
            encoder_outputs=(encoder_hidden_states,),
            attention_mask=encoder_attention_mask,
            past_key_values=EncoderDecoderCache(own, DynamicCache()),
            use_cache=True,
        )
        layers = out.past_key_values.self_attention_cache.layers
        return out.logits, *(x for layer in layers for x in (layer.keys, layer.values))


class Exported:
    """One of the models, with what its export needs."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        kind, options = CONFIGURATIONS[name]
        config = getattr(transformers, kind)(**_COMMON, **options)
        self.name, self.model = name, AutoModelForSeq2SeqLM.from_config(config).eval()
        self.layers, self.width = config.num_decoder_layers, config.d_model
        self.heads, self.size = config.num_heads, config.d_kv
        self.step = Step(self.model, self.layers).eval()
        kinds = [f"{i}.decoder.{kind}" for i in range(self.layers) for kind in ("key", "value")]
        states = ["encoder_hidden_states", "encoder_attention_mask"]
        self.inputs = ["input_ids", *states, *(f"past_key_values.{k}" for k in kinds)]
        self.outputs = ["logits", *(f"present.{k}" for k in kinds)]

    def feeds(self, batch: int, tokens: int, past: int, source: int, seed: int) -> list[torch.Tensor]:
        """Inputs; of several rows the first one's source is padded at its end."""
        random = torch.Generator().manual_seed(seed)
        mask = torch.ones(batch, source, dtype=torch.long)
        if batch > 1:
            mask[0, (source + 1) // 2 :] = 0
        ids = torch.randint(3, VOCABULARY, (batch, tokens), generator=random)
        states = torch.randn(batch, source, self.width, generator=random)
        shape = (batch, self.heads, past, self.size)
        return [ids, states, mask, *(torch.randn(shape, generator=random) for _ in range(2 * self.layers))]

    def export(self, folder: Path, exporter: str) -> None:
        """Write the model with open sizes.

        Raises:
            ValueError: `exporter` is not ``script``: PyTorch's other one takes no lists of caches here.
        """
        if exporter != "script":
            raise ValueError("encoder-decoders are exported by 'script' alone")
        axes = {"input_ids": {0: "batch", 1: "sequence"}, "logits": {0: "batch", 1: "sequence"}}
        axes |= {name: {0: "batch", 1: "source"} for name in self.inputs[1:3]}
        axes |= {name: {0: "batch", 2: "past"} for name in self.inputs[3:]}
        axes |= {name: {0: "batch", 2: "total"} for name in self.outputs[1:]}
        names = {"input_names": self.inputs, "output_names": self.outputs}
        path = str(folder / f"{self.name}.{exporter}.onnx")
        feeds = tuple(self.feeds(*SIZES[0], seed=0))
        torch.onnx.export(self.step, feeds, path, dynamo=False, dynamic_axes=axes, **names)

    def examples(self) -> Iterator[tuple[str, np.ndarray]]:
        """Inputs and outputs for each set of sizes, by their names in the file."""
        for number, sizes in enumerate(SIZES):
            feeds = self.feeds(*sizes, seed=number)
            with torch.no_grad():
                results = self.step(*feeds)
            for kind, names, values in (("in", self.inputs, feeds), ("out", self.outputs, results)):
                yield from ((f"{number}/{kind}/{name}", x.numpy()) for name, x in zip(names, values, strict=True))

    def tokens(self, steps: int) -> tuple[dict[str, list[list[int]]], dict[str, np.ndarray]]:
        """Prompts and the framework's greedy tokens; what each request takes besides (`K/INPUT`)."""
        self.model.generation_config.eos_token_id = None
        random = torch.Generator().manual_seed(5)
        made, more = [], {}
        for number, length in enumerate(SOURCES):
            source = torch.randint(3, VOCABULARY, (1, length), generator=random)
            mask = torch.ones_like(source)
            with torch.no_grad():
                states = self.model.get_encoder()(source, attention_mask=mask).last_hidden_state
                options = {"attention_mask": mask, "max_new_tokens": steps, "do_sample": False}
                made.append(self.model.generate(source, **options)[0, 1:].tolist())
            more |= {
                f"{number}/encoder_hidden_states": states.numpy(),
                f"{number}/encoder_attention_mask": mask.numpy(),
            }
        return {"prompts": [[0] for _ in SOURCES], "tokens": made}, more
