# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of float8 on Hopper: their error by depth, with promotion to f32 and without, on the emulator's accumulators."""

from __future__ import annotations

import functools
import re
import shutil
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core.errors import UserError

KINDS: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


@functools.cache
def operands(m: int, n: int, k: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Positive numbers below one: what is cut off their sums is all of one sign."""
    rng = np.random.default_rng(k)
    x, w = (rng.random(shape, np.float32).astype(KINDS[kind]) for shape in ((m, k), (k, n)))
    return x, w


def product(m: int, n: int, k: int, kind: str = "e4m3", given: bool = False) -> onnx.ModelProto:
    """y = (x w) / 4, of float8 that the graph dequantizes; w is an input where it is `given`."""
    nodes = [helper.make_node("DequantizeLinear", [a, "s"], [b]) for a, b in (("x", "d"), ("w", "v"))]
    nodes.append(helper.make_node("MatMul", ["d", "v"], ["y"]))
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(KINDS[kind]))
    inputs = [("x", [m, k])] + ([("w", [k, n])] if given else [])
    held = [numpy_helper.from_array(np.float32(0.5), "s")]
    held += [] if given else [numpy_helper.from_array(operands(m, n, k, kind)[1], "w")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n])],
        held,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def code(model: Any) -> str:
    return "".join(path.read_text() for path in model.path.glob("code/*.ptx"))


def error(m: int, n: int, k: int, kind: str = "e4m3", **options: Any) -> tuple[float, Any]:
    """The largest relative error of a product that warpgroups do, and the model."""
    x, w = operands(m, n, k, kind)
    model = tw.compile(product(m, n, k, kind), "cuda:sm_90a", emulate=True, **options)
    assert re.search(rf"wgmma\.mma_async\S*k32\.f32\.{kind}\.{kind}", code(model)), "by warpgroups"
    assert "cp.async.bulk.tensor" in code(model), "from slots that TMA fills"
    want = 0.25 * (x.astype(np.float64) @ w.astype(np.float64))
    return float((np.abs(model(x)[0] - want) / want).max()), model


@pytest.mark.parametrize("kind", KINDS)
def test_promoted_sums_keep_their_accuracy(kind: str) -> None:
    """128 positive terms lose 2^-13 of the largest of them each, at most, and 2^-13 of the sum four times."""
    found, model = error(64, 64, 512, kind)
    assert found < 1e-3
    assert re.search(r"add(\.rn)?\.f32", code(model))


def test_fast_accumulation_loses_more() -> None:
    found, model = error(64, 64, 512, precision="fp8-fast")
    assert 4e-3 < found < 1e-2
    assert not re.search(r"add(\.rn)?\.f32", code(model))
    entry = model._manifest.compile["precision"]
    assert entry["name"] == "fp8-fast" and entry["products"] == 1 and entry["relative_error"] > 0


@pytest.mark.slow
def test_deep_sums_in_clusters() -> None:
    """4096 terms in each CTA (errors by depth, and without promotion: test_async_products.py)."""
    assert error(512, 512, 4096)[0] < 1e-3


def test_fast_accumulation_is_for_gpus() -> None:
    with pytest.raises(UserError, match="precision='fp8-fast' is for the float8 of NVIDIA GPUs"):
        tw.compile(product(64, 64, 512), "cpu:icelake-server", precision="fp8-fast")


def test_mma_sync_promotes_nothing() -> None:
    """It adds in f32 on this machine: few rows are multiplied so."""
    x, w = operands(16, 64, 512, "e4m3")
    model = tw.compile(product(16, 64, 512), "cuda:sm_90a", emulate=True)
    assert "mma.sync" in code(model) and "wgmma" not in code(model)
    want = 0.25 * (x.astype(np.float64) @ w.astype(np.float64))
    np.testing.assert_allclose(model(x)[0], want, rtol=1e-6)


def planned(precision: str) -> dict[str, str]:
    """The prediction of a large product."""
    text = tw.compile(product(8192, 8192, 8192, given=True), "cuda:sm_90a", precision=precision, stop_after="plan")
    found = re.findall(r"tile\.prediction = \{([^}]*)\}", text)
    return dict(re.findall(r'(\w+) = "?([^", ]+)', found[-1]))


def test_promotion_is_predicted() -> None:
    """The plan counts registers (tiles of 128x256 have none for a second set of sums) and additions."""
    promoted, fast = planned("f32"), planned("fp8-fast")
    assert (promoted["shape"], fast["shape"]) == ("128x128x128", "128x256x128")
    assert int(fast["ns"]) < int(promoted["ns"]) < 1.4 * int(fast["ns"])
    assert int(promoted["promote_ns"]) > 0 and "promote_ns" not in fast


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize(
    ("m", "n", "k"), [(8192, 8192, 8192), (4096, 4096, 16384), (512, 7168, 2048), (64, 4096, 4096)]
)
def test_full_sizes_assemble(m: int, n: int, k: int) -> None:
    """Without spills or serialized products, with as many CTAs to a multiprocessor as the plan counts on."""
    model = tw.compile(product(m, n, k, given=True), "cuda:sm_90a", emulate=True)
    kernels = [kernel for kernel in model._manifest.kernels if "product" in kernel.symbol]
    assert kernels
    for kernel in kernels:
        assert kernel.details["spilled_bytes"] == 0
        assert kernel.details["resident_ctas"] >= kernel.details["plan"]["occupancy"], kernel.details
