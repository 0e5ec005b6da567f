# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies that read more than elements, and integers: on the cores alone, with the reference's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.demo.graph import GraphBuilder
from tilewright.targets.mesh.pipeline import PIPELINE
from tilewright.targets.mesh.plan_mesh_rewrite import _Planner

TARGET = "mesh:toy8x8"
Input = Callable[[np.ndarray], str]
Make = Callable[[GraphBuilder, Input], tuple[str, type, list[int]]]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def integers(*shape: int, low: int = -5, high: int = 5) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(low, high, shape)


def unary(name: str, dtype: type, *more: int, **attributes: int | list[int]) -> Make:
    """An op on what the grid made, with constants behind it."""

    def make(g: GraphBuilder, given: Input) -> tuple[str, type, list[int]]:
        x = g.op("Neg", given(floats(13, 9) if dtype is np.float32 else integers(13, 9)))
        shape = [13, 1] if name.startswith(("Reduce", "Arg")) else [13, 9]
        made = np.int64 if name.startswith("Arg") else dtype
        return g.op(name, x, *(g.const([one]) for one in more), **attributes), made, shape

    return make


def binary(name: str, result: type, low: int = -5) -> Make:
    def make(g: GraphBuilder, given: Input) -> tuple[str, type, list[int]]:
        return g.op(name, given(integers(13, 9)), given(integers(9, low=low))), result, [13, 9]

    return make


def picked(name: str, indices: np.ndarray, shape: list[int], table: int = 7, **attributes: int) -> Make:
    def make(g: GraphBuilder, given: Input) -> tuple[str, type, list[int]]:
        x = g.op("Exp", given(floats(table, 5)))
        return g.op("Exp", g.op(name, x, given(indices), **attributes)), np.float32, shape

    return make


def embedded(rows: int, width: int) -> Make:
    def make(g: GraphBuilder, given: Input) -> tuple[str, type, list[int]]:
        x = g.op("Gather", g.weight(floats(rows, width)), given(integers(1, 11, low=0, high=rows)))
        return g.op("Exp", x), np.float32, [1, 11, width]

    return make


def chosen(g: GraphBuilder, given: Input) -> tuple[str, type, list[int]]:
    """Truths are values of the grid, too."""
    is_less = g.op("Less", given(floats(13, 9)), given(floats(9)))
    other = g.op("Not", is_less)
    return g.op("Where", other, given(floats(13, 1)), g.op("Cast", is_less, to=1)), np.float32, [13, 9]


CASES: dict[str, Make] = {
    "gather rows": picked("Gather", integers(3, low=-7), [3, 5]),
    "gather columns": picked("Gather", integers(2, 3, low=-5), [7, 2, 3], axis=1),
    "gather elements": picked("GatherElements", integers(3, 5, low=-7), [3, 5], axis=0),
    "gather by pairs": picked("GatherND", integers(3, 2, low=0), [3]),
    "embedding": embedded(50, 19),
    "embedding, rows split": embedded(20000, 19),
    "lower triangle": unary("Trilu", np.float32, upper=0),
    "largest index": unary("ArgMax", np.float32, axis=1),
    "least": unary("ReduceMin", np.float32, axes=[1]),
    "product": unary("ReduceProd", np.float32, axes=[1]),
    "least integer": unary("ReduceMin", np.int64, axes=[1]),
    "largest integer": unary("ReduceMax", np.int64, axes=[1]),
    "sum of integers": unary("ReduceSum", np.int64, 1),
    "to floats": unary("Cast", np.int64, to=7),
    "integers": binary("Add", np.int64),
    "division": binary("Div", np.int64, low=1),
    "comparison": binary("Greater", np.bool_),
    "choice": chosen,
}


def build(make: Make) -> tuple[GraphBuilder, list[np.ndarray]]:
    g, inputs = GraphBuilder("body"), []

    def given(array: np.ndarray) -> str:
        inputs.append(array)
        return g.input(f"in{len(inputs)}", array.dtype.type, list(array.shape))

    value, dtype, shape = make(g, given)
    g.output(value, "y", dtype, shape)
    return g, inputs


@pytest.mark.parametrize("name", CASES)
def test_on_the_cores_alone(name: str) -> None:
    g, inputs = build(CASES[name])
    compiled = tw.compile(g.model(), TARGET)
    (found,), (wanted,) = compiled(*inputs), tw.compile(g.model(), "reference")(*inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert "all of the model's arithmetic is done on the grid" in compiled.explain()


def test_a_table_that_no_core_could_hold_is_split() -> None:
    """Each core picks what it has; a smaller one lies whole along what is picked, and nothing is sent."""
    texts = [tw.compile(build(CASES[name])[0].model(), TARGET, stop_after="tile") for name in CASES if "embed" in name]
    assert ["coremesh.allreduce" in text for text in texts] == [False, True]


def test_values_are_counted_where_elements_are_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a core holds beside an op is asked of all values: once per op would be quadratic."""
    monkeypatch.setattr(_Planner, "_beside", lambda *_: pytest.fail("asked"))
    assert "coremesh.loops" in tw.compile(build(chosen)[0].model(), TARGET, stop_after="plan")


def test_what_a_split_table_gives_is_what_it_holds() -> None:
    """To the sign of a zero: cores that do not have a row change nothing of it."""
    table = np.tile(np.array([-0.0, 0.0, np.inf, -np.inf, np.nan, -1.5], np.float32), 2000)[:, None]
    g, rows = GraphBuilder("numbers"), np.array([0, 6001, 11996, 3, 4, 11999])
    picked = g.op("Gather", g.weight(table), g.input("rows", np.int64, [6]))
    g.output(picked, "y", np.float32, [6, 1])
    compiled = tw.compile(g.model(), TARGET)
    assert "all of the model's arithmetic is done on the grid" in compiled.explain()
    (found,) = compiled(rows)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(table[rows]))
    np.testing.assert_array_equal(found, table[rows])


def test_rows_are_a_decision() -> None:
    """It can be taken, and is refused where it does not fit."""
    g, inputs = build(CASES["gather rows"])
    planned = tw.compile(g.model(), TARGET, stop_after="plan")
    old, new = 'coremesh.loops = ["y", "x"]', 'coremesh.algorithm = "rows", coremesh.loops = ["", "x"]'
    head, table, *rest = planned.split(old)
    edited = f"{head}{old}{table}{new}{old.join(rest)}"
    compiled = tw.compile(edited, TARGET, pipeline=PIPELINE.after("plan"))
    (found,), (wanted,) = compiled(*inputs), tw.compile(g.model(), "reference")(*inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    with pytest.raises(UserError, match=r"'rows' on an op that picks no elements along one dimension; take it away"):
        tw.compile(planned.replace(old, new, 1), TARGET, pipeline=PIPELINE.after("plan"))


def test_loops_that_outgrow_a_core_are_outside() -> None:
    """What a model says of itself counts them, and a remark says why."""

    def make(g: GraphBuilder, given: Input) -> tuple[str, type, list[int]]:
        x, at, other = given(floats(20000)), given(integers(3, low=0)), given(floats(3))
        return g.op("ScatterElements", x, at, other), np.float32, [20000]

    g, inputs = build(make)
    compiled = tw.compile(g.model(), TARGET)
    (found,), (wanted,) = compiled(*inputs), tw.compile(g.model(), "reference")(*inputs)
    np.testing.assert_array_equal(found, wanted)
    assert compiled.shares["outside"] == 1
    why = "outside of the grid: it writes single elements of tensors of 160037 bytes, and a core has 45056 left"
    assert why in compiled.explain()
