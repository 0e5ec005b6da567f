"""Artifacts: folders and archives, damage, versions, CPU features, loading without the compiler."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import fake_model
import numpy as np
import pytest

from tilewright.core import config, safetensors
from tilewright.core.cpuinfo import parse_cpuinfo
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime.artifact import Artifact, write_artifact
from tilewright.runtime.cpu import cpu_features
from tilewright.runtime.manifest import Manifest
from tilewright.targets.loading import load as load_model

PACKAGE = str(Path(config.__file__).parents[1])
X, IDS = fake_model.inputs()


@pytest.fixture
def cache(tmp_path):
    with config.cache_dir.override(tmp_path / "cache"):
        yield tmp_path / "cache"


@pytest.mark.parametrize("name", ["copy.tw", "copy.zip", "copy"])
def test_save_and_load(model, tmp_path, cache, name):
    path = model.save(tmp_path / name)
    assert path.is_file() == (path.suffix != "")
    copy = load_model(path)
    np.testing.assert_array_equal(copy(X, IDS)[0], X * fake_model.WEIGHT)
    again = load_model(copy.save(tmp_path / "again.tw"))
    np.testing.assert_array_equal(again(X, IDS)["count"], IDS + 1)


def test_weights_of_an_archive_are_mapped_and_aligned(model, tmp_path):
    arrays = Artifact(model.save(tmp_path / "m.tw")).weights()
    assert not arrays["w_0"].flags.owndata and not arrays["w_0"].flags.writeable
    assert arrays["w_0"].ctypes.data % 64 == 0
    assert set(arrays) == {"w_0", "odd"}


def test_manifest_round_trip():
    assert Manifest.loads(fake_model.MANIFEST.dumps()) == fake_model.MANIFEST


def test_code_that_cannot_be_loaded(tmp_path):
    write_artifact(tmp_path, Manifest((), ()), b"no code", {})
    with pytest.raises(UserError, match="cannot load the model's code"):
        load_model(tmp_path)


def test_a_saved_model_replaces_another(model, tmp_path):
    """The process has loaded the first one's code from the same folder."""
    folder = model.save(tmp_path / "same")
    load_model(folder)
    other = fake_model.build(tmp_path, fake_model.SOURCE.replace("+ 1;", "+ 50;"))
    load_model(other).save(folder)
    assert len(list((folder / "code").iterdir())) == 1
    assert load_model(folder)(X, IDS)["count"][0] == IDS[0] + 99


def edit_manifest(model, folder, **changes):
    path = model.save(folder / "edited") / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path.parent


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 99}, "format version 99, this run-time reads 1 and 2: update tilewright"),
        ({"version": 0}, "format version 0, .*: compile the model again"),
        ({"format": "other"}, "is not a compiled Tilewright model"),
        ({"inputs": [{"name": "x"}]}, "lacks or mistypes a field"),
        ({"runtime_abi": 7}, "built for run-time ABI 7"),
        ({"entry": "nothing"}, "no symbol nothing"),
        (
            {"weights": [{"name": "w_0", "dtype": "f32", "shape": [2, 16]}]},
            "do not match the manifest at w_0: 2x16xf32",
        ),
    ],
)
def test_wrong_manifest(model, tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        load_model(edit_manifest(model, tmp_path, **changes))


def test_code_for_another_cpu(model, tmp_path):
    """It can be saved and looked at; a call says what this CPU lacks."""
    needs = "compiled for future and needs .*: avx99"
    other = load_model(edit_manifest(model, tmp_path, cpu="future", cpu_features=["sse2", "avx99"]))
    assert other.inputs == model.inputs and (other.save(tmp_path / "copy.tw")).is_file()
    assert "not measured: " in other.explain() and "avx99" in other.runs_on
    for call in (other, other.profile):
        with pytest.raises(UserError, match=needs):
            call(X, IDS)


def test_unknown_dtype(model, tmp_path):
    with pytest.raises(UnsupportedError, match="unknown element type 'f7'"):
        load_model(edit_manifest(model, tmp_path, inputs=[{"name": "x", "dtype": "f7", "shape": []}]))


def test_damaged_files(model, tmp_path, cache):
    with pytest.raises(UserError, match="there is no compiled model"):
        load_model(tmp_path / "nothing")
    (tmp_path / "text.tw").write_text("no archive")
    with pytest.raises(UserError, match="neither a folder nor a zip"):
        load_model(tmp_path / "text.tw")
    whole = model.save(tmp_path / "whole.tw").read_bytes()
    (tmp_path / "torn.tw").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=r"torn.tw is a zip archive whose end is missing .* copy or save it again"):
        load_model(tmp_path / "torn.tw")
    folder = model.save(tmp_path / "broken")
    (folder / "weights.safetensors").write_bytes(b"1234")
    with pytest.raises(UserError, match="too short for a safetensors"):
        load_model(folder)
    (folder / "weights.safetensors").unlink()
    with pytest.raises(UserError, match="weights.safetensors is missing"):
        load_model(folder)
    model.save(folder)
    next((folder / "code").iterdir()).write_bytes(b"no code")
    with pytest.raises(UserError, match=r"code/\w+.so is damaged"):
        load_model(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(UserError, match="is not valid JSON"):
        load_model(folder)


def test_damaged_archive(model, tmp_path, cache):
    path = model.save(tmp_path / "torn.tw")
    data = bytearray(path.read_bytes())
    at = data.index(b'"inputs"')
    data[at : at + 8] = b"#" * 8
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"cannot read manifest.json \(Bad CRC-32"):
        load_model(path)


