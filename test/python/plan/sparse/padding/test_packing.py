# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches of sentences without their padding: the results at real tokens are those of the model that computes all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw
from models import bert
from tilewright.mlir import ir
from tilewright.plan.sparse.padding.tokens import Tokens, packed_steps

SIZES = dict(layers=1, hidden=32, heads=2, intermediate=48, vocabulary=100)


def masks(batch: int, longest: int) -> list[np.ndarray]:
    """Sentences of one token, of all, of none, of any number, with holes."""
    rng = np.random.default_rng(1)
    some = rng.integers(0, longest + 1, batch)
    lengths = [np.full(batch, n) for n in (1, longest, 0)] + [some]
    made = [(np.arange(longest) < one[:, None]).astype(np.int64) for one in lengths]
    return [*made, rng.integers(0, 2, (batch, longest))]


def first(result: object) -> np.ndarray:
    return np.asarray(result[0] if isinstance(result, list | tuple) else result)


@pytest.mark.parametrize(
    ("batch", "longest", "style"), [(3, 7, "plain"), (3, 7, "export"), (2, 2, "plain"), (1, 9, "export")]
)
def test_encoder(batch: int, longest: int, style: str) -> None:
    """Two heads and two places: scores have the sizes of tokens in (2, 2), and are none. A batch of one has no loop."""
    more = {} if style == "plain" else {"style": style}
    model = bert.bert(batch=batch, sequence=longest, **SIZES, **more)
    whole, packed = (tw.compile(model, threads=2, padded=padded) for padded in (None, "attention_mask"))
    assert any(kernel.name.startswith("product") and "_nx" in kernel.name for kernel in packed.kernels)
    rng = np.random.default_rng(0)
    for mask in masks(batch, longest):
        inputs = {
            "input_ids": rng.integers(0, 100, (batch, longest)),
            "attention_mask": mask,
            "token_type_ids": rng.integers(0, 2, (batch, longest)),
        }
        wanted, found = first(whole(**inputs)), first(packed(**inputs))
        np.testing.assert_allclose(found[mask == 1], wanted[mask == 1], rtol=1e-4, atol=1e-5)
        assert np.all(found[mask == 0] == 0)
    assert np.abs(wanted).max() > 0.1


def model(nodes: Sequence[tuple], shapes: dict[str, Sequence], outputs: dict[str, Sequence], weights: dict) -> bytes:
    """A model of nodes (op, inputs, output, attributes)."""
    made = [helper.make_node(op, list(ins), [out], **more) for op, ins, out, more in nodes]
    infos = [
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in part.items()]
        for part in (shapes, outputs)
    ]
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    proto = helper.make_model(helper.make_graph(made, "g", *infos, held), opset_imports=[helper.make_opsetid("", 18)])
    proto.ir_version = 9
    return proto.SerializeToString()


def test_what_leads_to_a_product_stays_for_others() -> None:
    """Places added to tokens; 1 - mask is read by a product and returned: there it is whole."""
    rng = np.random.default_rng(2)
    w = rng.integers(-3, 4, (6, 10)).astype(np.float32)
    place = rng.integers(-3, 4, (5, 6)).astype(np.float32)
    one = np.ones((), np.float32)
    nodes = [
        ("Sub", ("one", "mask"), "off", {}),
        ("Unsqueeze", ("off", "last"), "column", {}),
        ("Add", ("x", "column"), "h", {}),
        ("Add", ("h", "place"), "p", {}),
        ("MatMul", ("p", "w"), "y", {}),
        ("ReduceSum", ("y", "middle"), "total", {"keepdims": 0}),
    ]
    weights = {"w": w, "place": place, "one": one, "last": np.array([2]), "middle": np.array([1])}
    outputs = {"off": (4, 5), "y": (4, 5, 10), "total": (4, 10)}
    compiled = tw.compile(model(nodes, {"x": (4, 5, 6), "mask": (4, 5)}, outputs, weights), padded="mask")
    for mask in masks(4, 5):
        x = rng.integers(-3, 4, (4, 5, 6)).astype(np.float32)
        off, y, total = compiled(x, mask.astype(np.float32))
        np.testing.assert_array_equal(off, 1 - mask)
        wanted = ((x + place) @ w) * mask[..., None]
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(total, wanted.sum(1))


def test_errors() -> None:
    """An input that is not there, and one that is no mask."""
    data = model([("Relu", ("x",), "y", {})], {"x": (2, 3, 4)}, {"y": (2, 3, 4)}, {})
    with pytest.raises(tw.UserError, match="padded='mask': the model has no such input; it has x"):
        tw.compile(data, padded="mask")
    with pytest.raises(tw.UserError, match=r"padded='x': a mask of padding is a tensor \[batch, tokens\]"):
        tw.compile(data, padded="x")


FLAT = """
#x = affine_map<(t, n, k) -> (t, k)>
#w = affine_map<(t, n, k) -> (k, n)>
#y = affine_map<(t, n, k) -> (t, n)>
#wrong = affine_map<(t, n, k) -> (k, t)>
func.func @main(%x: tensor<2x3x6xf32>, %w: tensor<6x6xf32>) -> tensor<2x3x6xf32> {
  %zero = arith.constant 0.0 : f32
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x6xf32> into tensor<6x6xf32>
  %e = tensor.empty() : tensor<6x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %y = linalg.generic {indexing_maps = [MAP, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%flat, %w : tensor<6x6xf32>, tensor<6x6xf32>) outs(%f : tensor<6x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<6x6xf32>
  %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 3, 6] : tensor<6x6xf32> into tensor<2x3x6xf32>
  return %z : tensor<2x3x6xf32>
}
"""


@pytest.mark.parametrize(("access", "members"), [("#x", 3), ("#wrong", 0)])
def test_products_over_tokens_are_no_steps(access: str, members: int) -> None:
    """As many tokens as columns: what sums over tokens is told by the maps, not by sizes."""
    with ir.Context(), ir.Location.unknown():
        parsed = ir.Module.parse(FLAT.replace("MAP", access))
        tokens = Tokens(parsed.body.operations[0].operation.regions[0].blocks[0], (2, 3))
        both, after = packed_steps(tokens)
        assert len(both) == members
        assert after <= both
