# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that the tests and benchmarks use, built without network: fixed seeds, no PyTorch.

`build("bert_base")` gives an onnx.ModelProto, `path("bert_base")` a file of it in the cache, `random_inputs(model)`
inputs for it. Names ending in `_tiny` are small versions with odd sizes for fast tests.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

import tilewright.demo.encoder
import tilewright.demo.graph
from tilewright.core import config
from tilewright.demo import minilm
from tilewright.frontend.pruning import requests

from . import (
    bert,
    classic,
    control,
    convnext,
    decoder,
    dense_prediction,
    detection,
    diffusion,
    features,
    gpt,
    language,
    lists,
    loops,
    lstm,
    mixer,
    mlp,
    mobile,
    mobilenet,
    partial,
    pictures,
    places,
    quantized,
    resnet,
    routing,
    sequences,
    single,
    skipping,
    sparse,
    speech,
    streams,
    tables,
    transformer16,
    transformers,
    trees,
    vision,
    vit,
)
from ._inputs import random_inputs
from ._narrow import narrowed
from ._quantize import blocked, quantized_by
from .pruned import pruned

#: Bytes of built models that are kept, and the seconds for which a model is kept in any case.
_LIMIT = 4 << 30
_RECENT = 24 * 3600

__all__ = ["MODELS", "build", "path", "random_inputs"]

_TINY_BERT = dict(layers=2, hidden=24, heads=3, intermediate=52, vocabulary=97, positions=31, sequence=13)
_TINY_GPT = dict(layers=2, hidden=24, heads=3, vocabulary=97, positions=31, batch=2)
_TINY_MIXER = dict(layers=2, hidden=24, over_patches=10, over_channels=52, patch=7, classes=9, size=35)
_TINY_MOE = dict(tokens=19, experts=5, hidden=12, wide=20)
_TINY_STAGES = ((1, 8, 1, 1), (3, 11, 2, 2), (6, 16, 2, 2))
_partial = functools.partial

