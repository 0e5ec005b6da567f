# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TopK by ranks, for machines of many threads, beside NumPy's stable order."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support import interpret, node_model

from tilewright.frontend import import_onnx
from tilewright.frontend.onnx.ops.common.ranking import can_rank

_RANDOM = np.random.default_rng(5)


def expected(x: np.ndarray, k: int, largest: bool) -> tuple[np.ndarray, np.ndarray]:
    """NumPy sorts NaN last; falling order is the rising one of what comes first, reversed with its ties."""
    if largest:
        flipped = x[..., ::-1]
        places = x.shape[-1] - 1 - np.argsort(flipped, axis=-1, kind="stable")[..., ::-1][..., :k]
    else:
        places = np.argsort(x, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, places, -1), places


def ranked(model: onnx.ModelProto, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    imported = import_onnx(model, many_threads=True)
    assert "scf.for" not in str(imported.module)
    return interpret(imported, arrays)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "k"), [((7,), 7), ((3, 40), 5), ((2, 3, 9), 1), ((2, 2100), 3), ((2600,), 100)])
def test_it_is_the_stable_order(shape: tuple[int, ...], k: int, largest: int) -> None:
    """Rows of more than a block, of lengths that no block divides, with many equal elements."""
    x = _RANDOM.integers(-9, 10, shape).astype(np.float32)
    places = _RANDOM.choice(x.size, 6)
    x.reshape(-1)[places] = np.float32([np.nan, np.inf, -np.inf] * 2)
    model = node_model("TopK", [x, np.array([k])], known=[1], outputs=2, largest=largest)
    values, places = ranked(model, {"x0": x})
    wanted, at = expected(x, k, bool(largest))
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(places, at)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64, np.float16])
@pytest.mark.parametrize("largest", [0, 1])
def test_types(dtype: type, largest: int) -> None:
    """The least and the largest number of a type, too."""
    x = _RANDOM.integers(0, 5, (2, 33)).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        x[0, 3], x[1, 5] = np.iinfo(dtype).min, np.iinfo(dtype).max
    model = node_model("TopK", [x, np.array([9])], known=[1], outputs=2, largest=largest)
    for got, wanted in zip(ranked(model, {"x0": x}), expected(x, 9, bool(largest)), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_any_axis() -> None:
    x = _RANDOM.standard_normal((4, 6, 5)).astype(np.float32)
    model = node_model("TopK", [x, np.array([2])], known=[1], outputs=2, axis=1)
    values, places = ranked(model, {"x0": x})
    wanted, at = expected(x.transpose(0, 2, 1), 2, True)
    np.testing.assert_array_equal(values, wanted.transpose(0, 2, 1))
    np.testing.assert_array_equal(places, at.transpose(0, 2, 1))


def test_where_a_heap_is_better() -> None:
    """Where a large part of a long row is kept, and where sizes are open."""
    assert can_rank(2048, 2048) and can_rank(1_000_000, 128)
    assert not can_rank(2049, 129) and not can_rank(5, 0)
