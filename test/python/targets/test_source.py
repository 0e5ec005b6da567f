"""Sources: what identifies a model, external data included."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.compiler.external_data import external_files
from tilewright.compiler.source import open_source
from tilewright.core.errors import UserError

onnx = pytest.importorskip("onnx")


def make_model(value=1.0):
    weights = onnx.numpy_helper.from_array(np.full(1000, value, np.float32), "w")
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1000]) for name in "xy"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:1], info[1:], [weights]
    )
    return onnx.helper.make_model(graph)


def save(model, path, location=None):
    options = {"save_as_external_data": True, "location": location, "size_threshold": 0} if location else {}
    onnx.save(onnx.ModelProto.FromString(model.SerializeToString()), path, **options)
    return path


def test_external_files(tmp_path):
    assert external_files(save(make_model(), tmp_path / "plain.onnx").read_bytes()) == []
    data = save(make_model(), tmp_path / "m.onnx", "weights.bin").read_bytes()
    assert external_files(data) == ["weights.bin"]
    for end in range(0, len(data), 7):
        assert external_files(data[:end]) in ([], ["weights.bin"])
    assert external_files(b"\xff" * 100) == external_files(b"\x3b\x01") == []


def test_identity_follows_the_content(tmp_path):
    one = open_source(save(make_model(), tmp_path / "a.onnx")).content_id
    assert open_source(save(make_model(), tmp_path / "b.onnx")).content_id == one
    assert open_source(make_model().SerializeToString()).content_id == open_source(make_model()).content_id
    assert open_source(save(make_model(2.0), tmp_path / "c.onnx")).content_id != one


def test_identity_covers_external_data(tmp_path):
    path = save(make_model(), tmp_path / "m.onnx", "weights.bin")
    before = open_source(path).content_id
    data = tmp_path / "weights.bin"
    data.write_bytes(data.read_bytes()[:-1] + b"\x01")
    assert open_source(path).content_id != before


def test_an_empty_file(tmp_path):
    (tmp_path / "empty.onnx").touch()
    assert open_source(tmp_path / "empty.onnx").content_id


def test_what_is_no_model(tmp_path):
    for value in (None, 3, [1], tmp_path):
        with pytest.raises(UserError):
            open_source(value)
