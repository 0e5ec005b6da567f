# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled models give ONNX Runtime's numbers."""

from __future__ import annotations

import onnx
import pytest

import models
import tilewright as tw
from models.compare import assert_close, onnxruntime_outputs, reference_outputs

SMALL = [
    "mlp_tiny",
    "bert_tiny",
    "bert_tiny_batch",
    "bert_tiny_export",
    "resnet_tiny",
    "resnet_tiny_batch",
    "mobilenet_tiny",
    "vit_tiny",
    "lstm_tiny",
    "lstm_tiny_state",
    "convnext_tiny",
    "mixer_tiny",
    "gpt_tiny_prefill",
    "gpt_tiny_decode",
    "gpt_tiny_decode_batch",
    "densenet_tiny",
    "inception_tiny",
    "mobilenet_v3_tiny",
    "regnet_tiny",
    "shufflenet_tiny",
    "unet_tiny",
    "unet_linear_tiny",
    "yolo_tiny",
    "segmenter_tiny",
    "generator_tiny",
    "t5_decoder_tiny",
    "swin_tiny",
    "wav2vec_tiny",
    "temporal_tiny",
    "tagger_tiny",
    "mamba_tiny",
    "latent_diffusion_tiny",
    "style_transfer_tiny",
    "dense_residual_tiny",
    "single_shot_tiny",
    "exchange_tiny",
    "basic_resnet_tiny",
    "repvgg_tiny",
    "ghostnet_tiny",
    "mobile_vit_tiny",
    "poolformer_tiny",
    "video_tiny",
    "pointnet_tiny",
    "albert_tiny",
    "clip_text_tiny",
    "deberta_tiny",
    "gated_experts_tiny",
    "linear_encoder_tiny",
    "cross_encoder_tiny",
    "conformer_tiny",
    "vocoder_tiny",
    "reader_tiny",
    "spectrum_tiny",
    "wavenet_tiny",
    "gru_tiny",
    "deep_cross_tiny",
    "factorized_tiny",
    "column_transformer_tiny",
    "basis_series_tiny",
    "interest_tiny",
    "dlrm_tiny",
    "graph_attention_tiny",
    "ssd_tiny",
    "two_stage_tiny",
    "translator_tiny",
    "tagger_lstm_tiny",
    "linear_attention_tiny",
    "diffusion_tiny",
    "film_tiny",
    "experts_tiny",
    "embedding_bag_tiny",
    "fixed_cache_tiny",
    "retention_tiny",
    "receptance_tiny",
    "voice_tiny",
    "codec_tiny",
    "best_path_tiny",
    "narrator_tiny",
    "edge_conv_tiny",
    "radiance_tiny",
    "matcher_tiny",
    "deformable_tiny",
    "sliding_window_tiny",
    "anything_tiny",
    "segformer_tiny",
    "dispatched_experts_tiny",
    "dynamic_bytes_tiny",
]
FULL = [
    "minilm",
    "minilm_export",
    "bert_base",
    "bert_base_export",
    "resnet50",
    "mobilenet_v2",
    "vit_base",
    "lstm4",
    "mlp",
    "convnext_t",
    "mlp_mixer",
]


def check(name: str, target: str = "cpu", **sizes: object) -> None:
    """Compile, run on two sets of inputs (the second shows state that leaks between calls), compare."""
    file = models.path(name, **sizes)
    proto = onnx.load(file)
    compiled = tw.compile(str(file), target=target, threads=2)
    integers = any(node.op_type == "MatMulInteger" for node in proto.graph.node)
    for seed in (0, 1):
        inputs = models.random_inputs(proto, seed)
        ours = compiled(*inputs.values())
        assert_close(ours, reference_outputs(proto, inputs) if integers else onnxruntime_outputs(file, inputs))


@pytest.mark.parametrize("name", SMALL)
def test_small(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", SMALL)
def test_small_on_the_reference(name: str) -> None:
    check(name, target="reference")


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL)
def test_full_size(name: str) -> None:
    check(name)


@pytest.mark.parametrize("batch, sequence", [(1, 1), (2, 7), (5, 16)])
def test_sizes_of_the_encoder(batch: int, sequence: int) -> None:
    check("bert_tiny", batch=batch, sequence=sequence)


@pytest.mark.parametrize("size", [33, 40])
def test_sizes_of_images(size: int) -> None:
    check("resnet_tiny", size=size)


def test_symbolic_dimensions_fixed_by_shapes() -> None:
    file = models.path("bert_tiny_dynamic")
    sizes = {"batch": 2, "sequence": 9}
    inputs = models.random_inputs(onnx.load(file), sizes=sizes)
    compiled = tw.compile(str(file), target="cpu", threads=1, shapes=sizes)
    ours = compiled(**inputs)
    assert_close([ours["last_hidden_state"]], onnxruntime_outputs(file, inputs))


def test_proto_and_bytes_are_models_too() -> None:
    proto = models.build("mlp_tiny")
    inputs = models.random_inputs(proto)
    expected = onnxruntime_outputs(proto.SerializeToString(), inputs)
    for source in (proto, proto.SerializeToString()):
        assert_close([tw.compile(source, target="cpu", threads=1)(*inputs.values())[0]], expected)
