"""tw.compile: the driver, the cache, targets, options, errors."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import lowered_model
import numpy as np
import pytest

import tilewright as tw
from tilewright.core import cache, config
from tilewright.core.errors import InternalError, TilewrightError, UserError

X = np.arange(8, dtype=np.float32)
Y = X + lowered_model.WEIGHT


def test_compiles_and_runs(compiled):
    model = compiled()
    np.testing.assert_array_equal(model(X)["y"], Y)
    assert [str(spec) for spec in (*model.inputs, *model.outputs)] == ["x: 8xf32", "y: 8xf32"]
    assert [(k.name, k.scratch_bytes) for k in model.kernels] == [("add", 64)]
    assert [name for name, tasks, _ in model.profile(X)] == ["add"]
    report = model.report_data()
    assert [phase["name"] for phase in report["phases"]] == ["import", "normalize", "lower", "emit"]
    assert "func.func" in report["phases"][0]["ir"] and "func.func" not in report["phases"][2]["ir"]


def test_second_time_comes_from_the_cache(compiled, monkeypatch):
    first = compiled()
    from tilewright.compiler import driver

    monkeypatch.setattr(driver, "build", lambda *_: pytest.fail("compiled again"))
    again = compiled(threads=1)
    assert again.path == first.path and again.threads == 1
    np.testing.assert_array_equal(again(X)[0], Y)


@pytest.mark.parametrize(
    "change",
    [
        {"weights": {"w_0": lowered_model.WEIGHT + 1}},
        {"target": "cpu:x86-64-v3"},
        {"opt_level": 1},
    ],
)
def test_the_key_covers(compiled, change):
    assert compiled().path != compiled(**change).path


def test_the_key_covers_user_passes(compiled, tmp_path):
    from tilewright.passes import registry

    first = compiled().path
    source = tmp_path / "user_pass.py"
    text = '''
from dataclasses import dataclass
from typing import ClassVar
from tilewright.passes import Pass, register

@register
@dataclass(frozen=True)
class Nothing(Pass):
    """Do nothing.

    before: a
    after: a
    """
    name: ClassVar[str] = "user-nothing-for-cache-test"
    def run(self, op):
        pass
'''
    source.write_text(text)
    registry.load_file(source)
    try:
        second = compiled().path
        source.write_text(text + "# changed\n")
        assert len({first, second, compiled().path}) == 3
    finally:
        registry._passes.pop("user-nothing-for-cache-test")


@pytest.mark.parametrize("file", ["manifest.json", "code/*.so", "weights.safetensors"])
def test_a_damaged_entry_is_built_anew(compiled, file):
    (path,) = compiled().path.glob(file)
    start = path.read_bytes()[:10]
    path.unlink()  # the file of the loaded model lives on
    path.write_bytes(start)
    np.testing.assert_array_equal(compiled()(X)[0], Y)
    assert path.stat().st_size > 10


def test_a_damaged_kernel_is_built_anew(compiled, cache_dir):
    compiled()
    cache.remove(cache_dir / "compiled")
    kernels = list((cache_dir / "kernels").iterdir())
    assert len(kernels) == 2
    for path in kernels:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    np.testing.assert_array_equal(compiled()(X)[0], Y)


def test_kernels_are_shared_between_models(compiled, cache_dir, monkeypatch):
    compiled()
    from tilewright.core.workers import WorkerPool

    jobs = []
    run = WorkerPool.compile
    monkeypatch.setattr(WorkerPool, "compile", lambda pool, some, *more: jobs.extend(some) or run(pool, some, *more))
    compiled(weights={"w_0": lowered_model.WEIGHT * 2})
    assert jobs == []


def test_without_cache(compiled, cache_dir):
    with config.cache.override(False):
        model = compiled()
    np.testing.assert_array_equal(model(X)[0], Y)
    assert not cache_dir.exists()
    folder = model.path
    assert folder.is_dir()
    del model
    assert not folder.exists()


def test_the_cache_keeps_to_its_size(compiled):
    first = compiled().path
    with config.cache_size.override(1):
        second = compiled(opt_level=0).path
    assert second.is_dir() and not first.exists()
    assert [entry.path for entry in cache.entries()] == [second]
    count, size = cache.clear()
    assert count == 1 and size > 1000 and cache.entries() == []


def test_stop_after(compiled):
    assert "func.func private @main" in compiled(stop_after="import")
    lowered = compiled(stop_after="lower")
    assert isinstance(lowered, str) and "llvm.func @tw_main" in lowered and "func.func" not in lowered
    with pytest.raises(UserError, match="no phase 'plan'"):
        compiled(stop_after="plan")
    with pytest.raises(UserError, match="the phases are import, normalize, plan"):
        compiled(stop_after="planning")


def test_the_reference_has_one_phase(compiled):
    assert "@main" in compiled(target="reference", stop_after="import")
    with pytest.raises(UserError, match="stop_after can only be 'import'"):
        compiled(target="reference", stop_after="normalize")


def test_dump_ir(compiled, tmp_path):
    compiled()
    compiled(dump_ir=tmp_path / "ir")
    *dumps, weights = sorted(p.name for p in (tmp_path / "ir").iterdir())
    assert dumps == ["0-import.mlir", "1-normalize.mlir", "5-lower.mlir", "6-emit"]
    assert re.fullmatch(r"weights-[0-9a-f]{16}\.safetensors", weights)
    assert sorted(p.name for p in (tmp_path / "ir" / "6-emit").iterdir()) == ["add.mlir", "tw_main.mlir"]
    assert "llvm.func @tw_main" in (tmp_path / "ir" / "5-lower.mlir").read_text()


def test_reference_target():
    model = tw.compile(lowered_model.TEXT, target="reference", weights={"w_0": lowered_model.WEIGHT})
    np.testing.assert_array_equal(model(X)["y"], Y)
    np.testing.assert_array_equal(model(x=X)[0], Y)
    out = np.zeros(8, np.float32)
    assert model(X, out=out)[0] is out and out[1] == Y[1]
    with pytest.raises(UserError, match="cannot be saved"):
        model.save("x.tw")
    with pytest.raises(UserError, match="dtype float32, got float64"):
        model(X.astype(np.float64))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("nothing.onnx", {}, "there is no model file nothing.onnx"),
        (17, {}, "cannot compile an object of type int"),
        (b"\xff\xff", {}, "not an ONNX model"),
        ("module {\n garbage }", {}, "is not a valid MLIR module"),
        ("module {\n}", {}, "has no func.func @main"),
        ("func.func @main(%x: tensor<*xf32>) {\n return }", {}, r"input 0 of @main is tensor<\*xf32>"),
        (lowered_model.TEXT, {"target": "gpu"}, "unknown target 'gpu'"),
        (lowered_model.TEXT, {"target": "cpu:486"}, "LLVM knows no x86 CPU named '486'"),
        (lowered_model.TEXT, {"shapes": {"batch": 1}}, "shapes= is for ONNX models"),
        (lowered_model.TEXT, {"shapes": [1]}, "shapes must map names to sizes"),
        (lowered_model.TEXT, {"shapes": {"batch": "one"}}, "shapes must map names to sizes"),
        (lowered_model.TEXT, {"opt_level": 9}, "opt_level must be 0, 1, 2 or 3, got 9"),
        (lowered_model.TEXT, {"pipeline": "canonicalize"}, "pipeline must be a .* got a str"),
        (lowered_model.TEXT, {"weights": [1]}, "weights= takes arrays by name"),
    ],
)
def test_user_errors(model, options, message):
    with pytest.raises(UserError, match=message):
        tw.compile(model, **options)


def test_example_inputs_are_for_torch_modules():
    with pytest.raises(UserError, match=r"example_inputs= is for torch modules, not for a str"):
        tw.compile("model.onnx", example_inputs=(1,))


def test_missing_weights(compiled):
    with pytest.raises(InternalError, match="needs the weight w_0"):
        compiled(weights={})


@pytest.mark.parametrize("array", [np.zeros(7, np.float32), np.zeros(8), [1, 2]])
def test_wrong_weights(compiled, array):
    with pytest.raises(UserError, match=r"weights= gives w_0: .*, but the module declares w_0: 8xf32"):
        compiled(weights={"w_0": array})


def test_a_pipeline_with_an_unknown_pass(compiled):
    from tilewright.passes.pipeline import PassSpec, Phase, Pipeline

    bad = Pipeline("bad", [Phase("lower", [PassSpec("no-such-pass", reason="test")])])
    with pytest.raises(TilewrightError, match="not a pipeline"):
        compiled(pipeline=bad)


def test_loading_from_the_cache_imports_no_compiler(compiled, cache_dir, tmp_path):
    """In a fresh process: the second compilation of an .mlir file loads neither MLIR nor onnx."""
    script = tmp_path / "again.py"
    (tmp_path / "model.mlir").write_text(lowered_model.TEXT)
    script.write_text(
        "import sys, numpy as np, tilewright as tw\n"
        "from pathlib import Path\n"
        "from tilewright.compiler import driver\n"
        "model = tw.load(sys.argv[1])\n"
        "key = __import__('tilewright.core.cache').core.cache.compiler_id()\n"
        "loaded = [n for n in sys.modules if n.split('.')[:2] in (['tilewright', 'mlir'], ['onnx'])]\n"
        "print(loaded)\n"
    )
    command = [sys.executable, str(script), str(compiled().path)]
    environment = {"PYTHONPATH": str(Path(tw.__file__).parents[1]), "TILEWRIGHT_CACHE_DIR": str(cache_dir)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout == "[]\n", done.stderr


def test_import_is_fast():
    code = """if True:
        import sys
        old = set(sys.modules)
        import tilewright
        print(len(set(sys.modules) - old), "numpy" in sys.modules)
    """
    environment = {"PYTHONPATH": str(Path(tw.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    count, numpy = re.fullmatch(r"(\d+) (\w+)\n", done.stdout).groups()
    assert int(count) < 60 and numpy == "False"