MODELS: dict[str, Callable[..., onnx.ModelProto]] = {
    "minilm": minilm.minilm_model,
    "minilm_export": _partial(minilm.minilm_model, style="export"),
    "bert_base": bert.bert,
    "bert_base_export": _partial(bert.bert, style="export"),
    "resnet50": resnet.resnet,
    "mobilenet_v1": mobilenet.mobilenet_v1,
    "mobilenet_v2": mobilenet.mobilenet_v2,
    "vit_base": vit.vit,
    "lstm4": lstm.lstm,
    "mlp": mlp.mlp,
    "convnext_t": convnext.convnext,
    "mlp_mixer": mixer.mlp_mixer,
    "gpt": gpt.gpt,
    "gpt_decode": _partial(gpt.gpt, sequence=1, past=511),
    "vgg16": classic.vgg,
    "squeezenet": classic.squeezenet,
    "densenet121": classic.densenet,
    "inception": classic.inception,
    "efficientnet_b0": mobile.efficientnet,
    "mobilenet_v3": mobile.mobilenet_v3,
    "regnet_y": mobile.regnet,
    "resnext50": mobile.resnext,
    "shufflenet_v2": mobile.shufflenet,
    "unet": pictures.unet,
    "yolo": pictures.yolo,
    "segmenter": pictures.segmenter,
    "super_resolution": pictures.super_resolution,
    "generator": pictures.generator,
    "detection": detection.detection,
    "ssd": detection.ssd,
    "two_stage": detection.two_stage,
    "distilbert": _partial(bert.bert, layers=6),
    "t5_encoder": transformers.t5_encoder,
    "t5_decoder": transformers.t5_decoder,
    "swin": transformers.swin,
    "whisper": transformers.whisper,
    "translator": transformers.translator,
    "decoder": decoder.decoder,
    "wav2vec": sequences.wav2vec,
    "temporal": sequences.temporal,
    "tagger": sequences.tagger,
    "mamba": sequences.mamba,
    "linear_attention": sequences.linear_attention,
    "dlrm": tables.dlrm,
    "autoencoder": tables.autoencoder,
    "graph_attention": tables.graph_attention,
    "diffusion": diffusion.diffusion,
    "film": diffusion.film,
    "experts": routing.experts,
    "embedding_bag": routing.embedding_bag,
    "fixed_cache": routing.fixed_cache,
    "quantized_transformer": quantized.quantized_transformer,
    "dynamic_bytes": quantized.dynamic_bytes,
    "latent_diffusion": dense_prediction.latent_diffusion,
    "style_transfer": dense_prediction.style_transfer,
    "dense_residual": dense_prediction.dense_residual,
    "single_shot": dense_prediction.single_shot,
    "exchange": dense_prediction.exchange,
    "resnet18": vision.basic_resnet,
    "repvgg": vision.repvgg,
    "ghostnet": vision.ghostnet,
    "mobile_vit": vision.mobile_vit,
    "poolformer": vision.poolformer,
    "video": vision.video,
    "pointnet": vision.pointnet,
    "albert": language.albert,
    "clip_text": language.clip_text,
    "deberta": language.deberta,
    "gated_experts": language.gated_experts,
    "linear_encoder": language.linear_encoder,
    "cross_encoder": language.cross_encoder,
    "conformer": speech.conformer,
    "vocoder": speech.vocoder,
    "reader": speech.reader,
    "spectrum": speech.spectrum,
    "wavenet": speech.wavenet,
    "gru": speech.gru,
    "deep_cross": features.deep_cross,
    "factorized": features.factorized,
    "column_transformer": features.column_transformer,
    "basis_series": features.basis_series,
    "interest": features.interest,
    "retention": streams.retention,
    "receptance": streams.receptance,
    "voice": streams.voice,
    "codec": streams.codec,
    "best_path": streams.best_path,
    "narrator": streams.narrator,
    "edge_conv": places.edge_conv,
    "radiance": places.radiance,
    "matcher": places.matcher,
    "deformable": places.deformable,
    "sliding_window": partial.sliding_window,
    "anything": partial.anything,
    "segformer": partial.segformer,
    "dispatched_experts": routing.dispatched_experts,
    "nasrnn": loops.nasrnn,
    "generation": loops.generation,
    "seq2seq": loops.seq2seq,
    "blockdrop": skipping.blockdrop,
    "skipnet": skipping.skipnet,
    "bert_tiny": _partial(bert.bert, **_TINY_BERT),
    "bert_tiny_batch": _partial(bert.bert, **_TINY_BERT, batch=3, pooled=True),
    "bert_tiny_export": _partial(bert.bert, **_TINY_BERT, style="export"),
    "bert_tiny_dynamic": _partial(bert.bert, **_TINY_BERT, style="export", dynamic=True),
    "resnet_tiny": _partial(resnet.resnet, blocks=(1, 2), width=8, classes=13, size=45),
    "resnet_tiny_batch": _partial(resnet.resnet, blocks=(1, 1), width=8, classes=7, size=32, batch=3),
    "mobilenet_tiny": _partial(mobilenet.mobilenet_v2, stages=_TINY_STAGES, stem=8, last=40, classes=11, size=37),
    "vit_tiny": _partial(vit.vit, layers=2, hidden=24, heads=3, intermediate=52, patch=7, size=35, classes=9),
    "lstm_tiny": _partial(lstm.lstm, layers=2, hidden=19, inputs=11, sequence=7),
    "lstm_tiny_state": _partial(lstm.lstm, layers=2, hidden=19, inputs=11, sequence=7, batch=3, initial_state=True),
    "mlp_tiny": _partial(mlp.mlp, widths=(13, 29, 17, 5), batch=3),
    "convnext_tiny": _partial(convnext.convnext, depths=(1, 2), width=11, classes=7, size=40),
    "mixer_tiny": _partial(mixer.mlp_mixer, **_TINY_MIXER),
    "gpt_tiny_prefill": _partial(gpt.gpt, **_TINY_GPT, sequence=7),
    "gpt_tiny_decode": _partial(gpt.gpt, **{**_TINY_GPT, "batch": 1}, sequence=1, past=6),
    "gpt_tiny_decode_batch": _partial(gpt.gpt, **_TINY_GPT, sequence=1, past=6),
    "densenet_tiny": _partial(classic.densenet, blocks=(2, 2), growth=8, classes=7, size=33),
    "inception_tiny": _partial(classic.inception, repeats=1, width=48, classes=7, size=9),
    "mobilenet_v3_tiny": _partial(mobile.mobilenet_v3, blocks=mobile.V3[1:6], last=40, hidden=24, classes=7, size=37),
    "regnet_tiny": _partial(mobile.regnet, depths=(1, 2), widths=(16, 24), each=8, classes=7, size=35),
    "shufflenet_tiny": _partial(mobile.shufflenet, stages=((2, 12),), last=24, classes=7, size=32),
    "unet_tiny": _partial(pictures.unet, widths=(6, 10), size=20),
    "unet_linear_tiny": _partial(pictures.unet, widths=(6, 10), size=20, up="linear"),
    "yolo_tiny": _partial(pictures.yolo, widths=(4, 8, 12, 16, 20), classes=5, size=64),
    "segmenter_tiny": _partial(pictures.segmenter, channels=8, classes=5, cells=9, factor=4),
    "generator_tiny": _partial(pictures.generator, widths=(12, 8), latent=16, size=4),
    "t5_decoder_tiny": _partial(transformers.t5_decoder, layers=1, hidden=24, heads=3, wide=40, past=5, sequence=9),
    "swin_tiny": _partial(transformers.swin, depths=(2, 1), width=32, window=3, classes=7, size=48),
    "wav2vec_tiny": _partial(sequences.wav2vec, widths=(12, 12, 10), samples=403),
    "temporal_tiny": _partial(sequences.temporal, levels=3, width=10, inputs=6, length=37),
    "tagger_tiny": _partial(sequences.tagger, kind="GRU", hidden=19, inputs=11, layers=1, sequence=7, batch=2),
    "mamba_tiny": _partial(sequences.mamba, layers=1, hidden=12, state=5, sequence=9, rank=3),
    "dlrm_tiny": _partial(tables.dlrm, tables=5, rows=31, width=12, batch=3),
    "graph_attention_tiny": _partial(tables.graph_attention, nodes=23, edges=57, inputs=11, hidden=4, heads=3),
    "latent_diffusion_tiny": _partial(dense_prediction.latent_diffusion, widths=(32, 64), size=8, tokens=5, text=24),
    "style_transfer_tiny": _partial(dense_prediction.style_transfer, width=6, blocks=1, size=20),
    "dense_residual_tiny": _partial(dense_prediction.dense_residual, width=8, growth=4, blocks=1, size=7),
    "single_shot_tiny": _partial(dense_prediction.single_shot, widths=(8, 8, 12, 16), anchors=2, classes=5, size=40),
    "exchange_tiny": _partial(dense_prediction.exchange, widths=(6, 8, 10), repeats=1, joints=3, size=32),
    "basic_resnet_tiny": _partial(vision.basic_resnet, depths=(1, 1), width=8, classes=7, size=33),
    "repvgg_tiny": _partial(vision.repvgg, depths=(1, 2), widths=(8, 12), classes=7, size=33),
    "ghostnet_tiny": _partial(vision.ghostnet, stages=((16, 16, 3, 1), (20, 12, 5, 2)), classes=7, size=33),
    "mobile_vit_tiny": _partial(
        vision.mobile_vit, widths=(4, 6, 8, 10), hidden=(12,), layers=1, heads=2, classes=7, size=32
    ),
    "poolformer_tiny": _partial(vision.poolformer, depths=(1, 1), widths=(8, 12), classes=7, size=37),
    "video_tiny": _partial(vision.video, widths=(4, 6), frames=4, classes=5, size=19),
    "pointnet_tiny": _partial(vision.pointnet, points=33, batch=2),
    "albert_tiny": _partial(language.albert, layers=2, hidden=24, heads=3, wide=52, narrow=10, sequence=13),
    "clip_text_tiny": _partial(language.clip_text, layers=1, hidden=24, heads=3, sequence=9),
    "deberta_tiny": _partial(language.deberta, layers=1, hidden=24, heads=3, sequence=11, reach=7),
    "gated_experts_tiny": _partial(language.gated_experts, hidden=12, wide=20, count=4, rows=9, layers=1),
    "linear_encoder_tiny": _partial(language.linear_encoder, layers=1, hidden=24, heads=3, sequence=17),
    "cross_encoder_tiny": _partial(language.cross_encoder, layers=1, hidden=24, heads=3, queries=7, points=11),
    "conformer_tiny": _partial(speech.conformer, layers=1, hidden=16, heads=2, frames=43, bands=19, window=5),
    "vocoder_tiny": _partial(speech.vocoder, width=16, rates=(4, 2), frames=9, bands=10),
    "reader_tiny": _partial(speech.reader, widths=(4, 6, 8, 8), hidden=10, wide=36),
    "spectrum_tiny": _partial(speech.spectrum, samples=301, size=40, step=16, bands=11),
    "wavenet_tiny": _partial(speech.wavenet, width=6, skip=10, layers=4, length=51, classes=13),
    "gru_tiny": _partial(speech.gru, hidden=19, inputs=11, sequence=7, batch=3),
    "deep_cross_tiny": _partial(features.deep_cross, columns=5, rows=20, width=4, crosses=2, batch=3),
    "factorized_tiny": _partial(features.factorized, columns=5, rows=20, width=4, batch=3),
    "column_transformer_tiny": _partial(features.column_transformer, columns=5, hidden=16, heads=2, layers=1, batch=3),
    "basis_series_tiny": _partial(features.basis_series, back=13, ahead=5, width=20, blocks=2, batch=3),
    "interest_tiny": _partial(features.interest, history=7, width=6, rows=50, batch=3),
    "retention_tiny": _partial(streams.retention, layers=1, hidden=24, heads=3, sequence=17),
    "receptance_tiny": _partial(streams.receptance, layers=1, hidden=12, sequence=9),
    "voice_tiny": _partial(streams.voice, width=10, samples=72, bins=17, batch=3),
    "codec_tiny": _partial(streams.codec, width=4, rates=(2, 4), samples=72, words=19, books=2),
    "best_path_tiny": _partial(streams.best_path, tags=5, hidden=12, sequence=9),
    "narrator_tiny": _partial(streams.narrator, hidden=16, sounds=7, frames=29, layers=1, bands=10),
    "edge_conv_tiny": _partial(places.edge_conv, widths=(6, 10), points=33, near=5, classes=7),
    "radiance_tiny": _partial(places.radiance, rays=3, samples=11, width=20, depth=4, waves=4),
    "matcher_tiny": _partial(places.matcher, hidden=24, heads=3, points=11, layers=1, rounds=3),
    "deformable_tiny": _partial(places.deformable, hidden=24, heads=3, cells=(5, 3), points=2, layers=1),
    "sliding_window_tiny": _partial(partial.sliding_window, layers=1, hidden=24, heads=3, sequence=30, window=5),
    "anything_tiny": _partial(partial.anything, windows=(3, 0), hidden=24, heads=3, cells=5, patch=4),
    "segformer_tiny": _partial(
        partial.segformer, widths=(8, 12), heads=(1, 3), fewer=(4, 1), depth=1, size=32, head=10, classes=5
    ),
    "dispatched_experts_tiny": _partial(routing.dispatched_experts, count=3, hidden=12, wide=20, rows=9, layers=1),
    "control_tiny": control.control,
    "nasrnn_tiny": _partial(loops.nasrnn, hidden=19, steps=3, batch=2),
    "generation_tiny": _partial(loops.generation, heads=3, head=8, start=4, end=7, batch=2),
    "seq2seq_tiny": _partial(loops.seq2seq, hidden=13, vocabulary=23, longest=5, source=2, batch=3, eager_end=0.7),
    "blockdrop_tiny": _partial(skipping.blockdrop, depths=(1, 2), width=4, size=6, batch=2),
    "skipnet_tiny": _partial(skipping.skipnet, depths=(2, 2), width=4, gate=5, size=17, classes=7, seed=5),
    "ssd_tiny": _partial(detection.ssd, widths=(8, 12), classes=4, size=40, before=60, most=20),
    "two_stage_tiny": _partial(detection.two_stage, width=9, classes=5, cells=7, regions=6),
    "translator_tiny": _partial(transformers.translator, hidden=24, heads=3, frames=11, mels=5, tokens=5),
    "tagger_lstm_tiny": _partial(sequences.tagger, hidden=13, inputs=9, layers=2, sequence=6, batch=3),
    "linear_attention_tiny": _partial(sequences.linear_attention, layers=1, hidden=12, heads=3, sequence=9),
    "diffusion_tiny": _partial(diffusion.diffusion, widths=(8, 16), size=10, words=5, context=12, heads=2),
    "film_tiny": _partial(diffusion.film, widths=(5, 8), frames=4, size=11, classes=7),
    "experts_tiny": _partial(routing.experts, count=5, hidden=12, wide=20, tokens=7),
    "embedding_bag_tiny": _partial(routing.embedding_bag, rows=31, width=12, bags=5, tokens=23),
    "fixed_cache_tiny": _partial(routing.fixed_cache, hidden=24, heads=3, room=17),
    "quantized_transformer_tiny": _partial(
        quantized.quantized_transformer, layers=1, hidden=24, heads=3, wide=52, sequence=13
    ),
    "dynamic_bytes_tiny": _partial(quantized.dynamic_bytes, widths=(13, 29, 17), rows=3),
    "decoder_tiny": decoder.decoder,
    "decoder_tiny_dynamic": _partial(decoder.decoder, dynamic=True),
    "decoder_tiny_export": _partial(decoder.decoder, style="export"),
    "decoder_tiny_export_dynamic": _partial(decoder.decoder, style="export", dynamic=True),
    "detection_tiny": detection.detection,
    "quantized_tiny": quantized.quantized,
    "resnet50_int8": quantized.resnet,
    "transformer_bf16": transformer16.transformer16,
    "transformer_f16": _partial(transformer16.transformer16, dtype=np.float16),
    "matmul": single.matmul,
    "linear": single.linear,
    "softmax": single.softmax,
    "layernorm": single.layernorm,
    "gelu": single.gelu,
    "conv": single.conv,
    "attention": single.attention,
    "matmul_integer": single.matmul_integer,
    "qlinear_conv": single.qlinear_conv,
    "pruned_linear": sparse.pruned_linear,
    "moe_dense": sparse.moe_dense,
    "moe_padded": sparse.moe_padded,
    "list_stacked_lstm": lists.stacked_lstm,
    "list_dilated_lstm": lists.dilated_lstm,
    "list_grid_rnn": lists.grid_rnn,
    "list_b2b_gemm": lists.b2b_gemm,
    "list_attention": lists.attention,
    "list_bigbird": lists.bigbird,
    "list_tree_lstm": trees.tree_lstm,
    "list_recursive_autoencoder": trees.recursive_autoencoder,
    "pruned_linear_tiny": _partial(sparse.pruned_linear, m=5, n=37, k=41, pattern="3:8/4"),
    "moe_dense_tiny": _partial(sparse.moe_dense, **_TINY_MOE),
    "moe_padded_tiny": _partial(sparse.moe_padded, **_TINY_MOE),
}


