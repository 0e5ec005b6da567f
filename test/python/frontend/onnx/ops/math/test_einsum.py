# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Einsum beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support import feeds, import_onnx, interpret, node_model, normalize

from tilewright.core.errors import UserError

_RANDOM = np.random.default_rng(5)


def check(equation, *shapes, dtype=np.float32):
    """Within the roundings of its sums, in any order: each is a unit of the terms' sum without signs, at most."""
    inputs = [(_RANDOM.standard_normal(s) * 3).astype(dtype) for s in shapes]
    model = node_model("Einsum", inputs, opset=12, equation=equation)
    imported = import_onnx(model)
    whole = np.issubdtype(dtype, np.integer)
    wide = [x if whole else x.astype(np.float64) for x in inputs]
    exact = np.asarray(np.einsum(equation, *wide))
    roundings = np.einsum(equation, *map(np.ones_like, wide)) + len(wide)
    bound = 0 if whole else roundings * np.finfo(dtype).eps * np.einsum(equation, *map(np.abs, wide))
    for module in (imported, normalize(imported)):
        (got,) = interpret(module, feeds(model, inputs))
        assert (got.shape, got.dtype) == (exact.shape, inputs[0].dtype)
        assert (np.abs(got.astype(exact.dtype) - exact) <= bound).all(), f"{got} is not {exact}"


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(3, 4)]),
        ("ij->i", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("ij", [(3, 4)]),
        ("ba", [(3, 4)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("...ii->...i", [(2, 3, 4, 4)]),
        ("...ii->...", [(2, 3, 4, 4)]),
        ("iij->j", [(3, 3, 2)]),
        ("->", [()]),
        (",->", [(), ()]),
        ("i,->i", [(3,), ()]),
        ("i,i->", [(5,), (5,)]),
        ("i,i", [(5,), (5,)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,j->ji", [(2,), (3,)]),
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij, jk -> ki", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(5, 2, 3), (5, 3, 4)]),
        ("...ij,...jk->...ik", [(2, 1, 2, 3), (5, 3, 4)]),
        ("...ij,jk", [(2, 5, 2, 3), (3, 4)]),
        ("ij...,jk...->ik...", [(2, 3, 4), (3, 5, 4)]),
        ("ij,jk->i", [(2, 3), (3, 4)]),
        ("ii,ij->j", [(3, 3), (3, 4)]),
        ("bhld,bhsd->bhls", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("a,b,c->abc", [(2,), (3,), (4,)]),
        ("ij,ij,ij->", [(2, 3), (2, 3), (2, 3)]),
        ("ea,fb,abcd,gc,hd->efgh", [(2, 3), (2, 3), (3, 3, 3, 3), (2, 3), (2, 3)]),
        ("ij,jk->ik", [(1, 3), (3, 1)]),
        ("ij,ij->ij", [(1, 3), (2, 3)]),
    ],
)
def test_equations(equation, shapes):
    check(equation, *shapes)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64, np.float16])
def test_types(dtype):
    if dtype == np.float16:
        check("ij,kj->ik", (2, 3), (2, 3), dtype=dtype)
    check("ij->j", (4, 3), dtype=dtype)


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3), (4, 5)], "do not fit"),
        ("ij->ii", [(2, 3)], "repeats"),
        ("ij->ijk", [(2, 3)], "no operand"),
        ("i->i", [(2, 3)], "does not fit"),
        ("i,j->ij", [(2,)], "terms"),
    ],
)
def test_wrong_equations(equation, shapes, message):
    from onnx import helper

    inputs = [np.zeros(s, np.float32) for s in shapes]
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node("Einsum", names, ["y"], equation=equation)
    values = [helper.make_tensor_value_info(n, 1, x.shape) for n, x in zip(names, inputs, strict=True)]
    graph = helper.make_graph([node], "einsum", values, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(UserError, match=message):
        import_onnx(model)
