# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""More models on the CPU, of many families, most of them with fewer layers than their namesakes but real widths."""

from bench.case import Case, Suite

_SPEED = 1 / 0.97  # the target of cpu-models
_PEERS = ("onnxruntime", "openvino")
_ALL = (*_PEERS, "torch_compile", "iree")
_LLAMA = dict(layers=2, hidden=1024, heads=16, kv_heads=4, intermediate=2816, vocabulary=8192, positions=512)


def _case(name: str, model: str, **sizes: object) -> Case:
    return Case(name, model, sizes, target=_SPEED, peers=_PEERS)


SUITE = Suite(
    "cpu-more",
    "models that nobody tuned for: image nets, dense prediction, audio, recurrent, transformers, tables, graphs",
    (
        Case("mlp_b1", "mlp", peers=_ALL),
        Case("minilm_export_b1_s128", "minilm_export", gflop=2.87, peers=_ALL),
        Case("lstm4_s128_b8", "lstm4", dict(sequence=128, batch=8), gflop=4.29, peers=_ALL),
        Case("decoder_s1_p31", "decoder_tiny_export", dict(sequence=1, past=31), peers=_ALL),
        _case("vgg16", "vgg16"),
        _case("squeezenet", "squeezenet"),
        _case("densenet121", "densenet121"),
        _case("inception", "inception"),
        _case("efficientnet_b0", "efficientnet_b0"),
        _case("mobilenet_v3", "mobilenet_v3"),
        _case("regnet_y", "regnet_y"),
        _case("resnext50", "resnext50"),
        _case("shufflenet_v2", "shufflenet_v2"),
        _case("unet_transposed", "unet"),
        _case("unet_linear", "unet", up="linear"),
        _case("yolo", "yolo"),
        _case("segmenter", "segmenter"),
        _case("super_resolution", "super_resolution"),
        _case("generator", "generator"),
        _case("detection", "detection", channels=64, classes=20, cells=40, most=50),
        _case("distilbert", "distilbert"),
        _case("t5_encoder", "t5_encoder"),
        _case("t5_decoder", "t5_decoder"),
        _case("swin", "swin"),
        _case("whisper", "whisper"),
        _case("llama_prefill", "decoder", style="export", sequence=128, past=1, **_LLAMA),
        _case("llama_decode", "decoder", style="export", sequence=1, past=255, **_LLAMA),
        _case("gpt_b4", "gpt", layers=4, batch=4, sequence=64),
        _case("gpt_decode_b4", "gpt", layers=4, batch=4, sequence=1, past=127),
        _case("wav2vec", "wav2vec"),
        _case("temporal", "temporal"),
        _case("tagger_lstm", "tagger"),
        _case("tagger_gru", "tagger", kind="GRU"),
        _case("mamba", "mamba"),
        _case("dlrm_b1", "dlrm"),
        _case("dlrm_b256", "dlrm", batch=256),
        _case("autoencoder", "autoencoder"),
        _case("graph_attention", "graph_attention"),
    ),
)
