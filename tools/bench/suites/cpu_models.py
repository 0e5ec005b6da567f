# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole models on the CPU, with the targets that the project holds itself to."""

from bench.case import Case, Suite

_SPEED = 1 / 0.97  # at least 0.97 of the best peer's speed, as a ratio of latencies
_PEERS = ("onnxruntime", "openvino", "torch_compile", "iree")


def _case(name: str, model: str, target: float = _SPEED, gflop: float | None = None, **sizes: object) -> Case:
    return Case(name, model, sizes, target=target, gflop=gflop, peers=_PEERS)


def _half(name: str, model: str, gflop: float | None = None, **sizes: object) -> Case:
    """The model with all floats in f16; results differ by what each operator rounds."""
    sizes["floats"] = "float16"
    return Case(name, model, sizes, target=1.0, gflop=gflop, peers=(*_PEERS, "torch"), error=2e-2)


SUITE = Suite(
    "cpu-models",
    "transformers, convolutional nets, a recurrent net, GPT prefill and decode, some in f16, beside the peers",
    (
        _case("minilm_b1_s128", "minilm", gflop=2.87, batch=1, sequence=128),
        _case("minilm_b8_s128", "minilm", gflop=22.95, batch=8, sequence=128),
        _case("bert_base_b1_s128", "bert_base", gflop=22.35, batch=1, sequence=128),
        _case("resnet50_b1", "resnet50", 1 / 0.95, gflop=8.18),
        _case("mobilenet_v2_b1", "mobilenet_v2", gflop=0.60),
        _case("vit_base_b1", "vit_base", gflop=35.13),
        _case("convnext_t_b1", "convnext_t", gflop=8.91),
        _case("mlp_mixer_b1", "mlp_mixer", gflop=7.55),
        _case("lstm4_s100_b1", "lstm4", gflop=0.42),
        _case("gpt_prefill_s128", "gpt", gflop=21.9, sequence=128),
        _case("gpt_decode_p511", "gpt", gflop=0.27, sequence=1, past=511),
        _half("minilm_b1_s128_f16", "minilm", gflop=2.87, batch=1, sequence=128),
        _half("gpt_decode_p511_f16", "gpt", gflop=0.27, sequence=1, past=511),
    ),
    mean_target=1 / 1.12,
)
