# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NonMaxSuppression beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, feeds, node_model

_RANDOM = np.random.default_rng(9)


def boxes(batches, count):
    corner = _RANDOM.random((batches, count, 2), np.float32)
    return np.concatenate([corner, corner + _RANDOM.random((batches, count, 2), np.float32) * 0.4], -1)


def run(*inputs, known=(), **attributes):
    model = node_model("NonMaxSuppression", inputs, known=known, **attributes)
    return check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize("known", [[2, 3, 4], []], ids=["known", "run time"])
@pytest.mark.parametrize("most", [0, 2, 100])
@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(known, most, center):
    scores = _RANDOM.random((2, 3, 20), np.float32)
    limits = [np.array([most]), np.float32([0.3]), np.float32([0.4])]
    run(boxes(2, 20), scores, *limits, known=known, center_point_box=center)


def test_optional_inputs():
    scores = _RANDOM.random((1, 1, 9), np.float32)
    run(boxes(1, 9), scores, np.array([9]))
    run(boxes(1, 9), scores)
    run(boxes(1, 9), scores, np.array([5]), None, np.float32([0.5]))


def test_ties_and_flipped_corners():
    some = boxes(1, 6)[:, :, [2, 3, 0, 1]]
    run(some, np.full((1, 2, 6), 0.5, np.float32), np.array([3]), np.float32([0.0]))


def test_boxes_without_area():
    run(np.zeros((1, 3, 4), np.float32), np.float32([[[1, 2, 3]]]), np.array([3]), np.float32([0.5]))