def test_damaged_report(model, tmp_path):
    folder = model.save(tmp_path / "model")
    (folder / "report.json.gz").write_bytes(b"no report")
    with pytest.raises(UserError, match="report.json.gz is damaged"):
        load_model(folder).report_data()


def test_compressed_weights_are_refused(model, tmp_path, cache):
    source = model.save(tmp_path / "m.tw")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(tmp_path / "c.tw", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(UserError, match="must be stored, not compressed"):
        load_model(tmp_path / "c.tw")


def test_safetensors_round_trip(tmp_path):
    arrays = {
        "a": np.arange(7, dtype=np.int8),
        "b": np.arange(6.0).reshape(2, 3).T,
        "scalar": np.array(5, np.float16),
        "empty": np.zeros((0, 4), np.float32),
        "flags": np.array([True, False]),
    }
    with open(tmp_path / "f", "wb") as file:
        safetensors.write(file, arrays)
    back = safetensors.read(tmp_path / "f")
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype
        assert array.size == 0 or back[name].ctypes.data % 64 == 0


def test_safetensors_reads_the_reference_implementation(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(7, dtype=np.int32), "b": np.ones((2, 3), np.float32)}
    library.save_file(arrays, tmp_path / "theirs")
    back = safetensors.read(tmp_path / "theirs")
    np.testing.assert_array_equal(back["a"], arrays["a"])
    with open(tmp_path / "ours", "wb") as file:
        safetensors.write(file, arrays)
    np.testing.assert_array_equal(library.load_file(tmp_path / "ours")["b"], arrays["b"])


def test_safetensors_damage(tmp_path):
    for data, message in [
        (b"\xff" * 16, "its header claims"),
        (b"\2" + b"\0" * 7 + b"[]", "is damaged"),
        (b"\2" + b"\0" * 7 + b"{x", "is damaged"),
        (
            b"\x45" + b"\0" * 7 + b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,8]}}'.ljust(69) + b"0" * 8,
            "8 bytes",
        ),
        (b"\x45" + b"\0" * 7 + b'{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'.ljust(69) + b"0", "damaged"),
    ]:
        (tmp_path / "f").write_bytes(data)
        with pytest.raises(UserError, match=message):
            safetensors.read(tmp_path / "f")


def test_cpu_features():
    info = parse_cpuinfo("processor : 0\nflags : sse2 pni abm avx512_vnni xyz\n\nprocessor : 1\nflags : a\n")
    assert cpu_features.features_of(info) == {"sse2", "sse3", "lzcnt", "avx512vnni"}


def test_runs_without_the_compiler(model, tmp_path):
    """A fresh interpreter in which MLIR, onnx, torch and every compiler module fail to import."""
    path = model.save(tmp_path / "m.tw")
    script = f"""
        import sys
        TARGETS = ("", ".base", ".rules", ".registry", ".loading", ".cpu", ".cpu.target")
        CORE = ("", ".errors", ".config", ".dtypes", ".options", ".hidden_features", ".version", ".cpuinfo", ".plugins")
        CORE += (".safetensors",)
        ALLOWED = {{"tilewright.targets" + part for part in TARGETS}} | {{"tilewright.core" + part for part in CORE}}
        class Block:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("mlir", "onnx", "torch", "onnxruntime", "ml_dtypes"):
                    raise ImportError("blocked: " + name)
                if name.startswith("tilewright.") and name not in ALLOWED and not name.startswith("tilewright.runtime"):
                    raise ImportError("blocked: " + name)
        sys.meta_path.insert(0, Block())
        import numpy as np
        import tilewright as tw
        model = tw.load({str(path)!r})
        out = model(np.ones((37, 16), np.float32), np.zeros(4, np.int64))
        assert out["count"].tolist() == [1, 1, 1, 1]
        try:
            import tilewright.mlir.ir
        except ImportError:
            print("ok")
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    environment = {"PYTHONPATH": PACKAGE, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    libtwrt = config.libtwrt.get()
    if libtwrt:
        environment["TILEWRIGHT_LIBTWRT"] = libtwrt
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout == "ok\n", done.stderr
