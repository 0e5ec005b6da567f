# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What no cores hold as a whole: blocks that stream, values that wait outside, and what no blocks make fit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright import devices
from tilewright.core.errors import UserError
from tilewright.demo.graph import GraphBuilder
from tilewright.targets.mesh.memory import kept
from tilewright.targets.mesh.pipeline import PIPELINE


@pytest.fixture
def target(tmp_path: Path) -> str:
    """16 cores of 12 KB: what is large for them is small for a test."""
    text = (Path(devices.__file__).parent / "toy8x8.toml").read_text()
    for old, new in (
        ("bytes = 49152", "bytes = 12288"),
        ("count = 64", "count = 16"),
        ("width = 8", "width = 4"),
        ("height = 8", "height = 4"),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "small.toml").write_text(text)
    return f"mesh:{tmp_path}/small.toml"


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def steps(model: tw.Model) -> list[str]:
    return [kernel.symbol for kernel in model.kernels]


def near_reference(model: onnx.ModelProto, target: str, *inputs: np.ndarray) -> tw.Model:
    """The reference's numbers; all on the grid, and no core holds more than it has."""
    compiled = tw.compile(model, target)
    np.testing.assert_allclose(compiled(*inputs)[0], tw.compile(model, "reference")(*inputs)[0], rtol=1e-4, atol=1e-4)
    assert max(kernel.details["memory"] for kernel in compiled.kernels) <= 12288
    assert compiled.shares["outside"] == 0
    return compiled


def layers(rows: int, *sizes: int) -> onnx.ModelProto:
    g = GraphBuilder("layers")
    x = g.input("x", np.float32, [rows, sizes[0]])
    for inner, outer in zip(sizes, sizes[1:], strict=False):
        x = g.op("Relu", g.op("Add", g.op("MatMul", x, g.weight(drawn(inner, outer))), g.weight(drawn(outer))))
    g.output(x, "y", np.float32, [rows, sizes[-1]])
    return g.model()


def test_layers_of_many_rows_share_a_loop(target: str) -> None:
    """Rows that no number divides: what comes between two products never leaves the grid."""
    compiled = near_reference(layers(251, 64, 128, 64), target, drawn(251, 64))
    text = str(compiled.module)
    assert text.count("scf.for") == 1 and "arith.minsi" in text
    moved = {kernel.symbol: kernel.details for kernel in compiled.kernels}
    assert moved["assemble"]["sizes"] == "32x64xf32" and moved["assemble"]["times"] == 8
    assert "streams through the grid in 8 blocks of 32 along d0" in compiled.explain()


@pytest.mark.parametrize("kept", [0.1, 1.0])
def test_condensed_weights_beside_blocks(target: str, kept: float) -> None:
    """Weights without zeros, or as codes, are the same for all blocks of rows: they stay condensed."""
    random, g = np.random.default_rng(3), GraphBuilder("condensed")
    if kept < 1:
        weight = g.weight(drawn(64, 128) * (random.random((64, 128)) < kept))
    else:
        codes, scale = random.integers(-8, 8, (64, 128)).astype(np.int8), np.float32(0.1)
        weight = g.op("DequantizeLinear", g.weight(codes), g.weight(scale), g.weight(np.int8(0)))
    g.output(g.op("Relu", g.op("MatMul", g.input("x", np.float32, [251, 64]), weight)), "y", np.float32, [251, 128])
    text = near_reference(g.model(), target, drawn(251, 64)).explain()
    assert "blocks of 63 along d0" in text and "condensed_meshgemm" in text and "none condensed" not in text


def test_weights_come_in_while_programs_run(target: str) -> None:
    """Where there is room for the next part of a weight, as in two buffers; the time that is left is counted."""
    compiled = near_reference(layers(16, 160, 128), target, drawn(16, 160))
    parts = [kernel.details for kernel in compiled.kernels if kernel.symbol == "stream"]
    assert all(one["communication"] == one["cycles"] for one in parts)
    ahead = sum(one["hidden"] for one in parts)
    assert 0 < ahead <= 128 * 161 * 4 / 32
    assert f"{ahead:,.0f} cycles more while programs run" in compiled.explain()
    assert "coremesh.ahead" in str(compiled.module)


def test_a_weight_keeps_its_place(target: str) -> None:
    """A program that gave its memory to the result would need it anew in each call; there is room for both."""
    compiled = near_reference(layers(4, 64, 312), target, drawn(4, 64))
    assert steps(compiled) == ["distribute", "meshgemv", "assemble"]


