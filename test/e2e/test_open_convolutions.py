# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of images whose number, height and width a run brings: padding is filled by kernels, as of fixed sizes.

The host's code would write it element by element, and LLVM takes minutes for the loops of many paddings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core import config

F32 = TensorProto.FLOAT


def padded_twice(sizes: list[Any], pads: list[int]) -> Any:
    """Two convolutions, the second of which reads a padded result of the first; a pooling that pads with -inf."""
    random = np.random.default_rng(0)
    weights = {
        n: random.standard_normal(s).astype(np.float32) for n, s in {"v": [16, 3, 3, 3], "w": [16, 1, 3, 3]}.items()
    }
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], pads=pads, strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"], group=16, pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[3, 3], pads=pads),
    ]
    x = helper.make_tensor_value_info("x", F32, sizes)
    y = helper.make_tensor_value_info("y", F32, [sizes[0], 16, "p", "q"])
    held = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], held), opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("pads", [[1, 1, 1, 1], [0, 1, 1, 0]], ids=str)
@pytest.mark.parametrize("sizes", [["n", 3, 9, 8], [2, 3, "h", "w"]], ids=str)
def test_padding_is_work_of_kernels(sizes: list[Any], pads: list[int], target: str, tmp_path: Path) -> None:
    """Right for each size, from one artifact; no fill and no loop of elements is left on the host."""
    options: dict[str, Any] = {"emulate": True} if target.startswith("cuda") else {}
    with config.dump_ir.override(str(tmp_path)), config.cache.override(False):
        model = tw.compile(padded_twice(sizes, pads), target, sizes="general", **options)
    host = next(tmp_path.glob("*-schedule.mlir")).read_text().split("func.func @main")[-1]
    assert "linalg." not in host
    for number in (1, 3):
        shape = [number if s == "n" else 5 + number if isinstance(s, str) else s for s in sizes]
        x = np.random.default_rng(number).standard_normal(shape).astype(np.float32)
        expected = tw.compile(padded_twice(shape, pads), "reference")(x)[0]
        np.testing.assert_allclose(model(x)[0], expected, rtol=1e-5, atol=1e-5)
