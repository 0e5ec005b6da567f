# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models compiled for a mesh: what they compute, what they say of themselves, and what they refuse."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.demo.encoder import EncoderConfig, encoder_model
from tilewright.demo.graph import GraphBuilder
from tilewright.runtime.result import Outputs

TARGET = "mesh:toy8x8"


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def product(m: int, k: int, n: int, transposed: bool = False) -> onnx.ModelProto:
    g = GraphBuilder("product")
    x = g.input("x", np.float32, [m, k])
    w = g.weight(drawn(n, k) if transposed else drawn(k, n))
    g.output(g.op("Gemm", x, w, g.weight(drawn(n)), transB=int(transposed)), "y", np.float32, [m, n])
    return g.model()


def near_reference(model: onnx.ModelProto, *inputs: np.ndarray, rtol: float = 1e-4) -> tw.Model:
    compiled = tw.compile(model, TARGET)
    got, wanted = compiled(*inputs), tw.compile(model, "reference")(*inputs)
    assert isinstance(got, Outputs)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)
    return compiled


def steps(model: tw.Model) -> list[str]:
    return [kernel.symbol for kernel in model.kernels]


@pytest.mark.parametrize(
    ("m", "k", "n", "transposed"),
    [
        (16, 16, 16, False),
        (13, 29, 7, False),
        (40, 8, 3, True),
        (1, 17, 23, True),
        (3, 1, 1, False),
    ],
)
def test_products(m: int, k: int, n: int, transposed: bool) -> None:
    near_reference(product(m, k, n, transposed), drawn(m, k))


def test_products_of_other_forms() -> None:
    """A batch that shares its weight, one that is broadcast, a transposed left operand, a sum of all."""
    g = GraphBuilder("forms")
    x, z = g.input("x", np.float32, [2, 3, 5]), g.input("z", np.float32, [5, 7])
    shared = g.op("MatMul", x, z)
    turned = g.op("Gemm", z, g.weight(drawn(5, 4)), transA=1)
    g.output(shared, "shared", np.float32, [2, 3, 7])
    g.output(turned, "turned", np.float32, [7, 4])
    g.output(g.op("ReduceSum", shared, keepdims=0), "sum", np.float32, [])
    near_reference(g.model(), drawn(2, 3, 5), drawn(5, 7))


def test_numbers_of_16_bits() -> None:
    """Operands of f16 are multiplied as they are; sums stay f32 until they are stored."""
    half = onnx.TensorProto.FLOAT16
    weight = onnx.numpy_helper.from_array(drawn(24, 10).astype(np.float16), "w")
    x, y = (onnx.helper.make_tensor_value_info(n, half, [24, c]) for n, c in (("x", 24), ("y", 10)))
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "half", [x], [y], [weight])
    opset = [onnx.helper.make_opsetid("", 17)]
    compiled = near_reference(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), drawn(24, 24).astype(np.float16), rtol=1e-3
    )
    assert "24x24xf16, 24x10xf16 -> 24x10xf16" in compiled.explain()
    text = str(compiled.module)
    assert "@C : tensor<3x2xf32>" in text and "arith.truncf %in : f32 to f16" in text


def test_the_fastest_algorithm_is_taken() -> None:
    """Few rows are multiplied one by one, many by products of matrices; the remark says by how much."""
    few, many = near_reference(product(2, 96, 64, True), drawn(2, 96)), tw.compile(product(40, 96, 64, True), TARGET)
    assert "meshgemv" in steps(few) and not {"meshgemm", "gemm_t"} & {*steps(few)}
    assert "meshgemv" not in steps(many) and {"meshgemm", "gemm_t"} & {*steps(many)}
    assert "cycles simulated; gemm_t" in few.explain()


