"""Calls of one artifact with many sizes: who owns the results, growing sizes, threads, arrays of any kind, errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

import tilewright as tw
from tilewright.core.errors import UserError
from tilewright.runtime.cpu.direct import OpenDirect

WEIGHT = np.random.default_rng(0).standard_normal((48, 32)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tw.Model:
    """y = x @ w + row, of any number of rows: one artifact."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Add", ["p", "row"], ["y"], name="sum"),
    ]
    inputs = [info("x", TensorProto.FLOAT, ["batch", "length", 48]), info("row", TensorProto.FLOAT, [32])]
    graph = helper.make_graph(
        nodes, "rows", inputs, [info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(WEIGHT, "w")]
    )
    path = tmp_path_factory.mktemp("open") / "model.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return tw.load(tw.compile(path, sizes="general").save(Path(path).with_name("model.tw")))


def given(batch: int, length: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of a call."""
    random = np.random.default_rng(seed)
    return random.standard_normal((batch, length, 48)).astype(np.float32), random.standard_normal(32).astype(np.float32)


def check(result: np.ndarray, x: np.ndarray, row: np.ndarray) -> None:
    assert result.dtype == np.float32 and result.flags.writeable and result.flags.carray
    np.testing.assert_allclose(result, x @ WEIGHT + row, rtol=1e-4, atol=1e-4)


def test_results_stay_while_later_calls_grow_and_shrink(model: tw.Model) -> None:
    """Memory goes from call to call; not that of a result which somebody holds, be it by a view."""
    sizes = [(1, 1), (2, 7), (4, 200), (1, 3), (3, 500), (2, 7)]
    calls = [given(*size, seed=seed) for seed, size in enumerate(sizes)]
    results = [model(*call)[0] for call in calls]
    views = [result[:, -1:] for result in results[::2]]
    for (x, row), result in zip(calls, results, strict=True):
        check(result, x, row)
    kept = [view.copy() for view in views]
    del results, result
    for _ in range(20):
        model(*given(3, 100))
    for view, copy in zip(views, kept, strict=True):
        np.testing.assert_array_equal(view, copy)


def test_threads_with_sizes_of_their_own(model: tw.Model) -> None:
    def work(seed: int) -> None:
        for step in range(30):
            x, row = given(1 + seed, 1 + (7 * step) % 90, seed)
            check(model(x, row)[0], x, row)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_a_result_may_outlive_its_thread(model: tw.Model) -> None:
    x, row = given(2, 40)
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(lambda: model(x, row)[0]).result()
    check(result, x, row)
    del result
    check(model(x, row)[0], x, row)


def test_the_short_way_and_the_general_one_agree(model: tw.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain arrays by position or name go the short way; views, read-only arrays and empty ones the other."""
    seen = []
    point = OpenDirect.point
    monkeypatch.setattr(OpenDirect, "point", lambda *args: seen.append(point(*args)) or seen[-1])
    x, row = given(2, 9)
    frozen = x.copy()
    frozen.flags.writeable = False
    spread = np.zeros((2, 9, 96), np.float32)
    spread[..., ::2] = x
    for call in ((x, row), (frozen, row), (spread[..., ::2], row)):
        check(model(*call)[0], x, row)
    check(model(row=row, x=x)[0], x, row)
    check(model(x, row=row)[0], x, row)
    assert seen == [True, False, False, True, False]
    assert model(x[:0], row)[0].shape == (0, 9, 32)
    out = np.empty((2, 9, 32), np.float32)
    model(x, row, out=[out])
    check(out, x, row)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((2, 9, 47), np.float32), r"input x must have shape \[batch, length, 48\], got \[2, 9, 47\]"),
        (np.zeros((9, 48), np.float32), r"input x must have shape \[batch, length, 48\], got \[9, 48\]"),
        (np.zeros((2, 9, 48)), r"must be of dtype float32, got float64; convert it with .astype\('float32'\)"),
    ],
)
def test_what_does_not_fit_is_an_error(model: tw.Model, x: np.ndarray, message: str) -> None:
    with pytest.raises(UserError, match=message):
        model(x, np.zeros(32, np.float32))


def test_an_error_of_the_run_shows_shapes_not_numbers() -> None:
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.FLOAT, [size, 3]) for name, size in (("a", "n"), ("b", "m"))]
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    graph = helper.make_graph(nodes, "sum", inputs, [info("y", TensorProto.FLOAT, None)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    model = tw.compile(proto, sizes="general")
    with pytest.raises(UserError, match=r"; got a \[4, 3\], b \[5, 3\]$"):
        model(np.zeros((4, 3), np.float32), np.zeros((5, 3), np.float32))


def test_a_task_reads_turned_what_it_makes_itself() -> None:
    """y @ y.T @ x, y centered: no task between can copy y, which is made and read in one task of all rows."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("ReduceMean", ["x", "axes"], ["mean"]),
        helper.make_node("Sub", ["x", "mean"], ["y"]),
        helper.make_node("Transpose", ["y"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["y", "turned"], ["scores"]),
        helper.make_node("MatMul", ["scores", "x"], ["z"]),
    ]
    inputs, outputs = ([info(name, TensorProto.FLOAT, ["b", "n", 8])] for name in ("x", "z"))
    graph = helper.make_graph(nodes, "self", inputs, outputs, [numpy_helper.from_array(np.array([2]), "axes")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    model = tw.compile(proto, sizes="general")
    for shape in ((2, 7, 8), (1, 1, 8), (3, 50, 8)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        y = x - x.mean(2, keepdims=True)
        np.testing.assert_allclose(model(x)[0], y @ y.transpose(0, 2, 1) @ x, rtol=1e-4, atol=1e-4)


def test_more_than_memory_holds_ends_the_call_alone(model: tw.Model) -> None:
    """Rows that lie upon each other take no memory, a result of as many does."""
    many = np.lib.stride_tricks.as_strided(np.zeros((1, 1, 48), np.float32), (1 << 20, 1 << 24, 48), (0, 0, 4))
    with pytest.raises((UserError, MemoryError)):
        model(many, np.zeros(32, np.float32))
    x, row = given(2, 9)
    check(model(x, row)[0], x, row)


def test_each_number_of_rows(model: tw.Model) -> None:
    """Whole register tiles and all that they leave; also where a task ends."""
    for rows in (*range(1, 50), 131, 132, 133, 139, 191, 193, 271):
        x, row = given(1, rows, rows)
        check(model(x, row)[0], x, row)
