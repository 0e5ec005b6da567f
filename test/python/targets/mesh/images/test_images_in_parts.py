# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions as products whose windows no core holds at once: cut into parts, with the same numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.demo.graph import GraphBuilder
from tilewright.targets.mesh.pipeline import PIPELINE

TARGET = "mesh:toy8x8"
RNG = np.random.default_rng(9)


def conv(image: tuple[int, ...], filters: tuple[int, ...], **attributes: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A model, its image and its filters: small integers, whose sums are exact in any order."""
    x, w = (RNG.integers(-3, 4, shape).astype(np.float32) for shape in (image, filters))
    g = GraphBuilder("conv")
    made = g.op("Conv", g.input("x", np.float32, list(image)), g.weight(w), **attributes)
    g.output(made, "y", np.float32, [f"d{at}" for at in range(len(image))])
    return g.model(), x, w


@pytest.mark.parametrize(
    ("image", "filters", "attributes"),
    [
        ((1, 64, 32, 32), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((1, 90, 21, 33), (50, 90, 3, 3), {"strides": [2, 1]}),
        ((2, 40, 19, 17), (48, 40, 5, 3), {"pads": [2, 1, 2, 1], "dilations": [1, 1]}),
    ],
)
def test_windows_larger_than_the_cores(image: tuple[int, ...], filters: tuple[int, ...], attributes: Any) -> None:
    """What was outside of the grid is products in parts; no core is fuller than it can be."""
    model, x, _ = conv(image, filters, **attributes)
    compiled: Any = tw.compile(model, TARGET)
    np.testing.assert_array_equal(compiled(x)[0], tw.compile(model, "reference")(x)[0])
    text = compiled.explain()
    assert re.search(r"im2col, .* in parts: ", text) and "interpreted outside" not in text
    found = [kernel.details for kernel in compiled.kernels if kernel.symbol == "meshgemm"]
    assert len(found) > 1 and max(one["memory"] for one in found) <= 48 * 1024


@pytest.mark.parametrize("parts", [(2, 1, 1), (1, 3, 1), (1, 1, 2), (3, 9, 2)])
def test_parts_are_a_decision(parts: tuple[int, int, int]) -> None:
    """Rows, places of a window, channels: ragged ones, too."""
    model, x, w = conv((1, 41, 7, 6), (45, 41, 3, 3), pads=[1, 1, 1, 1])
    compiled = edited(model, w, f"array<i64: {', '.join(map(str, parts))}>")
    np.testing.assert_array_equal(compiled(x)[0], tw.compile(model, "reference")(x)[0])
    assert sum(kernel.symbol == "meshgemm" for kernel in compiled.kernels) == parts[0] * parts[1] * parts[2]


@pytest.mark.parametrize("parts", ["array<i64: 1, 10, 1>", "array<i64: 7, 1, 1>", "array<i64: 1>"])
def test_impossible_parts(parts: str) -> None:
    model, _, w = conv((1, 41, 7, 6), (45, 41, 3, 3), pads=[1, 1, 1, 1])
    with pytest.raises(UserError, match=r"coremesh\.parts (is|asks for)"):
        edited(model, w, parts)


def edited(model: Any, w: np.ndarray, parts: str) -> Any:
    """The convolution as a product in parts."""
    planned = tw.compile(model, TARGET, stop_after="plan")
    old = 'coremesh.algorithm = "im2col", '
    assert old in planned
    name = re.findall(r"ml_program.global private @(\S+?)\(", planned)[0]
    text = planned.replace(old, f"{old}coremesh.parts = {parts}, ")
    return tw.compile(text, TARGET, weights={name: w}, pipeline=PIPELINE.after("plan"))
