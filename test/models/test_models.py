# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model builders make valid models, the same ones every time, of sensible scale."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from onnx.numpy_helper import from_array, to_array

import models
import tilewright as tw
from models.compare import assert_close, onnxruntime_outputs

TINY = [name for name in models.MODELS if "tiny" in name and "dynamic" not in name]


@pytest.mark.parametrize("name", TINY)
def test_outputs_are_of_sensible_scale(name: str) -> None:
    proto = models.build(name)
    inputs = models.random_inputs(proto)
    for array in onnxruntime_outputs(proto.SerializeToString(), inputs):
        assert np.isfinite(array).all()
        assert array.dtype.kind != "f" or 0.01 < array.std() < 10


def test_models_are_the_same_every_time() -> None:
    assert models.build("vit_tiny").SerializeToString() == models.build("vit_tiny").SerializeToString()


def test_both_styles_of_the_encoder_are_the_same_function() -> None:
    plain, export = models.build("bert_tiny"), models.build("bert_tiny_export")
    inputs = models.random_inputs(plain)
    a, b = (onnxruntime_outputs(m.SerializeToString(), inputs)[0] for m in (plain, export))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_exported_style_has_shape_arithmetic() -> None:
    kinds = {node.op_type for node in models.build("bert_tiny_export").graph.node}
    assert {"Shape", "Gather", "Unsqueeze", "Concat", "ConstantOfShape", "Where", "Expand", "Slice"} <= kinds
    assert "LayerNormalization" not in kinds


def test_files_are_cached_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    first = models.path("mlp_tiny")
    number = first.stat().st_ino
    assert models.path("mlp_tiny") == first and first.stat().st_ino == number
    assert models.path("mlp_tiny", seed=1) != first


def test_files_that_nobody_used_for_long_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit; what was used within a day stays in any case."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    files = [models.path("mlp_tiny", seed=seed) for seed in range(4)]
    monkeypatch.setattr(models, "_LIMIT", int(2.5 * files[0].stat().st_size))
    for file, days in zip(files, (9, 3, 5, 2), strict=True):
        os.utime(file, (time.time() - days * 86400,) * 2)
    assert models.path("mlp_tiny", seed=1) == files[1], "in use again"
    new = models.path("mlp_tiny", seed=4)
    assert [file.exists() for file in files] == [False, True, False, False] and new.exists()
    newer = models.path("mlp_tiny", seed=5)
    assert files[1].exists() and new.exists() and newer.exists(), "too much, but all of it is in use"


def test_unknown_models_are_named() -> None:
    with pytest.raises(KeyError, match="no model 'nonsense'"):
        models.build("nonsense")


@pytest.mark.parametrize("way", ["static", "dynamic"])
def test_quantized_models_are_near_the_plain_ones(way: str) -> None:
    plain, narrow = models.build("bert_tiny"), models.build("bert_tiny", quantized=way)
    kinds = {node.op_type for node in narrow.graph.node}
    assert "QuantizeLinear" in kinds if way == "static" else "MatMulInteger" in kinds
    a, b = (
        onnxruntime_outputs(m.SerializeToString(), models.random_inputs(m), optimized=False)[0] for m in (plain, narrow)
    )
    assert np.sqrt(((a - b) ** 2).mean()) < 0.15 * a.std()


@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_weights_in_blocks_are_what_we_compute_with(kind: str) -> None:
    """Against f32 weights of the same numbers: ONNX Runtime multiplies such blocks with rounded activations."""
    sizes = dict(hidden=64, heads=4, kv_heads=2, intermediate=96, layers=1)
    narrow = models.build("decoder_tiny", weights=kind, **sizes)
    plain, parts = models.build("decoder_tiny", **sizes), {t.name: to_array(t) for t in narrow.graph.initializer}
    wide = [t for t in plain.graph.initializer if f"{t.name}.steps" in parts]
    assert len(wide) >= 7
    for weight in wide:
        scales = np.repeat(parts[f"{weight.name}.scales"], 32, axis=0)
        weight.CopyFrom(from_array(parts[f"{weight.name}.steps"].astype(np.float32) * scales, weight.name))
    inputs = models.random_inputs(narrow)
    theirs = onnxruntime_outputs(plain.SerializeToString(), inputs)
    assert_close(tw.compile(narrow, target="cpu")(*inputs.values()), theirs)
