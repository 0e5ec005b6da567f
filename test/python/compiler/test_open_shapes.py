# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with symbolic dimensions: one compilation for all sizes, or one for each set of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.compiler.dynamic_shapes import DynamicShapesModel, general_model


def model(*shapes: list[int | str | None] | None) -> onnx.ModelProto:
    """The sum of the inputs a, b, ... Where a size may turn out to be 1, each set of sizes has code of its own."""
    names = "abc"[: len(shapes)]
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, shapes, strict=True)]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Sum", list(names), ["y"])], "sum", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_each_set_of_sizes_is_compiled_once(target: str, caplog: pytest.LogCaptureFixture) -> None:
    compiled = tw.compile(model(["batch", 3], ["batch", "width"]), target=target, sizes="each")
    with caplog.at_level(logging.WARNING, "tilewright"):
        for batch, width in ((2, 3), (5, 3), (2, 3), (2, 1)):
            np.testing.assert_array_equal(compiled(ones(batch, 3), b=ones(batch, width))[0], 2 * ones(batch, 3))
    assert compiled.sizes == [{"batch": 2, "width": 3}, {"batch": 5, "width": 3}, {"batch": 2, "width": 1}]
    messages = [r.message for r in caplog.records if r.message.startswith("compiled for")]
    assert messages[0].split(" in ")[0] == "compiled for batch=2, width=3"
    assert len(messages) == 3


def test_one_compilation_for_all_sizes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tilewright"):
        compiled = tw.compile(model(["batch", 3], ["batch", 3]))
        for batch in (2, 5, 1, 0, 200):
            np.testing.assert_array_equal(compiled(ones(batch, 3), b=ones(batch, 3))["y"], 2 * ones(batch, 3))
    assert compiled.sizes == []
    assert not caplog.records
    saved = tw.load(compiled.save(tmp_path / "model.tw"))
    assert saved(ones(7, 3), ones(7, 3))["y"].shape == (7, 3)
    assert saved.ranges == {"batch": (0, None)}
    with pytest.raises(tw.UserError, match=r"of input b \(batch\) must be that of input a; got a \[7, 3\], b \[8, 3\]"):
        saved(ones(7, 3), ones(8, 3))
    with pytest.raises(tw.UserError, match=r"input a must have shape \[batch, 3\], got \[7\]"):
        saved(ones(7), ones(7, 3))
    with pytest.raises(tw.UserError, match=r"missing input b; the inputs are a: \[batch, 3\] f32, b: \[batch, 3\] f32"):
        saved(ones(7, 3))
    assert "<html" in compiled.explain(measure=False)


def test_results_of_run_time_sizes_in_given_arrays() -> None:
    compiled = tw.compile(model(["batch", 3], ["batch", 3]))
    y = np.zeros((4, 3), np.float32)
    result = compiled(ones(4, 3), ones(4, 3), out=[y])
    assert result["y"] is y
    np.testing.assert_array_equal(y, 2 * ones(4, 3))
    assert compiled.general.dims == {"a": ("batch", 3), "b": ("batch", 3)}
    with pytest.raises(tw.UserError, match=r"output y has shape \[5, 3\], its array \[4, 3\]"):
        compiled(ones(5, 3), ones(5, 3), out=[y])
    with pytest.raises(tw.UserError, match=r"output y must have shape \[batch, 3\], got \[4, 2\]"):
        compiled(ones(4, 3), ones(4, 3), out=[np.zeros((4, 2), np.float32)])


def test_a_size_that_may_be_1_costs_not_the_rest(tmp_path: Path) -> None:
    compiled = tw.compile(model(["batch", 3], ["batch", "width"]))
    saved = tw.load(compiled.save(tmp_path / "model.tw"))
    for width in (3, 1):
        np.testing.assert_array_equal(saved(ones(4, 3), ones(4, width))[0], 2 * ones(4, 3))
        np.testing.assert_array_equal(compiled(ones(4, 3), ones(4, width))[0], 2 * ones(4, 3))
    assert compiled.sizes == []