def test_a_weight_that_its_product_shifts_keeps_no_place(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not there any more after the product: no other addresses help, and it streams."""
    changed: list[object] = []
    monkeypatch.setattr(kept, "write_resources", lambda *arguments: changed.append(arguments))
    compiled = near_reference(layers(40, 88, 88), target, drawn(40, 88))
    assert {"meshgemm", "stream"} <= {*steps(compiled)} and not changed


def test_products_of_what_streams(target: str) -> None:
    g = GraphBuilder("product")
    x, y = g.input("x", np.float32, [65, 128]), g.input("y", np.float32, [128, 190])
    g.output(g.op("MatMul", x, y), "z", np.float32, [65, 190])
    compiled = near_reference(g.model(), target, drawn(65, 128), drawn(128, 190))
    assert str(compiled.module).count("scf.for") == 2


def test_columns_of_a_wide_weight_come_in_with_each_block(target: str) -> None:
    """Two rows of 9000 results are too many for a core: a weight that is cut with them counts as what streams does."""
    g = GraphBuilder("wide")
    g.output(g.op("MatMul", g.input("x", np.float32, [2, 16]), g.weight(drawn(16, 9000))), "y", np.float32, [2, 9000])
    compiled = near_reference(g.model(), target, drawn(2, 16))
    assert "of its weight all elements come in so, none condensed" in compiled.explain()


def test_what_is_picked_from_counts(target: str) -> None:
    """A core has all of a table beside a block of what is picked, of which a run says how much counts."""
    g = GraphBuilder("picked")
    x, holds = g.input("x", np.float32, [100, 64]), g.input("c", np.bool_, [100])
    g.output(g.op("Relu", g.op("Compress", x, holds, axis=0)), "y", np.float32, ["n", 64])
    compiled = near_reference(g.model(), target, drawn(100, 64), np.arange(100) % 3 > 0)
    assert "blocks of" in compiled.explain()


def test_images(target: str) -> None:
    """Windows reach beyond the rows of a block; a border is made outside."""
    g = GraphBuilder("image")
    x = g.input("x", np.float32, [1, 8, 40, 40])
    x = g.op("Relu", g.op("Conv", x, g.weight(drawn(8, 8, 3, 3)), kernel_shape=[3, 3], pads=[1] * 4))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    g.output(x, "y", np.float32, [1, 8, 20, 20])
    compiled = near_reference(g.model(), target, drawn(1, 8, 40, 40))
    assert "blocks of" in compiled.explain()


def test_values_wait_outside(target: str) -> None:
    """Each fits, but not all beside each other: those that are read the latest go out and come in again."""
    g = GraphBuilder("kept")
    x = g.input("x", np.float32, [64, 128])
    values = [x]
    for _ in range(3):
        values.append(g.op("Exp", g.op("Tanh", values[-1])))
    total = values[0]
    for value in values[1:]:
        total = g.op("Add", g.op("MatMul", total, g.weight(drawn(128, 128) / 12)), value)
    g.output(total, "y", np.float32, [64, 128])
    compiled = near_reference(g.model(), target, drawn(64, 128))
    assert "bytes a core wait outside, to come in once" in compiled.explain()
    assert steps(compiled).count("assemble") > 1


@pytest.mark.parametrize("blocks", ["3, 1, 1", "2, 3, 1", "1, 2, 1", "1, 1, 3", "2, 1, 3"])
def test_blocks_are_a_decision(blocks: str) -> None:
    """Written by hand where everything fits."""
    g = GraphBuilder("product")
    g.output(g.op("MatMul", g.input("x", np.float32, [19, 29]), g.weight(drawn(29, 23))), "y", np.float32, [19, 23])
    text = tw.compile(g.model(), "mesh:toy8x8", stop_after="normalize")
    name = re.findall(r"ml_program.global private @(\S+?)\(", text)[0]
    cut = re.sub(
        r"(outs\(%\S+ : tensor<19x23xf32>\)) \{", rf"\1 attrs = {{coremesh.blocks = array<i64: {blocks}>}} {{", text
    )
    assert cut != text
    given = {"weights": {name: drawn(29, 23)}, "pipeline": PIPELINE.after("normalize")}
    x = drawn(19, 29)
    compiled = tw.compile(cut, "mesh:toy8x8", **given)
    np.testing.assert_allclose(compiled(x)[0], x @ drawn(29, 23), rtol=1e-4, atol=1e-4)
    assert str(compiled.module).count("scf.for") == sum(one != "1" for one in blocks.split(", "))
    for wrong, told in (("3, 1", "for each loop a number"), ("99, 1, 1", "for each loop")):
        with pytest.raises(UserError, match=rf"coremesh\.blocks .*{told}"):
            tw.compile(cut.replace(f"array<i64: {blocks}>", f"array<i64: {wrong}>"), "mesh:toy8x8", **given)


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL2", "ArgMax"])
@pytest.mark.parametrize("shape", [(30011, 3), (5, 20011)])
def test_what_is_combined_streams(name: str, shape: tuple[int, int], target: str) -> None:
    """Partial results of blocks are combined in the cores; no element counts twice where blocks are uneven."""
    dim = shape.index(max(shape))
    x, g = 1 + drawn(*shape) / 5000, GraphBuilder("combined")
    given, out = g.input("x", np.float32, shape), [shape[1 - dim]]
    if name == "ReduceSum":
        y = g.op(name, given, g.const([dim]), keepdims=0)
    else:
        y = g.op(name, given, keepdims=0, **{"axis": dim} if name == "ArgMax" else {"axes": [dim]})
    g.output(y, "y", np.int64 if name == "ArgMax" else np.float32, out)
    compiled = near_reference(g.model(), target, x)
    assert "streams through the grid in" in compiled.explain()


def test_a_sum_of_products_streams(target: str) -> None:
    """One row of 20,000 numbers: what a core has of it would not lie beside its part of the weight."""
    g = GraphBuilder("long")
    g.output(g.op("MatMul", g.input("x", np.float32, [1, 20011]), g.weight(drawn(20011, 4))), "y", np.float32, [1, 4])
    compiled = near_reference(g.model(), target, drawn(1, 20011))
    assert "streams through the grid in" in compiled.explain()


def test_softmax_and_norm_of_long_rows(target: str) -> None:
    """What is elementwise before a sum shares its loop: its blocks never leave the grid."""
    g = GraphBuilder("rows")
    x = g.op("LayerNormalization", g.input("x", np.float32, [3, 9007]), g.weight(drawn(9007)), axis=-1)
    g.output(g.op("Softmax", x), "y", np.float32, [3, 9007])
    compiled = near_reference(g.model(), target, drawn(3, 9007))
    exponentials = [one for one in compiled.kernels if "9007xf32 -> 3xf32" in one.details["sizes"]]
    assert not any(one.symbol == "local" for one in exponentials)


def test_what_is_computed_before_it_is_combined_counts(target: str) -> None:
    """Squares of an image, of which the sum is asked: each core has both."""
    g = GraphBuilder("norm")
    x = g.input("x", np.float32, [1, 2, 90, 90])
    g.output(g.op("MeanVarianceNormalization", x, axes=[0, 2, 3]), "y", np.float32, [1, 2, 90, 90])
    near_reference(g.model(), target, drawn(1, 2, 90, 90))


def test_channels_of_a_convolution_stream(target: str) -> None:
    """An image whose channels no cores hold at once."""
    g = GraphBuilder("channels")
    x = g.input("x", np.float32, [1, 900, 9, 9])
    g.output(g.op("Conv", x, g.weight(drawn(3, 900, 3, 3)), kernel_shape=[3, 3]), "y", np.float32, [1, 3, 7, 7])
    assert "blocks of" in near_reference(g.model(), target, drawn(1, 900, 9, 9)).explain()


IN_ORDER = """
#in = affine_map<(d0, d1) -> (d0, d1)>
#out = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<7x9xf32> {tile.name = "x"}, %s: tensor<7xf32> {tile.name = "s"})
    -> (tensor<7xf32> {tile.name = "y"}) {
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<7x9xf32>) outs(%s : tensor<7xf32>) attrs = {coremesh.blocks = array<i64: 1, 3>} {
  ^bb0(%u: f32, %o: f32):
    %d = arith.subf %u, %o : f32
    linalg.yield %d : f32
  } -> tensor<7xf32>
  return %0 : tensor<7xf32>
}"""


def test_what_combines_in_its_own_order_is_not_cut(target: str) -> None:
    with pytest.raises(UserError, match=r"coremesh\.blocks cuts loop d1, along which an op combines in an order"):
        tw.compile(IN_ORDER, target)


def test_several_rows_count_what_stays_beside_what_stays_beside(target: str) -> None:
    """Parts of 16 rows, of 128 numbers, lie beside a weight of 128 x 56."""
    near_reference(layers(16, 128, 56, 128), target, drawn(16, 128))


def test_what_has_to_stay_is_not_cut(target: str) -> None:
    with pytest.raises(UserError, match=r"core \(y=0, x=0\).* has 12288"):
        tw.compile(layers(251, 64, 128), target, resident=True)
