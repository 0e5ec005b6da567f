# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of 16-bit floats on GPUs: matrix units multiply them as memory has them, with the CPU's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from models._graph import Graph
from tilewright.plan.cost import gemm_time
from tilewright.plan.cost.gemm_shapes import Shape

#: Relative to the largest magnitude of the result, which both round once.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2}


@dataclass(frozen=True)
class Case:
    """A convolution.

    Attributes:
        inputs: channels.
        outputs: filters.
        image: sizes of the image.
        window: of the filters.
        attributes: of the node.
        tail: what follows: any of ``norm``, ``bias``, ``residual``, ``relu``,
            ``again`` (the same window over the result).
        dtype: of all floats.
        batch: images.
        kind: the operator.
        unit: what multiplies on sm_90a: ``tma`` (wgmma of boxes that TMA loads), ``wgmma``, ``mma``, or nothing.
        ampere: whether matrix units multiply on sm_80.
    """

    inputs: int
    outputs: int
    image: tuple[int, ...]
    window: tuple[int, ...]
    attributes: dict[str, object] = field(default_factory=dict)
    tail: tuple[str, ...] = ()
    dtype: str = "float16"
    batch: int = 1
    kind: str = "Conv"
    unit: str = "tma"
    ampere: bool = True

    def build(self) -> tuple[onnx.ModelProto, list[np.ndarray]]:
        """The model and inputs for it."""
        kind, rng = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype)), np.random.default_rng(7)
        groups = int(str(self.attributes.get("group", 1)))
        g = Graph("convolution", 22)

        def weight(*shape: int, scale: float = 1.0, shift: float = 0.0) -> str:
            return g.weight((rng.standard_normal(shape) * scale + shift).astype(kind), "w")

        first = (self.outputs, self.inputs // groups)
        if self.kind == "ConvTranspose":
            first = (self.inputs, self.outputs // groups)
        filters = weight(*first, *self.window, scale=(first[1] * np.prod(self.window)) ** -0.5)
        given = [rng.standard_normal((self.batch, self.inputs, *self.image)).astype(kind)]
        x = g.input("x", kind, list(given[0].shape))
        bias = [weight(self.outputs)] if "bias" in self.tail else []
        y = g.op(self.kind, x, filters, *bias, **self.attributes)
        if "norm" in self.tail:
            near_one = [weight(self.outputs, scale=0.1, shift=shift) for shift in (1.0, 0.0, 0.0)]
            variance = g.weight(rng.uniform(0.5, 1.5, self.outputs).astype(kind), "variance")
            y = g.op("BatchNormalization", y, *near_one, variance)
        shape = self._result()
        if "residual" in self.tail:
            given.append(rng.standard_normal(shape).astype(kind))
            y = g.op("Add", y, g.input("r", kind, shape))
        if "relu" in self.tail:
            y = g.op("Relu", y)
        if "again" in self.tail:
            y = g.op("Conv", y, weight(self.outputs, self.outputs, *self.window, scale=0.1), **self.attributes)
        g.output(y, "y", kind, shape)
        return g.model(), given

    def _result(self) -> list[int]:
        rank = len(self.image)
        given: dict[str, list[int]] = {"strides": [1] * rank, "dilations": [1] * rank, "pads": [0] * 2 * rank}
        given |= self.attributes  # type: ignore[operator]
        sizes = []
        for d, n in enumerate(self.image):
            room, step = given["pads"][d] + given["pads"][rank + d], given["strides"][d]
            span = (self.window[d] - 1) * given["dilations"][d] + 1
            transposed = self.kind == "ConvTranspose"
            sizes.append(step * (n - 1) + span - room if transposed else (n + room - span) // step + 1)
        return [self.batch, self.outputs, *sizes]


_SAME = {"pads": [1, 1, 1, 1]}
_HALF = {"pads": [1, 1, 1, 1], "strides": [2, 2]}
CASES = {
    "border": Case(64, 64, (9, 11), (3, 3), _SAME, ("bias", "relu")),
    "channels": Case(40, 24, (10, 8), (3, 3), _SAME, ("norm", "relu"), dtype="bfloat16"),
    "points": Case(128, 72, (9, 8), (1, 1), {}, ("norm", "residual", "relu"), batch=2),
    "few_filters": Case(64, 64, (8, 9), (1, 1), {}, ("norm",), unit="mma"),
    "steps": Case(64, 96, (19, 17), (3, 3), _HALF, ("norm", "relu")),
    "steps_of_points": Case(128, 64, (17, 16), (1, 1), {"strides": [2, 2]}, ("norm",)),
    "patches": Case(64, 64, (32, 36), (4, 4), {"strides": [4, 4]}, ("bias",)),
    "inside": Case(64, 32, (13, 11), (3, 3)),
    "groups": Case(128, 96, (9, 9), (3, 3), {**_SAME, "group": 2}, ("norm",)),
    "dilated": Case(64, 64, (10, 9), (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    "line": Case(64, 64, (70,), (5,), {"pads": [2, 2]}, ("bias",), dtype="bfloat16"),
    "volume": Case(32, 32, (4, 6, 5), (3, 3, 3), {"pads": [1] * 6}),
    "unaligned": Case(20, 12, (9, 8), (3, 3), _SAME, ("bias",)),
    "colours": Case(3, 16, (17, 18), (7, 7), {"pads": [3] * 4, "strides": [2, 2]}, ("norm", "relu"), unit="mma"),
    "depthwise": Case(24, 24, (9, 10), (3, 3), {**_SAME, "group": 24}, ("norm",), unit="", ampere=False),
    "transposed": Case(64, 32, (6, 7), (4, 4), _HALF, ("bias",), kind="ConvTranspose"),
}


def _text(model: tw.CompiledModel, folder: Path) -> str:
    model.save(folder / "m")
    return "\n".join(path.read_text() for path in (folder / "m").rglob("*.ptx"))


def _check(case: Case, target: str, folder: Path) -> str:
    """Compare with the CPU; gives the PTX."""
    proto, inputs = case.build()
    compiled = tw.compile(proto, target=target, emulate=True)
    ours, theirs = compiled(*inputs)[0], tw.compile(proto, threads=2)(*inputs)[0]
    ours, theirs = (np.asarray(y).astype(np.float32) for y in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[case.dtype] * np.abs(theirs).max())
    return _text(compiled, folder)


@pytest.mark.usefixtures("warpgroups")
@pytest.mark.parametrize("name", CASES)
def test_hopper(name: str, tmp_path: Path) -> None:
    text, unit = _check(CASES[name], "cuda:sm_90a", tmp_path), CASES[name].unit
    assert ("wgmma.mma_async" in text) == (unit in ("tma", "wgmma"))
    assert ("cp.async.bulk.tensor" in text and "global" in text) == (unit == "tma")
    assert ("mma.sync" in text) == (unit == "mma")


@pytest.mark.parametrize("name", CASES)
def test_ampere(name: str, tmp_path: Path) -> None:
    text = _check(CASES[name], "cuda:sm_80", tmp_path)
    assert ("mma.sync" in text) == CASES[name].ampere


@pytest.mark.slow
@pytest.mark.usefixtures("warpgroups")
def test_one_grid_for_many_tiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Blocks that go on from task to task, with a window and its border in one ring."""
    every = gemm_time.shapes

    def persistent(shapes: Iterable[Shape]) -> Sequence[Shape]:
        found = list(shapes)
        return [shape for shape in found if shape.persistent] or found

    case = Case(64, 16, (93, 97), (1, 3), {"pads": [0, 1, 0, 1]}, ("norm", "relu", "again"))
    monkeypatch.setattr(gemm_time, "shapes", lambda problem, gpu: persistent(every(problem, gpu)))
    text = _check(case, "cuda:sm_90a", tmp_path)
    assert "wgmma.mma_async" in text and "cp.async.bulk.tensor" in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_small_resnet(target: str) -> None:
    """Stem, bottlenecks with and without a stride, head: what the CPU computes of the same f16 model."""
    proto = models.build("resnet50", floats="float16", blocks=(1, 1), width=32, classes=13, size=40)
    compiled, plain = tw.compile(proto, target=target, emulate=True), tw.compile(proto, threads=2)
    inputs = list(models.random_inputs(proto, 3).values())
    ours, theirs = (np.asarray(m(*inputs)[0]).astype(np.float32) for m in (compiled, plain))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-2 * np.abs(theirs).max())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_copy_of_all_that_there_is_reaches_over_no_border(arch: str) -> None:
    """A task that holds the whole image copies it as it is: there is no view of it to ask for a place."""
    model, arrays = Case(16, 24, (8, 8), (3, 3), {"pads": [1, 1, 1, 1]}).build()
    result, expected = (
        np.asarray(tw.compile(model, target=target, emulate=target != "cpu")(*arrays)[0], np.float64)
        for target in (f"cuda:{arch}", "cpu")
    )
    np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE["float16"] * np.abs(expected).max())


#: Boxes that TMA has none of: more than 8 places from one to the next, more than 256 of the image.
WIDE = {
    "far_steps": Case(128, 64, (66, 68), (1, 1), {"strides": [9, 9]}, ("bias",)),
    "long_boxes": Case(64, 32, (515,), (3,), {"strides": [8]}, ("norm", "relu")),
    "long_dilated_boxes": Case(64, 32, (530,), (3,), {"strides": [5], "dilations": [7], "pads": [7, 7]}, ("bias",)),
}


@pytest.mark.usefixtures("warpgroups")
@pytest.mark.parametrize("name", WIDE)
def test_what_no_box_holds_is_copied_by_threads(name: str, tmp_path: Path) -> None:
    text = _check(WIDE[name], "cuda:sm_90a", tmp_path)
    assert "wgmma.mma_async" in text and "cp.async.cg" in text and ".tensor" not in text


def _open(batch: int | str, size: tuple[int | str, int | str], strides: list[int]) -> onnx.ModelProto:
    """Two convolutions of f16, the first one with a border, a bias and a Relu."""
    rng, g = np.random.default_rng(3), Graph("open", 21)
    kind = np.dtype(np.float16)

    def weight(*shape: int) -> str:
        return g.weight((rng.standard_normal(shape) * np.prod(shape[1:]) ** -0.5).astype(kind), "w")

    x = g.input("x", kind, [batch, 64, *size])
    y = g.op("Relu", g.op("Conv", x, weight(96, 64, 3, 3), weight(96), pads=[1] * 4, strides=strides))
    g.output(g.op("Conv", y, weight(64, 96, 1, 1)), "y", kind, ["n", 64, "oh", "ow"])
    return g.model()


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "batch, size, strides, given",
    [
        ("n", (9, 10), [1, 1], ((3, 9, 10), (1, 9, 10))),
        ("n", (11, 10), [2, 2], ((2, 11, 10),)),
        (1, ("h", "w"), [1, 1], ((1, 9, 10), (1, 12, 7))),
        (2, ("h", 8), [2, 1], ((2, 13, 8), (2, 4, 8))),
    ],
)
def test_open_sizes_are_multiplied_on_tensor_cores(
    arch: str,
    batch: int | str,
    size: tuple[int | str, int | str],
    strides: list[int],
    given: tuple[tuple[int, ...], ...],
) -> None:
    """One compilation for all sizes."""
    proto = _open(batch, size, strides)
    model, plain = tw.compile(proto, f"cuda:{arch}", emulate=True), tw.compile(proto, threads=1)
    for number, height, width in given:
        x = np.random.default_rng(height).standard_normal((number, 64, height, width)).astype(np.float16)
        ours, theirs = (np.asarray(m(x)[0]).astype(np.float32) for m in (model, plain))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE["float16"] * np.abs(theirs).max())
    code = "\n".join(path.read_text() for path in model.general.path.glob("code/*.ptx"))
    assert ("mma.sync" in code or "wgmma" in code) and "fma.rn.f32" not in code


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_bias_is_added_in_the_kernel_of_its_groups(target: str) -> None:
    """Channels of two dimensions, groups and filters, meet what follows in registers."""
    proto, _ = Case(128, 96, (9, 9), (3, 3), {**_SAME, "group": 2}, ("bias", "relu")).build()
    assert len(re.findall(r"\btile\.kernel = ", tw.compile(proto, target, stop_after="plan"))) == 2  # one transposes x
