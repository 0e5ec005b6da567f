# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions that GPUs multiply in fewer bits: quantized bytes, and `precision=` of a model in f32."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from models._graph import Graph

ARCHS = ("sm_80", "sm_90a")
SAME = {"pads": [1, 1, 1, 1]}


@dataclass(frozen=True)
class Case:
    """A convolution of bytes.

    Attributes:
        kind: ``ConvInteger``, ``QLinearConv`` or ``QDQ`` (floats between QuantizeLinear and DequantizeLinear).
        inputs: channels.
        outputs: filters.
        image: sizes of the image.
        window: of the filters.
        attributes: of the node.
        types: of image and filters.
        zeros: zero points of both; filters of QLinearConv have one for each, these plus 0, 1 or 2.
        batch: images.
        run: whether zero points are inputs of the model.
        unit: what multiplies on sm_90a.
    """

    kind: str
    inputs: int = 64
    outputs: int = 64
    image: tuple[int, int] = (9, 11)
    window: tuple[int, int] = (3, 3)
    attributes: dict[str, object] = field(default_factory=lambda: dict(SAME))
    types: tuple[type, type] = (np.uint8, np.int8)
    zeros: tuple[int, int] = (0, 0)
    batch: int = 1
    run: bool = False
    unit: str = "wgmma.mma_async"

    def build(self) -> tuple[onnx.ModelProto, list[np.ndarray]]:
        """The model and its inputs."""
        rng, g = np.random.default_rng(11), Graph("quantized", 21)
        image, filters = (np.dtype(kind) for kind in self.types)
        groups = int(str(self.attributes.get("group", 1)))
        shape = (self.outputs, self.inputs // groups, *self.window)
        levels = _bytes(rng, shape, filters)
        each = np.resize(np.arange(3), self.outputs) if self.kind == "QLinearConv" and self.zeros[1] else 0
        points = [np.asarray(self.zeros[0], image), (self.zeros[1] + each + np.zeros(self.outputs)).astype(filters)]
        size = [self.batch, self.inputs, *self.image]
        scales = rng.uniform(0.5, 1.5, self.outputs).astype(np.float32) / np.float32(levels.size**0.5)
        if self.kind == "QDQ":
            x = g.input("x", np.float32, size)
            first, second = g.weight(np.float32(0.02), "s"), g.weight(points[0], "z")
            x = g.op("DequantizeLinear", g.op("QuantizeLinear", x, first, second), first, second)
            w = g.op(
                "DequantizeLinear", g.weight(levels, "w"), g.weight(scales, "ws"), g.weight(points[1], "wz"), axis=0
            )
            y = g.op("Relu", g.op("Conv", x, w, g.weight(scales, "bias"), **self.attributes))
            last = g.weight(np.float32(0.02), "ys"), g.weight(np.uint8(0), "yz")
            g.output(g.op("DequantizeLinear", g.op("QuantizeLinear", y, *last), *last), "y", np.float32, self.result())
            return g.model(), [rng.standard_normal(size).astype(np.float32)]
        given = [_bytes(rng, size, image)]
        x, w = g.input("x", image, size), g.weight(levels, "w")
        if self.run:
            points[1] = points[1][:1].reshape(())
            zeros = [g.input(n, p.dtype, list(p.shape)) for n, p in zip(("zx", "zw"), points, strict=True)]
            given += points
        else:
            zeros = [g.weight(p if self.kind == "QLinearConv" else p.reshape(-1)[0], "z") for p in points]
        if self.kind == "ConvInteger":
            g.output(g.op("ConvInteger", x, w, *zeros, **self.attributes), "y", np.int32, self.result())
            return g.model(), given
        last = g.weight(np.float32(40.0), "ys"), g.weight(np.uint8(113), "yz")
        bias = g.weight(rng.integers(-999, 999, self.outputs).astype(np.int32), "bias")
        scale = g.weight(np.float32(1.5), "xs"), g.weight(scales, "ws")
        y = g.op("QLinearConv", x, scale[0], zeros[0], w, scale[1], zeros[1], *last, bias, **self.attributes)
        g.output(y, "y", np.uint8, self.result())
        return g.model(), given

    def result(self) -> list[int]:
        """The shape of the result."""
        pads, steps = self.attributes.get("pads", [0] * 4), self.attributes.get("strides", [1, 1])
        room = [n + pads[d] + pads[2 + d] - self.window[d] for d, n in enumerate(self.image)]  # type: ignore[index]
        sizes = (n // s + 1 for n, s in zip(room, steps, strict=True))  # type: ignore[call-overload]
        return [self.batch, self.outputs, *sizes]


def _bytes(rng: np.random.Generator, shape, dtype: np.dtype) -> np.ndarray:
    """All bytes, the extreme ones often."""
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max + 1, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([limits.min, limits.max], shape), values).astype(dtype)


CASES = {
    "integer": Case("ConvInteger"),
    "border_of_points": Case("ConvInteger", zeros=(7, 0), batch=2),
    "unsigned_filters": Case("ConvInteger", types=(np.uint8, np.uint8), zeros=(3, 128)),
    "turned_image": Case("ConvInteger", types=(np.int8, np.int8), zeros=(-128, 0)),
    "points_of_the_run": Case("ConvInteger", zeros=(9, 3), run=True),
    "filters_have_points": Case("QLinearConv", zeros=(12, -3), outputs=72),
    "points": Case("QLinearConv", 256, 96, (7, 7), (1, 1), {}, zeros=(128, 0), batch=3),
    "steps": Case("QLinearConv", 64, 32, (17, 15), (3, 3), {**SAME, "strides": [2, 2]}),
    "signed": Case("QLinearConv", 96, 64, types=(np.int8, np.int8), zeros=(-4, 0)),
    "groups": Case("QLinearConv", 128, 64, attributes={**SAME, "group": 2}),
    "few_channels": Case("QLinearConv", 32, 48, unit="mma.sync"),
    "colours": Case("QLinearConv", 3, 16, (17, 18), (7, 7), {"pads": [3] * 4, "strides": [2, 2]}, unit="mma.sync"),
    "dequantized": Case("QDQ", zeros=(0, 0)),
    "dequantized_around_a_point": Case("QDQ", 64, 80, zeros=(121, 0)),
    "dequantized_inside": Case("QDQ", attributes={}, zeros=(121, 0), batch=2),
}


def _text(model: tw.CompiledModel, folder: Path) -> str:
    model.save(folder / "m")
    return "\n".join(path.read_text() for path in (folder / "m").rglob("*.ptx"))


def _check(case: Case, arch: str, folder: Path) -> str:
    """Compare with the CPU, to the last bit for whole numbers; gives the PTX."""
    proto, inputs = case.build()
    compiled = tw.compile(proto, target=f"cuda:{arch}", emulate=True)
    ours, theirs = compiled(*inputs)[0], tw.compile(proto, threads=2)(*inputs)[0]
    assert len(np.unique(theirs)) > 32
    if case.kind == "ConvInteger":
        np.testing.assert_array_equal(ours, theirs)
    else:  # a sum that lies between two steps
        step = 1 if case.kind == "QLinearConv" else np.float32(0.02)
        off = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) / step
        assert off.max() < 1.01 and np.mean(off > 0.5) < 1e-3
    return _text(compiled, folder)