def test_what_is_slow_is_said(caplog: pytest.LogCaptureFixture) -> None:
    slow = SimpleNamespace(report_data=lambda: {"open_loops": [{"location": "pool", "reason": "no size"}] * 3})
    with caplog.at_level(logging.WARNING, "tilewright"):
        found = general_model(lambda: slow, [("x", "f32", ("n",))], "auto", SimpleNamespace(compiles=True))
    assert found.model is slow
    assert "pool: runs as scalar loops on the host, since sizes are open: no size, and 2 more; " in caplog.text
    assert "sizes='each' compiles for each set of sizes instead" in caplog.text


def test_why_there_is_no_code_for_all_sizes() -> None:
    def fail() -> None:
        raise tw.UnsupportedError("x has no lowering")

    arguments = fail, [("x", "f32", ("n",))]
    found = general_model(*arguments, "auto", SimpleNamespace(compiles=True))
    assert found.model is None and found.reason == "sizes must be known for this model (x has no lowering)"
    with pytest.raises(tw.UserError, match="sizes='general': .* sizes must be known for this model .x has no lowering"):
        general_model(*arguments, "general", SimpleNamespace(compiles=True))


def test_an_internal_error_is_no_fault_of_the_sizes(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise tw.InternalError("a pass failed", command="tile-opt x.mlir")

    arguments = fail, [("x", "f32", ("n",))]
    with caplog.at_level(logging.WARNING, "tilewright"):
        found = general_model(*arguments, "auto", SimpleNamespace(compiles=True))
    assert found.model is None and found.reason == "an internal error (a pass failed)"
    assert "sizes must be known" not in caplog.text and "reproduce: tile-opt x.mlir" in caplog.text
    with pytest.raises(tw.InternalError, match="a pass failed"):
        general_model(*arguments, "general", SimpleNamespace(compiles=True))


def test_either_form_can_be_asked_for() -> None:
    assert tw.compile(model(["n", 3]), sizes="general").general is not None
    each = tw.compile(model(["n", 3]), sizes="each")
    assert each.general is None and each.reason == "sizes='each' asks for code for each set of sizes"
    assert each.dims == {"a": ("n", 3)}
    each.for_inputs(ones(2, 3))
    assert each.sizes == [{"n": 2}]
    with pytest.raises(tw.UserError, match="sizes= says what open dimensions get: 'auto', 'general', 'each', not"):
        tw.compile(model(["n", 3]), sizes="all")
    with pytest.raises(tw.UserError, match="sizes='general': there is no code for all sizes at once: the number"):
        tw.compile(model(["n", 3], None), sizes="general")
    with pytest.raises(tw.UserError, match="at once: target reference compiles nothing"):
        tw.compile(model(["n", 3]), "reference", sizes="general")


def test_results_keep_the_names_of_sizes(tmp_path: Path) -> None:
    """In terms of the inputs' sizes where they follow from these; else as the model calls them."""
    inputs = [helper.make_tensor_value_info("past", TensorProto.FLOAT, ["batch", "past", 4])]
    inputs += [helper.make_tensor_value_info("new", TensorProto.FLOAT, ["batch", "tokens", 4])]
    shapes = {"all": ["b", "total", 4], "flat": ["n"], "found": [2, "count"]}
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs[2] = helper.make_tensor_value_info("found", TensorProto.INT64, ["rank", "count"])
    minus_one = onnx.numpy_helper.from_array(np.array([-1], np.int64), "minus_one")
    nodes = [
        helper.make_node("Concat", ["past", "new"], ["all"], axis=1),
        helper.make_node("Reshape", ["new", "minus_one"], ["flat"]),
        helper.make_node("NonZero", ["flat"], ["found"]),
    ]
    graph = helper.make_graph(nodes, "names", inputs, outputs, [minus_one])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    compiled = tw.compile(proto)
    for model in (compiled, tw.load(compiled.save(tmp_path / "model.tw"))):
        shown = ["all: [batch, past + tokens, 4] f32", "flat: [4*batch*tokens] f32", "found: [1, count] i64"]
        assert list(map(str, model.outputs)) == shown
        assert [spec.shape for spec in model.inputs] == [("batch", "past", 4), ("batch", "tokens", 4)]


def test_ranges() -> None:
    compiled = tw.compile(model(["batch", 3], ["batch", 3]), shapes={"batch": (2, 8)})
    assert compiled.ranges == {"batch": (2, 8)}
    assert compiled(ones(8, 3), ones(8, 3))["y"].shape == (8, 3)
    with pytest.raises(tw.UserError, match=r"dimension 0 of input a \(batch\) must be between 2 and 8, got 9"):
        compiled(ones(9, 3), ones(9, 3))
    with pytest.raises(tw.UserError, match=r"a size, or its range \(low, high\), is needed"):
        tw.compile(model(["batch", 3]), shapes={"batch": (2, 8, 3)})


def test_a_table_limits_the_sizes_of_the_general_model() -> None:
    """A slice of 8 positions as long as the input serves up to 8; more positions are compiled for by themselves."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["length"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    table = onnx.numpy_helper.from_array(np.arange(8, dtype=np.float32), "table")
    zero = onnx.numpy_helper.from_array(np.zeros(1, np.int64), "zero")
    nodes = [
        helper.make_node("Shape", ["x"], ["length"]),
        helper.make_node("Slice", ["table", "zero", "length"], ["part"]),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=1),
        helper.make_node("Add", ["part", "total"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "positions", [x], [y], [table, zero])
    compiled = tw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    assert compiled.ranges == {"length": (0, 8)}
    np.testing.assert_array_equal(compiled(ones(5))["y"], 5 + np.arange(5, dtype=np.float32))
    assert compiled.sizes == []
    np.testing.assert_array_equal(compiled(ones(9))["y"], 9 + np.arange(8, dtype=np.float32))
    assert compiled.sizes == [{"length": 9}]


def test_dimensions_without_names_and_open_ranks() -> None:
    compiled = tw.compile(model([None, 3], None))
    assert compiled(ones(2, 3), ones(3))["y"].shape == (2, 3)
    assert compiled(ones(4, 3), ones(1, 1, 1))["y"].shape == (1, 4, 3)


def test_a_size_left_behind_by_an_exporter_does_not_close_an_open_one() -> None:
    """The input has any batch; that the result is declared for one is no promise about the input."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negative", inputs, [output])
    compiled = tw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    for batch in (4, 1):
        np.testing.assert_array_equal(compiled(ones(batch, 3))["y"], -ones(batch, 3))
    assert compiled.sizes == []


