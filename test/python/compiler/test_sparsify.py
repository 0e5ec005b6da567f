# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tw.sparsify: weights with zeros in the asked pattern, scores as in Wanda, outputs as NumPy has them."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import models
import tilewright as tw
from tilewright.cli import main
from tilewright.core.errors import UserError

RNG = np.random.default_rng(5)
A = RNG.standard_normal((16, 8)).astype(np.float32)
B = RNG.standard_normal((8, 12)).astype(np.float32)
X = (RNG.standard_normal((5, 16)) * np.arange(1, 17)).astype(np.float32)


def chain(a=A, b=B, kind=onnx.TensorProto.FLOAT, rows=5):
    """y = relu(x a) b"""
    value = lambda name, shape: helper.make_tensor_value_info(name, kind, shape)  # noqa: E731
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["y"], name="second"),
    ]
    weights = [numpy_helper.from_array(a, "a"), numpy_helper.from_array(b, "b")]
    graph = helper.make_graph(nodes, "chain", [value("x", [rows, 16])], [value("y", [rows, 12])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weight(model, name):
    return numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == name))


def run(a, b, x=X):
    return np.maximum(x.astype(np.float64) @ a, 0) @ b


def best(scores, n):
    """Which rows of each window of 4 stay, column by column."""
    kept = np.zeros(scores.shape, bool)
    for window in range(0, scores.shape[0], 4):
        for column in range(scores.shape[1]):
            kept[window + np.argsort(-scores[window : window + 4, column])[:n], column] = True
    return kept


def test_magnitudes():
    given = chain()
    before = given.SerializeToString()
    model, report = tw.sparsify(given, "2:4", layers=["*"], measure=False)
    assert given.SerializeToString() == before, "the model is not changed"
    for name, old in (("a", A), ("b", B)):
        np.testing.assert_array_equal(weight(model, name), np.where(best(np.abs(old), 2), old, 0))
    onnx.checker.check_model(model)
    assert report.density == 0.5 and not report.outputs and report.scores == "magnitude"
    assert [layer.name for layer in report.layers] == ["first", "second"]
    kept = np.abs(weight(model, "a")).sum() / np.abs(A).sum()
    assert report.layers[0].score == pytest.approx(kept, rel=1e-5)


@pytest.mark.parametrize("given", ["array", "list"])
def test_scores_with_calibration_are_those_of_wanda(given):
    samples = [X, 3 * X[::-1] + 1]
    data = X if given == "array" else [(samples[0],), {"x": samples[1]}]
    used = X if given == "array" else np.concatenate(samples)
    model, report = tw.sparsify(chain(), "2:4", data, layers=["*"])
    hidden = np.maximum(used @ A, 0)
    for name, old, x in (("a", A, used), ("b", B, hidden)):
        scores = np.abs(old) * np.linalg.norm(x, axis=0)[:, None]
        np.testing.assert_array_equal(weight(model, name), np.where(best(scores, 2), old, 0))
    assert report.data == "calibration" and report.samples == (1 if given == "array" else 2)


def test_the_change_of_the_outputs():
    model, report = tw.sparsify(chain(), "unstructured@0.5", X, layers=["first"])
    scores = np.abs(A) * np.linalg.norm(X, axis=0)[:, None]
    assert ((weight(model, "a") != 0).sum(axis=0) == 8).all(), "as many for each output"
    assert scores[weight(model, "a") == 0].reshape(-1).max() <= scores.max()
    old, new = run(A, B), run(weight(model, "a"), B)
    (change,) = report.outputs
    assert change.name == "y"
    assert change.max == pytest.approx(np.abs(new - old).max() / np.abs(old).max(), rel=1e-4)
    assert change.mean == pytest.approx(np.abs(new - old).mean() / np.abs(old).mean(), rel=1e-4)
    text = str(report)
    assert "first  MatMul    a       16x8" in text and "output y: relative change mean" in text
    assert "not pruned, layers= does not name it: b" in text


def test_nothing_goes_nothing_moves():
    model, report = tw.sparsify(chain(), "unstructured@0", X)
    np.testing.assert_array_equal(weight(model, "a"), A)
    assert report.outputs[0].max == 0


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floats(dtype):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model, _ = tw.sparsify(chain(A.astype(dtype), B.astype(dtype), kind), "1:4", measure=False)
    pruned = weight(model, "a")
    assert pruned.dtype == dtype
    np.testing.assert_array_equal(pruned, np.where(best(np.abs(A.astype(dtype).astype(np.float64)), 1), pruned, 0))


