"""The command line, through main(): output, exit codes, errors without tracebacks."""

from __future__ import annotations

import json
import re

import lowered_model
import numpy as np
import pytest

import tilewright as tw
from tilewright.cli import main
from tilewright.core.errors import UserError

X = np.arange(8, dtype=np.float32)


@pytest.fixture
def artifact(compiled, tmp_path):
    return str(compiled().save(tmp_path / "model.tw"))


@pytest.fixture
def mlir(tmp_path):
    path = tmp_path / "model.mlir"
    path.write_text(lowered_model.TEXT)
    return str(path)


def test_version_and_help(capsys):
    for arguments, text in [
        (["--version"], f"tilewright {tw.__version__}"),
        (["--help"], "tilewright compile model.onnx -o model.tw"),
        (["run", "--help"], "--compare"),
    ]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0 and text in capsys.readouterr().out


def test_usage_error(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["cook"])
    assert caught.value.code == 2 and "invalid choice" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["run", "model.tw", "--seed", "-1"])
    assert caught.value.code == 2 and "--seed: -1 is negative" in capsys.readouterr().err


def test_run(artifact, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    assert main(["run", artifact, "--input", f"x={tmp_path}/x.npy", "-o", str(tmp_path / "out.npz")]) == 0
    assert "y: [8] float32  [100, 102, 104, 106, ...]  min 100 mean 107 max 114" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], X + lowered_model.WEIGHT)


def test_random_inputs_follow_the_seed(artifact, capsys):
    outputs = []
    for seed in ("1", "1", "2"):
        assert main(["run", artifact, "--seed", seed]) == 0
        outputs.append(capsys.readouterr().out.splitlines()[0])
    assert outputs[0] == outputs[1] != outputs[2]


def test_bench(artifact, tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert main(["bench", artifact, "--seconds", "0.1", "--threads", "1", "--json", str(file)]) == 0
    assert "bursts" in capsys.readouterr().out
    figures = json.loads(file.read_text())
    assert figures["threads"] == 1 and figures["tilewright"]["median"] > 0


def test_stop_after_prints_ir(mlir, tmp_path, capsys):
    assert main(["compile", mlir, "--stop-after", "import"]) == 0
    assert "func.func private @main" in capsys.readouterr().out
    assert main(["compile", mlir, "--stop-after", "import", "-o", str(tmp_path / "ir.mlir")]) == 0
    assert "func.func private @main" in (tmp_path / "ir.mlir").read_text()


def test_compare(artifact, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper, numpy_helper, save

    weight = numpy_helper.from_array(lowered_model.WEIGHT, "w")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in "xy"]
    for factor, code, verdict in [(weight, 0, ": same"), (numpy_helper.from_array(X, "w"), 1, ": DIFFERENT")]:
        graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:1], info[1:], [factor])
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
        options = ["--compare", "onnxruntime", "--onnx", str(tmp_path / "m.onnx")]
        assert main(["run", artifact, *options]) == code
        assert verdict in capsys.readouterr().out
    assert main(["bench", artifact, "--against", "onnxruntime", "--seconds", "0.1", *options[2:]]) == 0
    assert "x the speed of ONNX Runtime" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing.onnx"], "user error: there is no model file nothing.onnx"),
        (["run", "ARTIFACT", "--input", "x"], "--input x: expected NAME=FILE"),
        (["run", "ARTIFACT", "--input", "x=none.npy"], "--input x=none.npy: cannot read it"),
        (["run", "ARTIFACT", "--input", "x=XY.npz"], "an archive of arrays (x, y); numpy.save writes one"),
        (["run", "ARTIFACT", "--input", "z=X.npy"], "--input z: the model's inputs are x: 8xf32"),
        (["run", "ARTIFACT", "--compare", "onnxruntime"], "name its ONNX file with --onnx"),
        (["run", "ARTIFACT", "--threads", "0"], "threads must be a whole number"),
        (["run", "ARTIFACT", "--shape", "batch=1"], "is compiled already"),
        (["compile", "ARTIFACT"], "is compiled already"),
        (["run", "ARTIFACT", "--precision", "bf16"], "is compiled already"),
        (["run", "ARTIFACT", "--padded", "x"], "--padded and --cubin have no effect"),
        (["compile", "MLIR", "--precision", "int8"], "needs calibration="),
        (["compile", "MLIR", "--precision", "int8", "--calibration", "none.npz"], "--calibration none.npz: "),
        (["compile", "MLIR", "--shape", "batch"], "--shape batch: expected NAME=SIZE"),
        (["compile", "MLIR", "--stop-after", "lunch"], "no phase 'lunch'"),
        (["compile", "MLIR", "--target", "vax"], "unknown target 'vax'"),
        (["check", "ARTIFACT"], "check takes the ONNX file it was made from"),
        (["run", "ARTIFACT", "--input", "x=binary.mlir"], "not a .npy file of numbers"),
        (["compile", "BINARY"], "binary.mlir is not MLIR text"),
        (["compile", "MLIR", "--stop-after", "import", "-o", "no/where.mlir"], "no/where.mlir: No such file"),
        (["explain", "ARTIFACT", "--no-measure", "-o", "no/where.html"], "no/where.html: No such file"),
        (["devices", "pdp11"], "unknown device 'pdp11'"),
    ],
)
def test_user_errors(arguments, message, artifact, mlir, tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "XY.npz", x=X, y=X)
    (tmp_path / "binary.mlir").write_bytes(b"\xff\xfe")
    monkeypatch.chdir(tmp_path)
    arguments = [{"ARTIFACT": artifact, "MLIR": mlir, "BINARY": "binary.mlir"}.get(a, a) for a in arguments]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err and "Traceback" not in captured.err