def test_axes_of_products_of_one_row_alternate() -> None:
    """Nothing is moved between layers of a decoder's step: only the input and the output pass the edge."""
    g = GraphBuilder("rows")
    x = g.input("x", np.float32, [1, 24])
    for inner, outer in ((24, 40), (40, 19), (19, 5)):
        x = g.op("Relu", g.op("Add", g.op("MatMul", x, g.weight(drawn(inner, outer))), g.weight(drawn(outer))))
    g.output(x, "y", np.float32, [1, 5])
    compiled = near_reference(g.model(), drawn(1, 24))
    assert steps(compiled).count("meshgemv") == 3
    assert steps(compiled).count("distribute") == steps(compiled).count("assemble") == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(axis: int) -> None:
    g = GraphBuilder("softmax")
    g.output(g.op("Softmax", g.input("x", np.float32, [11, 5]), axis=axis), "y", np.float32, [11, 5])
    compiled = near_reference(g.model(), drawn(11, 5))
    assert steps(compiled).count("allreduce") == 2


def test_layer_norm() -> None:
    g = GraphBuilder("norm")
    x = g.input("x", np.float32, [5, 19])
    y = g.op("LayerNormalization", x, g.weight(drawn(19)), g.weight(drawn(19)), axis=-1, epsilon=1e-5)
    g.output(y, "y", np.float32, [5, 19])
    near_reference(g.model(), drawn(5, 19))


def encoder(layers: int) -> onnx.ModelProto:
    """MiniLM's encoder in a reduced size."""
    config = EncoderConfig(layers=layers, hidden=16, heads=2, intermediate=24, vocabulary=11, positions=12, sequence=9)
    shapes = {f"embeddings.{n}_embeddings": (s, 16) for n, s in (("word", 11), ("token_type", 2), ("position", 12))}
    norms = ["embeddings.LayerNorm"]
    for layer in range(layers):
        at = f"encoder.layer.{layer}."
        shapes |= {f"{at}attention.{n}": (16, 16) for n in ("self.query", "self.key", "self.value", "output.dense")}
        shapes |= {f"{at}intermediate.dense": (24, 16), f"{at}output.dense": (16, 24)}
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
    weights = {f"{name}.weight": 0.3 * drawn(*shape) for name, shape in shapes.items()}
    weights |= {f"{name}.bias": drawn(shape[0]) for name, shape in shapes.items()}
    weights |= {f"{name}.{part}": drawn(16) for name in norms for part in ("weight", "bias")}
    return encoder_model(config, weights)


@pytest.mark.slow
def test_an_encoder() -> None:
    ids, seen = np.arange(9)[None] % 11, np.ones((1, 9), np.int64)
    seen[0, -2:] = 0
    compiled = near_reference(encoder(2), ids, seen, np.zeros((1, 9), np.int64))
    assert {"meshgemm", "gemm_t", "allreduce", "local"} <= {*steps(compiled)}
    assert "all of the model's arithmetic is done on the grid" in compiled.explain()


def test_attention() -> None:
    """Each head is a product of its own; what has to be reshaped goes through the edge, and is counted."""
    g = GraphBuilder("attention")
    q, k, v = (g.input(name, np.float32, [2, 6, 5]) for name in "qkv")
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", np.float32, [2, 6, 5])
    compiled = near_reference(g.model(), *(drawn(2, 6, 5) + at for at in range(3)))
    assert sum(name in ("gemm_t", "meshgemm", "meshgemv") for name in steps(compiled)) >= 4


def test_what_it_says(tmp_path) -> None:
    compiled = tw.compile(product(13, 29, 7), TARGET)
    text = compiled.explain(tmp_path / "page.txt")
    assert text == (tmp_path / "page.txt").read_text()
    assert compiled.explain(tmp_path / "page.html") == text
    compiled.explain(tmp_path / "page.HTM")
    page = (tmp_path / "page.html").read_text()
    assert page == (tmp_path / "page.HTM").read_text()
    with pytest.raises(UserError, match="HTML page; end its name in .html"):
        compiled.explain(tmp_path / "page.png")
    assert not (tmp_path / "page.png").exists()
    assert page.startswith("<!doctype html>") and page.count("<img") == 6 and "memory" in page
    assert "Routes and memory (PLMR)" in page and "meshgemm" in page
    for told in ("tier T1", "preset calibrated", "1 GHz", "sync dataflow", "8x8", "all of the model's arithmetic"):
        assert told in text
    told = compiled.report_data()["target"]
    assert told["name"] == TARGET
    parts = ("compute", "communication", "overhead", "idle")
    for kernel in compiled.kernels:
        one = kernel.details
        assert one["cycles"] == pytest.approx(sum(one[part] for part in parts))
    moved = {kernel.symbol: kernel.details["cycles"] for kernel in compiled.kernels}
    assert moved["distribute"] == 13 * 29 * 4 / 32 and moved["assemble"] == 13 * 7 * 4 / 32