def test_open_sizes_are_measured():
    _, report = tw.sparsify(chain(rows="batch"), "2:4", X)
    assert 0 < report.outputs[0].mean < 1
    _, report = tw.sparsify(chain(rows="batch"), "2:4", shapes={"batch": 3})
    assert report.data == "random" and report.samples == 1


def test_external_data_come_along(tmp_path):
    path = tmp_path / "chain.onnx"
    onnx.save(chain(), str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    model, _ = tw.sparsify(path, "2:4", measure=False)
    (tmp_path / "weights.bin").unlink()
    np.testing.assert_array_equal(weight(model, "b"), B)
    np.testing.assert_array_equal(weight(model, "a"), np.where(best(np.abs(A), 2), A, 0))


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_told(strange):
    a = A.copy()
    a[3, 5] = strange
    with pytest.raises(UserError, match=rf"weight a holds {strange} at \[3, 5\]"):
        tw.sparsify(chain(a), "2:4")
    tw.sparsify(chain(a), "2:4", skip=["a"], measure=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "5:4"}, "5 of 4 cannot stay"),
        ({"pattern": "2:4", "layers": "first"}, "layers= is a list of names"),
        ({"pattern": "2:4", "layers": ["third"]}, r"no layer has the name 'third'; there are first \(weight a\)"),
        ({"pattern": "heads:7@0.5", "layers": ["first"]}, "16 inputs cannot be cut into 7 groups"),
        ({"pattern": "heads:4@0.5"}, "no heads are joined before it"),
        ({"pattern": "2:4", "calibration": {"z": X}}, "the model"),
    ],
)
def test_wrong_requests(arguments, message):
    with pytest.raises(UserError, match=message):
        tw.sparsify(chain(), **{"measure": False, **arguments})


def test_command(tmp_path, capsys):
    path = tmp_path / "chain.onnx"
    onnx.save(chain(), str(path))
    np.savez(tmp_path / "x.npz", x=X)
    out = tmp_path / "pruned.onnx"
    arguments = ["sparsify", str(path), "--pattern", "2:4", "-o", str(out), "--calibration", str(tmp_path / "x.npz")]
    assert main([*arguments, "--skip", "second"]) == 0
    text = capsys.readouterr().out
    assert "2:4 by magnitude times norm of the input: 1 of 2 weights, 50.0%" in text and str(out) in text
    assert np.count_nonzero(weight(onnx.load(str(out)), "a")) == A.size // 2
    assert main(["sparsify", str(path), "--pattern", "2:4:8"]) == 2
    assert "pattern '2:4:8': no pattern has this form" in capsys.readouterr().err


def test_a_torch_module():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 12)).eval()
    x = torch.from_numpy(X)
    model, report = tw.sparsify(module, "2:4", x, example_inputs=(x,))
    assert len(report.layers) == 1 and report.density == 0.5
    with torch.no_grad():
        old = module(x).numpy()
    new = tw.compile(model, threads=1)(X)[0]
    assert report.outputs[0].max == pytest.approx(np.abs(new - old).max() / np.abs(old).max(), rel=1e-3)


def test_heads_and_channels_are_those_that_nothing_else_reads():
    model = models.build("bert_tiny")  # three heads of eight channels
    pruned, report = tw.sparsify(model, "heads:3@0.34", measure=False)
    assert [layer.weight.rsplit(".", 3)[-3:] for layer in report.layers] == [["attention", "output", "dense"]] * 2
    for layer in report.layers:
        dead = (weight(pruned, layer.weight) == 0).all(axis=1).reshape(3, 8)
        assert (dead.all(axis=1) == dead.any(axis=1)).all() and dead.sum() == 8
    _, report = tw.sparsify(model, "channels@0.5", measure=False)
    assert [layer.weight.endswith("output.dense") for layer in report.layers] == [True] * 4
    assert "others read its inputs, too: they could not be left out" in report.left.values()


def test_convolutions_of_a_picture():
    model = models.build("mobilenet_tiny")
    pruned, report = tw.sparsify(model, "2:4", measure=False)
    reasons = set(report.left.values())
    assert (
        len(report.layers) == 10 and any("depthwise" in r for r in reasons) and any("first layer" in r for r in reasons)
    )
    for layer in report.layers:
        channels = weight(pruned, layer.weight).swapaxes(0, 1)  # windows lie along the inputs
        tail = [(0, -channels.shape[0] % 4), *[(0, 0)] * (channels.ndim - 1)]
        kept = (np.pad(channels, tail) != 0).reshape(-1, 4, *channels.shape[1:]).sum(axis=1)
        assert kept.max() == 2