def build(name: str, **sizes: object) -> onnx.ModelProto:
    """Build a model; `sizes` override the builder's parameters.

    `floats` gives all its floats that type; `quantized`: ONNX Runtime's tools quantize it, `static` or `dynamic`;
    `weights`: `int4` or `int8`, operands of MatMul with a scale for each block; `pruned`: a pattern of `tw.sparsify`.

    Raises:
        KeyError: for an unknown name.
    """
    if name not in MODELS:
        raise KeyError(f"no model {name!r}; known: {', '.join(sorted(MODELS))}")
    floats, pattern = sizes.pop("floats", None), sizes.pop("pruned", None)
    way, weights = sizes.pop("quantized", None), sizes.pop("weights", None)
    model = MODELS[name](**sizes)
    model = pruned(model, str(pattern)) if pattern else model
    model = narrowed(model, str(floats)) if floats else model
    model = quantized_by(model, str(way)) if way else model
    return blocked(model, str(weights)) if weights else model


@functools.cache
def _sources() -> bytes:
    """Everything that decides what a builder makes; part of the key of each cached file."""
    shared = [inspect.getfile(m) for m in (tilewright.demo.encoder, tilewright.demo.graph, minilm, requests)]
    own = [file for file in Path(__file__).parent.glob("*.py") if not file.name.startswith("test_")]
    files = sorted([*map(Path, shared), *own])
    return b"".join(f.read_bytes() for f in files)