def test_save_and_load(tmp_path) -> None:
    compiled = tw.compile(product(5, 6, 7), TARGET)
    compiled.save(tmp_path / "m.tw")
    loaded = tw.load(tmp_path / "m.tw")
    x = drawn(5, 6)
    assert np.array_equal(loaded(x)[0], compiled(x)[0])
    assert loaded.explain() == compiled.explain() and loaded.runs_on == "on the functional simulator of a mesh"


def test_weights_that_no_core_can_hold_stream() -> None:
    """Two matrices of 13 KB a core: one stays, one passes the edge in each call."""
    g = GraphBuilder("large")
    x = g.input("x", np.float32, [24, 456])
    for seed in range(2):
        x = g.op("MatMul", x, g.weight(drawn(456, 456) + seed))
    g.output(x, "y", np.float32, [24, 456])
    compiled = tw.compile(g.model(), TARGET)
    streamed = [kernel.details for kernel in compiled.kernels if kernel.symbol == "stream"]
    assert [one["cycles"] + one["hidden"] for one in streamed] == [456 * 456 * 4 / 32]
    assert max(kernel.details["memory"] for kernel in compiled.kernels) <= 48 * 1024


@pytest.mark.parametrize("name", ["wormhole", "ipu", "wse2"])
def test_other_machines(name: str) -> None:
    """A torus and an exchange that find ways by headers of packets; a machine with more cores than a model has rows."""
    model, x = product(13, 11, 7, True), drawn(13, 11)
    compiled = tw.compile(model, f"mesh:{name}")
    np.testing.assert_allclose(compiled(x)[0], tw.compile(model, "reference")(x)[0], rtol=1e-5, atol=1e-5)
    grids = {(one.details["height"], one.details["width"]) for one in compiled.kernels if one.details["height"]}
    assert max(max(grids)) <= 13


@pytest.mark.parametrize("target", ["mesh", "mesh:", "mesh:wse9"])
def test_unknown_machines(target: str) -> None:
    with pytest.raises(UserError, match=r"unknown mesh .*mesh:toy8x8"):
        tw.compile(product(2, 2, 2), target)


WIDE = """
#same = affine_map<(i) -> (i)>
func.func @main(%x: tensor<7xf64> {tile.name = "x"}) -> (tensor<7xf64> {tile.name = "y"}) {
  %e = tensor.empty() : tensor<7xf64>
  %0 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]}
      ins(%x : tensor<7xf64>) outs(%e : tensor<7xf64>) {
  ^bb0(%u: f64, %out: f64):
    %m = arith.mulf %u, %u : f64
    linalg.yield %m : f64
  } -> tensor<7xf64>
  return %0 : tensor<7xf64>
}"""


def test_f64_is_counted_as_software() -> None:
    compiled = tw.compile(WIDE, TARGET)
    x = np.arange(7.0)
    np.testing.assert_array_equal(compiled(x)[0], x * x)
    assert compiled.shares["outside"] == 0
    said = "cores of toy8x8 have no unit for f64: each operation counts as 64 cycles of software"
    assert said in compiled.explain()


def test_open_sizes_are_those_of_a_call() -> None:
    g = GraphBuilder("open")
    g.output(g.op("Relu", g.input("x", np.float32, ["n", 5])), "y", np.float32, ["n", 5])
    compiled = tw.compile(g.model(), TARGET)
    x = drawn(3, 5)
    assert np.array_equal(compiled(x)[0], np.maximum(x, 0))
