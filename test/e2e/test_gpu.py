# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for NVIDIA GPUs on the emulator: compiled, saved, loaded, run; what a call refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.targets.cuda import ptxas

ARCHS = ("cuda:sm_80", "cuda:sm_90a")
GENERATOR = np.random.default_rng(7)
WEIGHT = GENERATOR.standard_normal((20, 12), dtype=np.float32)
BIAS = GENERATOR.standard_normal(12, dtype=np.float32)


def layer(rows: int | str) -> onnx.ModelProto:
    """A dense layer: relu(x @ weight + bias) - bias."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("Sub", ["r", "b"], ["y"]),
    ]
    weights = [numpy_helper.from_array(WEIGHT, "w"), numpy_helper.from_array(BIAS, "b")]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 20])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "layer", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(x @ WEIGHT + BIAS, 0) - BIAS


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("rows", [1, 5, 37])
def test_a_layer(arch: str, rows: int) -> None:
    """Twice: what a call leaves behind must not matter."""
    model = tw.compile(layer(rows), target=arch, emulate=True)
    for _ in range(2):
        x = GENERATOR.standard_normal((rows, 20), dtype=np.float32)
        np.testing.assert_allclose(model(x)["y"], expected(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("arch", ARCHS)
def test_sizes_of_the_run(arch: str) -> None:
    """One compilation for all numbers of rows."""
    model = tw.compile(layer("rows"), target=arch, emulate=True)
    for rows in (1, 33, 0, 64):
        x = GENERATOR.standard_normal((rows, 20), dtype=np.float32)
        np.testing.assert_allclose(model(x)["y"], expected(x), rtol=1e-5, atol=1e-5)
    assert model.general is not None and not model.sizes


def test_a_kernel_by_hand() -> None:
    """Text, on the emulator: its numbers, a check against the interpreter, its roofline."""
    twice = tw.kernel(
        """
        tile.kernel @twice(%x: memref<?x64xf32>, %y: memref<?x64xf32>) grid(%i) {
          %c0 = arith.constant 0 : index
          %a = tile.load %x[%i, %c0] : memref<?x64xf32>, !tile.tile<1x64xf32>
          %b = arith.addf %a, %a : !tile.tile<1x64xf32>
          tile.store %b, %y[%i, %c0] : !tile.tile<1x64xf32>, memref<?x64xf32>
          tile.return
        }
        """,
        target="cuda:sm_90a",
        emulate=True,
    )
    x = GENERATOR.standard_normal((3, 64), dtype=np.float32)
    np.testing.assert_array_equal(twice(x, np.empty_like(x), grid=[3])["y"], x + x)
    assert twice.check(x, np.empty_like(x), grid=[3]) == 0.0
    prediction = twice.predict(x, np.empty_like(x), grid=[3])
    assert prediction.bytes == 2 * x.nbytes and prediction.bound == "memory" and prediction.floor > 0
    with pytest.raises(UnsupportedError, match="no clock"):
        twice.roofline(x, np.empty_like(x), grid=[3])


TWINS = """
tile.kernel @NAME(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) {
  %v = memref.load %x[%i] : memref<64xf32>
  %w = arith.addf %v, %v : f32
  memref.store %w, %y[%i] : memref<64xf32>
  tile.return
}
"""
CALLS = """
func.func @main(%x: tensor<64xf32> {tile.name = "x"}, %y: tensor<64xf32> {tile.name = "y"})
    -> (tensor<64xf32> {tile.name = "a"}, tensor<64xf32> {tile.name = "b"}) {
  %c48 = arith.constant 48 : index
  %c64 = arith.constant 64 : index
  %e = tensor.empty() : tensor<64xf32>
  %a = tile.launch @add grid(%c64) ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) -> (tensor<64xf32>)
  %b = tile.launch @sub grid(%c48) ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) -> (tensor<64xf32>)
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}
"""


def test_kernels_that_differ_in_their_launches_alone() -> None:
    """One code under two names, which are instructions' names, too."""
    text = TWINS.replace("NAME", "add") + TWINS.replace("NAME", "sub") + CALLS
    x, y = (GENERATOR.standard_normal(64, dtype=np.float32) for _ in range(2))
    found = tw.compile(text, target="cuda:sm_80", emulate=True)(x, y)
    np.testing.assert_array_equal(found["a"], x + x)
    np.testing.assert_array_equal(found["b"], [*(x + x)[:48], *y[48:]])