def test_errors_of_a_run_where_a_dimension_has_no_name() -> None:
    """What the run refuses is said as it is, and not compiled for these sizes."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3]),
        helper.make_tensor_value_info("holds", TensorProto.BOOL, [6]),
        helper.make_tensor_value_info("data", TensorProto.FLOAT, [6]),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [2]),
    ]
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Compress", ["data", "holds"], ["z"], axis=0)]
    graph = helper.make_graph(nodes, "two", inputs, outputs)
    compiled = tw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    if compiled.general is None:
        pytest.skip("this model is compiled for each set of sizes")
    data = np.arange(6, dtype=np.float32)
    with pytest.raises(tw.UserError, match="dimension 0 of the result is not 2"):
        compiled(ones(4, 3), data > 2, data)


def test_a_copy_of_what_its_own_task_makes() -> None:
    """Rows scaled to length 1 times a vector: the copy's sizes are known before the task that makes what is copied."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((6, 1)).astype(np.float32)
    nodes = [
        helper.make_node("ReduceL2", ["x"], ["length"], axes=[1], keepdims=1),
        helper.make_node("Div", ["x", "length"], ["unit"]),
        helper.make_node("MatMul", ["unit", "w"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 6])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1])]
    graph = helper.make_graph(nodes, "normalized", inputs, outputs, [numpy_helper.from_array(w, "w")])
    compiled = tw.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    assert compiled.general is not None
    for batch in (1, 7, 40):
        x = rng.standard_normal((batch, 6)).astype(np.float32)
        expected = x / np.linalg.norm(x, axis=1, keepdims=True) @ w
        np.testing.assert_allclose(compiled(x)["y"], expected, rtol=1e-4, atol=1e-6)
    assert compiled.sizes == []