def cache_folder() -> Path:
    """Where built models are kept: `models` beside the compiler's own cache."""
    return config.cache_dir.get() / "models"


def path(name: str, **sizes: object) -> Path:
    """A file with the model, built at the first call and found by content (sources, name, sizes) afterwards."""
    key = hashlib.sha256(_sources() + repr((name, sorted(sizes.items()), onnx.__version__)).encode())
    file = cache_folder() / f"{name}-{key.hexdigest()[:16]}.onnx"
    if file.exists():
        os.utime(file)
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(build(name, **sizes).SerializeToString())
    part.replace(file)  # atomic: two processes may build the same model
    _prune(file.parent)
    return file


def _prune(folder: Path) -> None:
    """Remove the models that were not used for longest until the rest fits in _LIMIT; never one of the last day.

    A change of any builder leaves the files of before behind, under keys that nobody asks for again. What was used
    within a day may still be read by a bench or test that runs.
    """
    found = []
    for file in folder.glob("*.onnx"):
        with contextlib.suppress(OSError):  # another process removes, too
            found.append((file.stat().st_mtime, file.stat().st_size, file))
    total = sum(size for _, size, _ in found)
    for used, size, file in sorted(found):
        if total <= _LIMIT or time.time() - used < _RECENT:
            return
        file.unlink(missing_ok=True)
        total -= size
