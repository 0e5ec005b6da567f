# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further models on the CPU that nobody tuned for; quantized ones, half floats and batches among them."""

from bench.case import Case, Suite

_SPEED = 1 / 0.97  # the target of cpu-models
_PEERS = ("onnxruntime", "openvino")
_LLAMA = dict(layers=2, hidden=1024, heads=16, kv_heads=4, intermediate=2816, vocabulary=8192, positions=512)


def _case(name: str, model: str, error: float = 1e-4, **sizes: object) -> Case:
    return Case(name, model, sizes, target=_SPEED, peers=_PEERS, error=error)


def _bytes(name: str, model: str, way: str, **sizes: object) -> Case:
    """Quantized by ONNX Runtime's tools. Peers round at other places: a level more or less is no error."""
    return _case(name, model, 0.15, quantized=way, **sizes)


def _half(name: str, model: str, **sizes: object) -> Case:
    return _case(name, model, 3e-2, floats="float16", **sizes)


SUITE = Suite(
    "cpu-further",
    "more models that nobody tuned for: pictures, sound, language, tables, points; bytes, half floats, batches",
    (
        _case("latent_diffusion", "latent_diffusion"),
        _case("style_transfer", "style_transfer"),
        _case("dense_residual", "dense_residual"),
        _case("single_shot", "single_shot"),
        _case("exchange", "exchange"),
        _case("resnet18", "resnet18"),
        _case("resnet18_b8", "resnet18", batch=8),
        _case("resnet50_b4", "resnet50", batch=4),
        _case("mobilenet_v2_b8", "mobilenet_v2", batch=8),
        _case("repvgg", "repvgg"),
        _case("ghostnet", "ghostnet"),
        _case("mobile_vit", "mobile_vit"),
        _case("poolformer", "poolformer"),
        _case("video", "video"),
        _case("pointnet", "pointnet"),
        _case("pointnet_b8", "pointnet", batch=8),
        _case("deit_small_b4", "vit_base", hidden=384, heads=6, intermediate=1536, layers=6, batch=4),
        _case("albert", "albert"),
        _case("clip_text", "clip_text"),
        _case("deberta", "deberta"),
        _case("gated_experts", "gated_experts"),
        _case("linear_encoder", "linear_encoder"),
        _case("cross_encoder", "cross_encoder"),
        _case("bert_s384", "distilbert", sequence=384),
        _case("bert_s16", "distilbert", sequence=16),
        _case("llama_decode_b4", "decoder", style="export", sequence=1, past=255, batch=4, **_LLAMA),
        _case("llama_operators_prefill", "decoder", sequence=128, past=1, **_LLAMA),
        _case("llama_operators_decode", "decoder", sequence=1, past=255, **_LLAMA),
        # ONNX Runtime rounds the rows that it multiplies by such weights to bytes: 7e-3 of the largest result.
        _case("llama_decode_int4", "decoder", 1e-2, sequence=1, past=255, weights="int4", **_LLAMA),
        _case("llama_decode_int8", "decoder", 1e-2, sequence=1, past=255, weights="int8", **_LLAMA),
        _case("conformer", "conformer"),
        _case("vocoder", "vocoder"),
        _case("reader", "reader"),
        _case("spectrum", "spectrum"),
        _case("wavenet", "wavenet"),
        _case("gru_b16", "gru"),
        _case("gru_b1", "gru", batch=1),
        _case("lstm_b32", "lstm4", layers=1, hidden=512, sequence=50, batch=32),
        _case("deep_cross", "deep_cross"),
        _case("factorized", "factorized"),
        _case("column_transformer", "column_transformer"),
        _case("basis_series", "basis_series"),
        _case("interest", "interest"),
        _case("retention", "retention"),
        _case("receptance", "receptance"),
        _case("voice", "voice"),
        _case("codec", "codec"),
        _case("best_path", "best_path"),
        _case("narrator", "narrator"),
        _case("edge_conv", "edge_conv"),
        _case("radiance", "radiance"),
        _case("matcher", "matcher"),
        _case("deformable", "deformable"),
        _case("sliding_window", "sliding_window"),
        _case("anything", "anything"),
        _case("segformer", "segformer"),
        _case("dispatched_experts", "dispatched_experts"),
        _case("mlp_b256", "mlp", widths=(1024, 4096, 4096, 1024), batch=256),
        _bytes("resnet50_qdq", "resnet50", "static"),
        _bytes("mobilenet_v2_qdq", "mobilenet_v2", "static"),
        _bytes("bert_qdq", "distilbert", "static"),
        _bytes("bert_dynamic", "distilbert", "dynamic"),
        _bytes("vit_qdq", "vit_base", "static", hidden=384, heads=6, intermediate=1536, layers=6),
        _half("resnet50_f16", "resnet50"),
        _half("mobilenet_v2_f16", "mobilenet_v2"),
        _half("bert_f16", "distilbert"),
        _half("vit_f16", "vit_base", hidden=384, heads=6, intermediate=1536, layers=6),
    ),
)