def test_an_artifact_is_whole(tmp_path: Path) -> None:
    """A file and a folder hold PTX, the host program and the weights; the emulator runs them."""
    x = GENERATOR.standard_normal((3, 20), dtype=np.float32)
    model = tw.compile(layer(3), target="cuda:sm_80")
    for name in ("model.tw", "folder"):
        loaded = tw.load(model.save(tmp_path / name), emulate=True)
        assert all(".target sm_80" in text for text in loaded.ptx().values())
        np.testing.assert_allclose(loaded(x)[0], expected(x), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(ptxas.find() is None, reason="needs ptxas")
def test_machine_code_lies_beside_the_ptx(tmp_path: Path) -> None:
    """Each kernel of the artifact has both; the emulator goes on with the PTX."""
    x = GENERATOR.standard_normal((3, 20), dtype=np.float32)
    model = tw.compile(layer(3), target="cuda:sm_90a", cubin=True)
    place = model.save(tmp_path / "folder")
    codes = sorted((Path(place) / "code").glob("*.cubin"))
    assert [file.stem for file in codes] == sorted(kernel.symbol for kernel in model.kernels)
    assert all(file.read_bytes().startswith(b"\x7fELF") for file in codes)
    loaded = tw.load(place, emulate=True)
    assert all(name.endswith(".ptx") for name in loaded.ptx()) and len(loaded.ptx()) == len(codes)
    np.testing.assert_allclose(loaded(x)[0], expected(x), rtol=1e-5, atol=1e-5)


def test_results_go_where_the_caller_says() -> None:
    """out= as on the CPU."""
    x, y = np.ones((3, 20), np.float32), np.zeros((3, 12), np.float32)
    model = tw.compile(layer(3), target="cuda:sm_90a", emulate=True)
    assert model(x, out=[y])[0] is y
    np.testing.assert_allclose(y, expected(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(UserError, match=r"must have shape \[3, 20\]"):
        model(np.ones((4, 20), np.float32))


def test_threads_share_a_model() -> None:
    """The first call opens the device and loads the kernels: once, whoever is first."""
    model = tw.compile(layer(3), target="cuda:sm_80", emulate=True)
    inputs = [np.full((3, 20), number, np.float32) for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(model, inputs))
    for x, result in zip(inputs, results, strict=True):
        np.testing.assert_allclose(result[0], expected(x), rtol=1e-4, atol=1e-4)


def test_what_the_emulator_cannot_tell() -> None:
    """Times of launches; the page of the model has none either."""
    model = tw.compile(layer(3), target="cuda:sm_90a", emulate=True)
    with pytest.raises(UnsupportedError, match="no clock"):
        model.profile(np.ones((3, 20), np.float32))
    assert "sm_90a" in model.explain()


def test_a_damaged_kernel_is_refused(tmp_path: Path) -> None:
    """The manifest knows the hash of all code."""
    folder = tw.compile(layer(3), target="cuda:sm_90a").save(tmp_path / "folder")
    kernel = next(folder.glob("code/*.ptx"))
    kernel.write_text(kernel.read_text().replace("add", "sub"))
    with pytest.raises(UserError, match="the code is damaged"):
        tw.load(folder, emulate=True)(np.ones((3, 20), np.float32))


def test_only_code_for_gpus_is_emulated(tmp_path: Path) -> None:
    """An artifact for a CPU is not."""
    path = tw.compile(layer(3)).save(tmp_path / "model.tw")
    with pytest.raises(UserError, match="emulate= is for models for GPUs"):
        tw.load(path, emulate=True)


CHAIN = """
tile.kernel @chain(%a: memref<ROWSx8xf16>, %b: memref<32x8xf16>, %v: memref<32x8xf16>, %c: memref<ROWSx8xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant dense<0.0> : !tile.tile<ROWSx32xf32>
  %w = arith.constant dense<0.0> : !tile.tile<ROWSx8xf32>
  %x = tile.load %a[%c0, %c0] : memref<ROWSx8xf16>, !tile.tile<ROWSx8xf16>
  %y = tile.load %b[%c0, %c0] dims [1, 0] : memref<32x8xf16>, !tile.tile<8x32xf16>
  %p = tile.mma %x, %y, %z : !tile.tile<ROWSx8xf16>, !tile.tile<8x32xf16>, !tile.tile<ROWSx32xf32>
  %h = tile.convert %p : !tile.tile<ROWSx32xf32> -> !tile.tile<ROWSx32xf16>
  %u = tile.load %v[%c0, %c0] : memref<32x8xf16>, !tile.tile<32x8xf16>
  %q = tile.mma %h, %u, %w : !tile.tile<ROWSx32xf16>, !tile.tile<32x8xf16>, !tile.tile<ROWSx8xf32>
  tile.store %q, %c[%c0, %c0] : !tile.tile<ROWSx8xf32>, memref<ROWSx8xf32>
  tile.return
}
"""


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("rows", [4, 16, 64])
def test_a_product_of_a_product(rows: int, arch: str) -> None:
    """Rows that a matrix instruction adds to few are no part of the second product's operand."""
    chain = tw.kernel(CHAIN.replace("ROWS", str(rows)), target=arch, emulate=True)
    a, b, v = (GENERATOR.random(shape).astype(np.float16) for shape in ((rows, 8), (32, 8), (32, 8)))
    assert chain.check(a, b, v, np.zeros((rows, 8), np.float32)) < 1e-4