@pytest.mark.usefixtures("warpgroups")
@pytest.mark.parametrize("name", CASES)
def test_bytes_on_hopper(name: str, tmp_path: Path) -> None:
    text, unit = _check(CASES[name], "sm_90a", tmp_path), CASES[name].unit
    assert unit in text


@pytest.mark.parametrize("name", CASES)
def test_bytes_on_ampere(name: str, tmp_path: Path) -> None:
    assert "mma.sync" in _check(CASES[name], "sm_80", tmp_path)


def _network() -> tuple[onnx.ModelProto, np.ndarray]:
    """Two convolutions in f32, one without a border, with a Relu between them and a sum behind them."""
    rng, g = np.random.default_rng(5), Graph("network", 21)
    x = g.input("x", np.float32, [1, 64, 9, 10])
    first, second = (rng.standard_normal((64, 64, n, n)).astype(np.float32) / (8 * n) for n in (3, 1))
    h = g.op("Relu", g.op("Conv", x, g.weight(first, "w"), g.weight(np.float32(rng.standard_normal(64)), "b"), **SAME))
    y = g.op("Conv", h, g.weight(second, "v"))
    g.output(g.op("Add", y, x), "y", np.float32, [1, 64, 9, 10])
    return g.model(), rng.standard_normal((1, 64, 9, 10)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_bf16_rounds_images_and_filters(arch: str, tmp_path: Path) -> None:
    proto, x = _network()
    model = tw.compile(proto, f"cuda:{arch}", precision="bf16", emulate=True)
    text = _text(model, tmp_path)
    assert "bf16.bf16" in text and "fma.rn.f32" not in text.replace("fma.rn.f32x2", "")
    entry = model._manifest.compile["precision"]
    assert entry["products"] == 2 and 0 < entry["relative_error"] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_bf16_sums_what_is_rounded(arch: str) -> None:
    """One convolution of numbers that bf16 has, and of others: exactly the rounded ones are multiplied."""
    rng, g = np.random.default_rng(6), Graph("one", 21)
    w = rng.standard_normal((32, 64, 3, 3)).astype(np.float32)
    x = g.input("x", np.float32, [2, 64, 8, 7])
    g.output(g.op("Conv", x, g.weight(w, "w"), **SAME), "y", np.float32, [2, 32, 8, 7])
    image = rng.standard_normal((2, 64, 8, 7)).astype(np.float32)
    ours = tw.compile(g.model(), f"cuda:{arch}", precision="bf16", emulate=True)(image)[0]
    near = image.astype(ml_dtypes.bfloat16).astype(np.float32)
    g = Graph("rounded", 21)
    x = g.input("x", np.float32, [2, 64, 8, 7])
    kernel = g.weight(w.astype(ml_dtypes.bfloat16).astype(np.float32), "w")
    g.output(g.op("Conv", x, kernel, **SAME), "y", np.float32, [2, 32, 8, 7])
    np.testing.assert_allclose(ours, tw.compile(g.model())(near)[0], rtol=1e-4, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_int8_calibrates_images(arch: str, tmp_path: Path) -> None:
    proto, x = _network()
    model = tw.compile(proto, f"cuda:{arch}", precision="int8", calibration=[(x,)], emulate=True)
    assert ".s8" in _text(model, tmp_path) and ".u8" in _text(model, tmp_path)
    entry = model._manifest.compile["precision"]
    assert entry["products"] == 2 and 0 < entry["relative_error"] < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_tf32_multiplies_convolutions(arch: str, tmp_path: Path) -> None:
    proto, x = _network()
    model = tw.compile(proto, f"cuda:{arch}", precision="tf32", emulate=True)
    assert ".tf32.tf32" in _text(model, tmp_path)
    assert 0 < model._manifest.compile["precision"]["relative_error"] < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_small_quantized_resnet(arch: str) -> None:
    proto = models.build("resnet50_int8", blocks=(1, 1), width=32, classes=13, size=40)
    inputs = list(models.random_inputs(proto, 3).values())
    ours = tw.compile(proto, target=f"cuda:{arch}", emulate=True)(*inputs)[0]
    theirs = tw.compile(proto, threads=2)(*inputs)[0]
    assert np.abs(ours - theirs).max() <= 2 * 0.05 + 1e-6 and len(np.unique(theirs)) > 3