def test_some_sizes_fixed_ahead() -> None:
    compiled = tw.compile(model(["batch", "width"]), shapes={"width": 3})
    assert compiled(ones(2, 3))["y"].shape == (2, 3)
    with pytest.raises(tw.UserError, match=r"dimension 1 of input a \(width\) must be 3, got 4"):
        compiled(ones(2, 4))


def test_a_fixed_size_beside_a_dimension_without_a_name() -> None:
    assert tw.compile(model(["batch", None]), shapes={"batch": 2})(ones(2, 3))["y"].shape == (2, 3)


def test_sizes_that_contradict_each_other() -> None:
    compiled = tw.compile(model(["n", 3], ["n", 3]))
    with pytest.raises(tw.UserError, match=r"dimension 0 of input b \(n\) must be 2, got 5"):
        compiled(ones(2, 3), ones(5, 3))
    with pytest.raises(tw.UserError, match="must have 2 dimensions"):
        compiled(ones(2), ones(2, 3))
    with pytest.raises(tw.UserError, match="dimension 1 of input a must be 3, got 4"):
        compiled(ones(2, 4), ones(2, 3))


def test_saving_needs_fixed_sizes_where_each_set_is_compiled(tmp_path: Path) -> None:
    compiled = tw.compile(model(["batch", 3], ["batch", "width"]), sizes="each")
    with pytest.raises(tw.UserError, match=r'shapes=\{"batch": 1, "width": 1\}.*code for all sizes: sizes=.each. asks'):
        compiled.save(tmp_path / "model.tw")
    with pytest.raises(tw.UserError, match="call it once"):
        compiled.explain()
    compiled(ones(2, 3), ones(2, 3))
    assert "<html" in compiled.explain(measure=False)


def test_many_threads_compile_each_set_once() -> None:
    compiled = tw.compile(model(["batch", 3], ["batch", "width"]), sizes="each")
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda i: compiled(ones(i % 3 + 1, 3), ones(i % 3 + 1, 1))[0], range(24)))
    assert [r.shape[0] for r in results] == [i % 3 + 1 for i in range(24)]
    assert len(compiled.sizes) == 3


def test_a_compilation_does_not_hold_up_other_sizes() -> None:
    begun, going = threading.Event(), threading.Event()

    def build(sizes: dict[str, int]) -> Callable[..., int]:
        if sizes["n"] == 2:
            begun.set()
            assert going.wait(60)
        return lambda *_: sizes["n"]

    model = DynamicShapesModel(build, [("x", "f32", ("n",))], {}, "cpu")
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(model, ones(2))
        assert begun.wait(60)
        assert model(ones(3)) == 3
        assert model.sizes == [{"n": 3}]
        going.set()
        assert slow.result() == 2


def test_sizes_of_tensors_on_a_gpu_are_read_where_they_lie() -> None:
    class OnGpu:
        __cuda_array_interface__ = {"shape": (5,), "typestr": "<f4", "data": (4096, False), "version": 3}

    model = DynamicShapesModel(lambda sizes: lambda *_: sizes["n"], [("x", "f32", ("n",))], {}, "cuda:sm_80")
    assert model(OnGpu()) == 5


def test_threads_are_checked_before_sizes_are_blamed() -> None:
    """The first compilation refused them, which looked like one that needs its sizes."""
    with pytest.raises(tw.UserError, match="threads must be a whole number >= 1, got 0"):
        tw.compile(model(["n", 3], ["n", 1]), threads=0)
