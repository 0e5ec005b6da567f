# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line with models for GPUs, on a machine without one."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.cli import main
from tilewright.core import config


@pytest.fixture(autouse=True)
def no_gpu():
    with config.libcuda.override("/no/such/libcuda.so"):
        yield


@pytest.fixture
def softmax(tmp_path):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [16, 40]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "softmax", [x], [y])
    path = tmp_path / "softmax.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return str(path)


@pytest.fixture
def compiled(softmax, tmp_path, capsys):
    path = str(tmp_path / "softmax.tw")
    assert main(["compile", softmax, "--target", "cuda:sm_90a", "-o", path]) == 0
    assert re.search(r"^predicted [0-9.]+ us on nvidia-h\d00: `tilewright explain`", capsys.readouterr().out, re.M)
    return path


def test_run_on_the_emulator(compiled, tmp_path, capsys):
    result = str(tmp_path / "y.npz")
    assert main(["run", compiled, "--emulate", "-o", result]) == 0
    assert "on the emulator" in capsys.readouterr().out
    np.testing.assert_allclose(np.load(result)["y"].sum(axis=-1), 1, rtol=1e-5)


def test_the_page_has_predictions_without_a_gpu(compiled, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["explain", compiled, "-o", str(page)]) == 0
    text = page.read_text()
    assert "Nothing was measured" in text and "of roofline" in text and "CTAs" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "MODEL"], r"this machine has no NVIDIA GPU with a driver: load it with emulate=True \(--emulate on"),
        (["bench", "MODEL", "--emulate"], "the emulator has no clock"),
        (["compile", "ONNX", "--target", "cuda"], "target 'cuda' is this machine's GPU, and there is none"),
        (["compile", "ONNX", "--target", "cuda:sm_90"], "cuda:sm_90a is meant"),
        (["compile", "ONNX", "--cubin"], "cubin= stores a GPU's machine code"),
        (["run", "MODEL", "--emulate", "--input", "x=BAD"], r"input x must have shape \[16, 40\], got \[3, 40\]"),
        (["run", "MODEL", "--emulate", "--input", "x=WHOLE"], "input x must be of dtype float32, got int64"),
    ],
)
def test_errors_say_what_to_do(arguments, message, softmax, compiled, tmp_path, capsys):
    np.save(tmp_path / "bad.npy", np.zeros((3, 40), np.float32))
    np.save(tmp_path / "whole.npy", np.zeros((16, 40), np.int64))
    names = {"ONNX": softmax, "MODEL": compiled}
    names |= {f"x={name.upper()}": f"x={tmp_path / name}.npy" for name in ("bad", "whole")}
    assert main([names.get(argument, argument) for argument in arguments]) != 0
    assert re.search(message, capsys.readouterr().err)
