# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small decoders with random weights, exported with their cache.

`python decoders.py FOLDER [NAME...] [--exporter script|dynamo]`; by default all, by both of PyTorch's exporters.
Runs in an environment with PyTorch and transformers. Writes, for each: NAME.dynamo.onnx and NAME.script.onnx (the two
exporters), NAME.npz with inputs and outputs for ten sets of sizes (`K/in/INPUT`, `K/out/OUTPUT`), NAME.json with
prompts and the tokens of 200 greedy steps by the framework, and NAME.inputs.npz with what else each of these requests
takes (`K/INPUT`: the encoder's states, see `encoder_decoders.py`).
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import encoder_decoders
import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM, DynamicCache

VOCABULARY, STEPS = 97, 200
#: Batch, new tokens, past.
SIZES = (
    (2, 3, 5),
    (1, 1, 7),
    (1, 6, 0),
    (3, 2, 0),
    (2, 1, 20),
    (1, 17, 0),
    (4, 1, 1),
    (1, 3, 30),
    (3, 5, 11),
    (2, 1, 64),
)
PROMPTS = (5, 1, 12, 3, 8, 2, 20, 7)
_COMMON = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "initializer_range": 0.3}
_SMALL = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 512,
}
_GPT2 = {"n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 512}
_OPT = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 96, "word_embed_proj_dim": 48}
CONFIGURATIONS = {
    "gpt2": ("GPT2Config", _GPT2),
    "llama": ("LlamaConfig", _SMALL),
    "mistral": ("MistralConfig", {**_SMALL, "sliding_window": 8}),
    "qwen2": ("Qwen2Config", _SMALL),
    "qwen3": ("Qwen3Config", {**_SMALL, "head_dim": 12}),
    "gemma": ("GemmaConfig", {**_SMALL, "head_dim": 12}),
    "phi": ("PhiConfig", _SMALL),
    "phi3": ("Phi3Config", _SMALL),
    "opt": ("OPTConfig", {**_OPT, "max_position_embeddings": 512, "init_std": 0.3}),
}


class Step(torch.nn.Module):
    """A causal model with tokens, mask, positions and past as flat inputs; logits and the cache as outputs."""

    def __init__(self, model: torch.nn.Module, layers: int) -> None:
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, input_ids, attention_mask, position_ids, *past):
        """One step, or a prompt."""
        cache = DynamicCache()
        for i in range(self.layers):
            cache.update(past[2 * i], past[2 * i + 1], i)
        out = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=cache,
            use_cache=True,
        )
        return out.logits, *(x for layer in out.past_key_values.layers for x in (layer.keys, layer.values))


class Exported:
    """One of the models, with what its export needs."""

    def __init__(self, name: str) -> None:
        torch.manual_seed(0)
        kind, options = CONFIGURATIONS[name]
        config = getattr(transformers, kind)(**_COMMON, **options)
        self.name, self.model = name, AutoModelForCausalLM.from_config(config).eval()
        self.layers = config.num_hidden_layers
        self.heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        self.size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.step = Step(self.model, self.layers).eval()
        kinds = [f"{i}.{kind}" for i in range(self.layers) for kind in ("key", "value")]
        self.inputs = ["input_ids", "attention_mask", "position_ids", *(f"past_key_values.{k}" for k in kinds)]
        self.outputs = ["logits", *(f"present.{k}" for k in kinds)]

    def feeds(self, batch: int, tokens: int, past: int, seed: int) -> list[torch.Tensor]:
        """Inputs; the first row of several is padded at its start."""
        random = torch.Generator().manual_seed(seed)
        mask = torch.ones(batch, past + tokens, dtype=torch.long)
        if past > 1 and batch > 1:
            mask[0, : past // 2] = 0
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, past:]
        ids = torch.randint(3, VOCABULARY, (batch, tokens), generator=random)
        shape = (batch, self.heads, past, self.size)
        return [ids, mask, positions, *(torch.randn(shape, generator=random) for _ in range(2 * self.layers))]

    def export(self, folder: Path, exporter: str) -> None:
        """Write the model with open sizes, by one of PyTorch's exporters."""
        feeds, path = self.feeds(*SIZES[0], seed=0), str(folder / f"{self.name}.{exporter}.onnx")
        rows = {0: "batch", 1: "sequence"}
        axes = {"input_ids": rows, "attention_mask": {0: "batch", 1: "total"}, "position_ids": rows, "logits": rows}
        axes |= {name: {0: "batch", 2: "past"} for name in self.inputs[3:]}
        names = {"input_names": self.inputs, "output_names": self.outputs}
        if exporter == "script":
            axes |= {name: {0: "batch", 2: "total"} for name in self.outputs[1:]}
            torch.onnx.export(self.step, tuple(feeds), path, dynamo=False, dynamic_axes=axes, **names)
            return
        first, past = [axes[name] for name in self.inputs[:3]], tuple(axes[name] for name in self.inputs[3:])
        more = {"dynamic_shapes": (*first, past), "external_data": False, "verbose": False}
        torch.onnx.export(self.step, tuple(feeds), path, dynamo=True, **more, **names)

    def examples(self) -> Iterator[tuple[str, np.ndarray]]:
        """Inputs and outputs for each set of sizes, by their names in the file."""
        for number, sizes in enumerate(SIZES):
            feeds = self.feeds(*sizes, seed=number)
            with torch.no_grad():
                results = self.step(*feeds)
            for kind, names, values in (("in", self.inputs, feeds), ("out", self.outputs, results)):
                yield from ((f"{number}/{kind}/{name}", x.numpy()) for name, x in zip(names, values, strict=True))

    def tokens(self, steps: int) -> tuple[dict[str, list[list[int]]], dict[str, np.ndarray]]:
        """Prompts, and what the framework's greedy decoding makes of each; what requests take besides: nothing."""
        self.model.generation_config.eos_token_id = None
        random = torch.Generator().manual_seed(5)
        prompts = [torch.randint(3, VOCABULARY, (1, n), generator=random) for n in PROMPTS]
        made = []
        for prompt in prompts:
            options = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": steps, "do_sample": False}
            with torch.no_grad():
                made.append(self.model.generate(prompt, **options)[0, prompt.shape[1] :].tolist())
        return {"prompts": [p[0].tolist() for p in prompts], "tokens": made}, {}


def main() -> None:
    """Export the models that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--exporter", choices=["script", "dynamo"])
    options = parser.parse_args()
    folder = options.folder
    warnings.filterwarnings("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    others = encoder_decoders.CONFIGURATIONS
    for name in options.names or (*CONFIGURATIONS, *others):
        model = encoder_decoders.Exported(name) if name in others else Exported(name)
        for exporter in [options.exporter] if options.exporter else ("script", "dynamo"):
            try:
                model.export(folder, exporter)
            except Exception as error:  # the exporter's own, of any kind: the other one may work
                print(f"{name}.{exporter}: not exported: {str(error)[:200]}", flush=True)
        np.savez(folder / f"{name}.npz", **dict(model.examples()))
        tokens, more = model.tokens(STEPS)
        (folder / f"{name}.json").write_text(json.dumps(tokens))
        np.savez(folder / f"{name}.inputs.npz", **more)
        print(f"{name}: exported", flush=True)


if __name__ == "__main__":
    main()
