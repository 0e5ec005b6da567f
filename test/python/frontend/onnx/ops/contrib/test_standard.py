# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators with the standard's meaning in com.microsoft, and Inverse, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, I32, beside_runtime, real


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(upper):
    beside_runtime("Trilu", [real(3, 4, 5)], opens=(4,), upper=upper)
    beside_runtime("Trilu", [real(3, 4, 5), np.array(1, np.int64)], known=(1,), upper=upper)


def test_range():
    bounds = [np.array([v], F32) for v in (1, 7, 2)]
    beside_runtime("Range", bounds[:2], half=False, opens=False)
    beside_runtime("Range", bounds, half=False, opens=False)


def test_gather_nd():
    beside_runtime("GatherND", [real(3, 4, 5), np.array([[0, 1], [2, 3]], np.int64)], opens=(3, 4, 5))


def test_pad():
    beside_runtime("Pad", [real(3, 4), np.array([1, 2, 0, 1], np.int64), np.array([2.5], F32)], known=(1,))
    beside_runtime("Pad", [real(3, 4), np.array([[1, 2, 0, 1]], np.int64)], known=(1,), mode="reflect")


@pytest.mark.parametrize("options", [{}, {"padding_mode": "border", "align_corners": 1}, {"mode": "bicubic"}])
def test_grid_sample(options):
    beside_runtime("GridSample", [real(2, 3, 5, 6), real(2, 4, 4, 2)], opens=False, half=not options, **options)


def test_expand_dims():
    beside_runtime("ExpandDims", [real(3, 4), np.array(1, I32)], known=(1,))


def test_inverse():
    beside_runtime("Inverse", [real(2, 3, 4, 4)], half=False, opens=(2, 3, 4))
    beside_runtime("Inverse", [real(4, 4)], half=False)
