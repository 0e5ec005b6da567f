# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of few channels on GPUs: stems of picture models, patches, single channels; taps lie side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from models._graph import Graph

ARCHS = ("sm_80", "sm_90a")
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2}


@dataclass(frozen=True)
class Case:
    """A convolution with a bias and Relu.

    Attributes:
        inputs: channels.
        outputs: filters.
        image: sizes of the image.
        window: of the filters.
        stride: in both directions.
        pad: of zeros on all sides.
        dtype: of all floats.
        batch: images.
    """

    inputs: int
    outputs: int
    image: tuple[int, int]
    window: tuple[int, int]
    stride: int = 1
    pad: int = 0
    dtype: str = "float16"
    batch: int = 1

    def build(self) -> tuple[onnx.ModelProto, np.ndarray]:
        """The model and its input."""
        kind, rng = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype)), np.random.default_rng(5)
        g = Graph("stem", 22)
        terms = self.inputs * int(np.prod(self.window))
        w = g.weight((rng.standard_normal((self.outputs, self.inputs, *self.window)) / terms**0.5).astype(kind), "w")
        bias = g.weight(rng.standard_normal(self.outputs).astype(kind), "b")
        x = rng.standard_normal((self.batch, self.inputs, *self.image)).astype(kind)
        pads, strides = [self.pad] * 4, [self.stride] * 2
        y = g.op("Relu", g.op("Conv", g.input("x", kind, list(x.shape)), w, bias, pads=pads, strides=strides))
        sizes = [(n + 2 * self.pad - k) // self.stride + 1 for n, k in zip(self.image, self.window, strict=True)]
        g.output(y, "y", kind, [self.batch, self.outputs, *sizes])
        return g.model(), x


CASES = {
    "stem": Case(3, 32, (61, 58), (7, 7), 2, 3, batch=2),
    "small_window": Case(3, 24, (33, 40), (3, 3), 2, 1, "bfloat16"),
    "patches": Case(3, 48, (48, 64), (16, 16), 16),
    "one_channel": Case(1, 16, (40, 37), (5, 5), 1, 2),
    "unaligned": Case(20, 32, (20, 23), (3, 3), 1, 1),
}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", CASES)
def test_taps_lie_side_by_side(name: str, arch: str) -> None:
    proto, x = CASES[name].build()
    want = np.asarray(tw.compile(proto, threads=1)(x)[0]).astype(np.float32)
    for seed in (1, 2):
        got = np.asarray(tw.compile(proto, f"cuda:{arch}", emulate={"seed": seed})(x)[0]).astype(np.float32)
        np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE[CASES[name].dtype] * np.abs(want).max())


@pytest.mark.parametrize("arch", ARCHS)
def test_what_lies_behind_the_last_tap_is_no_factor(arch: str) -> None:
    """An infinite number there, times a filter's zero, would be none."""
    proto, x = CASES["stem"].build()
    x[0, 1, ::9, ::7] = np.inf
    with np.errstate(invalid="ignore"):
        want = np.asarray(tw.compile(proto, threads=1)(x)[0])
    got = np.asarray(tw.compile(proto, f"cuda:{arch}", emulate=True)(x)[0])
    assert np.isfinite(want[0]).any() and np.isfinite(want[1]).all()
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("window", "stride", "pad"), [(7, 2, 3), (16, 16, 0)])
def test_stems_of_full_size_load_rows(window: int, stride: int, pad: int, arch: str) -> None:
    """By prediction, each of two kernels within four times what its bytes take."""
    proto, _ = Case(3, 64, (224, 224), (window, window), stride, pad, batch=32).build()
    text = tw.compile(proto, f"cuda:{arch}", stop_after="plan")
    found = re.findall(r"ns = (\d+) : i64, occupancy[^}]*?roofline_ns = (\d+)", text)
    assert len(found) == 2 and all(int(ns) < 4 * int(least) + 4100 for ns, least in found), found


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_small_resnet(arch: str) -> None:
    """The stem of a whole model, its image of bytes between."""
    proto = models.build("resnet50", floats="float16", blocks=(1, 1), width=16, classes=7, size=64)
    x = list(models.random_inputs(proto, 3).values())
    ours, theirs = (
        np.asarray(tw.compile(proto, target=target, emulate=target != "cpu")(*x)[0]).astype(np.float32)
        for target in (f"cuda:{arch}", "cpu")
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-2 * np.abs(theirs).max())
