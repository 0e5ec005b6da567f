# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results that are an input with rows behind it: written in its memory, and yet each as if it had memory of its own."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.runtime.cpu.rooms import Rooms

F32 = np.float32


def joined() -> onnx.ModelProto:
    """`present` = `past` with the doubled rows of `new` behind it, along axis 1; `sum` of all of it."""
    value, made = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    past, new = (value(n, onnx.TensorProto.FLOAT, ["b", n + "_rows", 3]) for n in ("past", "new"))
    nodes = [
        made("Add", ["new", "new"], ["twice"]),
        made("Concat", ["past", "twice"], ["present"], axis=1),
        made("ReduceSum", ["present", "axes"], ["sum"], keepdims=0),
    ]
    axes = onnx.numpy_helper.from_array(np.array([1]), "axes")
    shapes = {"present": ["b", "all", 3], "sum": ["b", 3]}
    outputs = [value(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    graph = onnx.helper.make_graph(nodes, "joined", [past, new], outputs, [axes])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)


def test_what_reads_the_past_before_rows_are_put_behind_it() -> None:
    """The new rows are made of the past; a result beside it, too."""
    value, made = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    nodes = [
        made("Abs", ["past"], ["sizes"]),
        made("ReduceMax", ["sizes"], ["most"], axes=[0]),
        made("Concat", ["past", "most"], ["present"], axis=0),
    ]
    kind = onnx.TensorProto.FLOAT
    outputs = [value("present", kind, ["all", 3]), value("sizes", kind, ["n", 3])]
    graph = onnx.helper.make_graph(nodes, "early", [value("past", kind, ["n", 3])], outputs)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    model = tw.compile(proto, threads=1, append_in_place=True, sizes="general")
    past = rows(1, 5, 0)[0]
    for _ in range(3):
        expected = np.abs(past)
        present, sizes = model(past)
        np.testing.assert_array_equal(sizes, expected)
        np.testing.assert_array_equal(present, np.concatenate([past, expected.max(0, keepdims=True)]))
        past = present


@pytest.fixture(scope="module")
def model() -> tw.Model:
    return tw.compile(joined(), threads=1, append_in_place=True).general


def rows(batch: int, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((batch, count, 3)).astype(F32)


def check(model, past: np.ndarray, new: np.ndarray) -> np.ndarray:
    """A call's `present`, which is right."""
    present, total = model(past, new)
    expected = np.concatenate([past, new + new], 1)
    np.testing.assert_array_equal(present, expected)
    np.testing.assert_allclose(total, expected.sum(1), atol=1e-4)
    return present


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_rows_are_written_behind_those_that_are_there(model) -> None:
    past = check(model, rows(2, 5, 0), rows(2, 3, 1))
    at, moves = address(past), 0
    for step in range(200):
        past = check(model, past, rows(2, 1, step))
        moves += address(past) != at
        at = address(past)
    assert past.shape == (2, 208, 3) and moves <= 3


def test_a_result_stays_as_it_is(model) -> None:
    first = check(model, rows(1, 4, 0), rows(1, 2, 1))
    before = first.copy()
    one, other = check(model, first, rows(1, 1, 2)), check(model, first, rows(1, 1, 3))
    assert address(one) == address(first) != address(other)  # the second finds other rows behind it
    kept = one.copy(), other.copy()
    check(model, one, rows(1, 5, 4))
    check(model, other, rows(1, 5, 5))
    for array, value in ((first, before), (one, kept[0]), (other, kept[1])):
        np.testing.assert_array_equal(array, value)
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0, 0] = 1


def test_any_array_is_a_past(model) -> None:
    check(model, np.zeros((2, 0, 3), F32), rows(2, 1, 0))
    check(model, np.zeros((0, 4, 3), F32), rows(0, 1, 0))
    present = check(model, rows(2, 6, 0), rows(2, 1, 1))
    check(model, present[:, :4], rows(2, 2, 2))  # a part of it; behind it are rows of another result
    check(model, present[1:], rows(1, 2, 3))
    check(model, present[:, ::2], rows(2, 1, 4))
    check(model, rows(3, 8, 0).transpose(1, 0, 2), rows(8, 2, 5))
    check(model, np.asfortranarray(rows(2, 3, 6)), rows(2, 2, 7))


def test_memory_goes_with_its_last_view(model) -> None:
    known = model._rooms._known
    gc.collect()
    count = len(known)
    present = check(model, rows(2, 5, 0), rows(2, 1, 1))
    part = check(model, present, rows(2, 1, 2))[1:]
    del present
    gc.collect()
    assert len(known) == count + 1
    del part
    gc.collect()
    assert len(known) == count


def test_calls_at_once(model) -> None:
    start = check(model, rows(1, 9, 0), rows(1, 1, 1))
    results: dict[int, np.ndarray] = {}

    def run(number: int) -> None:
        past = start
        for step in range(30):
            past = model(past, rows(1, 1, 100 * number + step))[0]
        results[number] = past

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, found in results.items():
        new = [2 * rows(1, 1, 100 * number + step) for step in range(30)]
        np.testing.assert_array_equal(found, np.concatenate([start, *new], 1))


def test_an_error_leaves_the_memory_free(model) -> None:
    present = check(model, rows(2, 5, 0), rows(2, 1, 1))
    with pytest.raises(tw.UserError, match=r"dimension 0 of input new"):
        model(present, rows(3, 1, 1))
    assert address(check(model, present, rows(2, 1, 2))) == address(present)


def test_given_arrays_and_saved_models(model, tmp_path: Path) -> None:
    present, total = np.empty((2, 6, 3), F32), np.empty((2, 3), F32)
    past, new = rows(2, 5, 0), rows(2, 1, 1)
    model(past, new, out=[present, total])
    np.testing.assert_array_equal(present, np.concatenate([past, new + new], 1))
    loaded = tw.load(model.save(tmp_path / "joined.tw"), threads=1)
    first = check(loaded, past, new)
    assert address(check(loaded, first, new)) == address(first)
    assert '"version": 2' in (tmp_path / "joined.tw").read_bytes().decode("latin1") or loaded.general


def test_more_room_is_made_where_the_code_asks_for_it() -> None:
    rooms = Rooms([(1, 0, 1)], ["sum", "present"])
    array = rows(2, 5, 0)
    wholes = rooms.claim([array])
    assert wholes[0].shape == (2, 6 + 64, 3)
    assert not rooms.grow("no room for output other, whose dimension 1 is: 400", wholes, [array])
    assert rooms.grow("no room for output present, whose dimension 1 is: 400", wholes, [array])
    assert wholes[0].shape == (2, 600, 3)
    np.testing.assert_array_equal(wholes[0][:, :5], array)


def test_who_may_ask() -> None:
    with pytest.raises(tw.UserError, match=r"append_in_place= .*the target must be cpu, not 'cuda:sm_80'"):
        tw.compile(joined(), "cuda:sm_80", append_in_place=True)