def test_unknown_options_show_the_usage_of_their_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["run", "m.tw", "--inputs", "x.npz"])
    told = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "usage: tilewright run " in told and "[--input NAME=FILE]" in told and "unrecognized arguments" in told


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    with pytest.raises(UserError):
        main(["run", "nothing.onnx"])


def test_other_errors_have_their_codes(monkeypatch, capsys):
    from tilewright.core.errors import InternalError, UnsupportedError

    for error, code in [(UnsupportedError("no Foo"), 3), (InternalError("bug"), 4), (KeyboardInterrupt(), 130)]:
        monkeypatch.setattr(tw.compiler.api, "compile", lambda *_, error=error, **__: (_ for _ in ()).throw(error))
        monkeypatch.setattr(tw, "compile", tw.compiler.api.compile)
        assert main(["compile", "x.onnx"]) == code
        assert "Traceback" not in capsys.readouterr().err


def test_cache(compiled, capsys):
    compiled()
    assert main(["cache"]) == 0
    listed = capsys.readouterr().out
    assert "module" in listed and "2 kernels" in listed
    assert main(["cache", "prune"]) == 0 and "removed 0" in capsys.readouterr().out
    assert main(["cache", "clear"]) == 0 and "removed 3 entries" in capsys.readouterr().out


def test_devices(capsys):
    assert main(["devices"]) == 0
    assert "host: cpu" in capsys.readouterr().out
    assert main(["devices", "cpu:x86-64-v3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cpu"] == "x86-64-v3"
    assert main(["devices", "nvidia-h100"]) == 0
    shown = capsys.readouterr().out
    assert "132 multiprocessors, 1.83 GHz" in shown and re.search(r"peak bf16 +989\.4 TFLOP/s in all", shown)


def test_doctor(capsys, monkeypatch):
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "TILEWRIGHT_CACHE_DIR" in shown and "\n    gpu " in shown
    monkeypatch.setenv("TILEWRIGHT_PTXAS", "off")
    monkeypatch.setenv("TILEWRIGHT_LIBCUDA", "/no/such/libcuda.so")
    assert main(["doctor"]) == 0, "neither is needed to compile"
    shown = capsys.readouterr().out
    assert "no NVIDIA GPU with a driver" in shown and "cubin=True needs it" in shown
    monkeypatch.setenv("TILEWRIGHT_LINKER", "no-such-linker")
    assert main(["doctor"]) == 1
    captured = capsys.readouterr().out
    assert "! linker" in captured and "1 problem(s)" in captured


@pytest.fixture
def symbolic(tmp_path):
    """y = -x with a symbolic batch."""
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "negation", [x], [y])
    path = tmp_path / "symbolic.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return str(path)


def test_sizes_come_with_the_run(symbolic, tmp_path, capsys):
    compiled = str(tmp_path / "symbolic.tw")
    assert main(["compile", symbolic, "-o", compiled]) == 0
    np.save(tmp_path / "x.npy", np.ones((5, 3), np.float32))
    for model in (symbolic, compiled):
        assert main(["run", model, "--size", "batch=2"]) == 0
        assert "y: [2, 3] float32" in capsys.readouterr().out
        assert main(["run", model, "--input", f"x={tmp_path}/x.npy"]) == 0
        assert "y: [5, 3] float32" in capsys.readouterr().out
        assert main(["bench", model, "--size", "batch=7", "--seconds", "0.01"]) == 0
        capsys.readouterr()


def test_code_for_each_set_of_sizes_runs_too(symbolic, tmp_path, capsys):
    assert main(["run", symbolic, "--sizes", "each", "--size", "batch=2"]) == 0
    assert "y: [2, 3] float32" in capsys.readouterr().out
    assert main(["bench", symbolic, "--sizes", "each", "--size", "batch=7", "--seconds", "0.01"]) == 0
    capsys.readouterr()
    assert main(["compile", symbolic, "--sizes", "each", "-o", str(tmp_path / "x.tw")]) == 2
    assert "as in --shape batch=1. There is no code for all sizes: sizes='each' asks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "input x has sizes that each run brings: give them, as in --size batch=1"),
        (["--size", "length=2"], "--size length: the open dimensions are batch"),
        (["--size", "batch"], "--size batch: expected NAME=SIZE, as in batch=1\n"),
        (["--size", "batch=-1"], "--size batch=-1: a size is not negative"),
        (["--shape", "batch=2", "--size", "batch=2"], "--size batch: no size of the model is open"),
    ],
)
def test_sizes_that_are_missing_or_wrong(symbolic, capsys, arguments, message):
    assert main(["run", symbolic, *arguments]) == 2
    assert message in capsys.readouterr().err
