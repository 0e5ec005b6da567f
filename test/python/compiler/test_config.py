"""Settings and errors: the small modules that everything uses."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import tilewright
from tilewright.core import config
from tilewright.core.errors import InternalError, TilewrightError, UnsupportedError, UserError


def test_environment_and_override(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_THREADS", "3")
    assert config.threads.get() == 3
    with config.threads.override(0):
        assert config.threads.get() == 0
        with config.threads.override(5):
            assert config.threads.get() == 5
        assert config.threads.get() == 0
    monkeypatch.delenv("TILEWRIGHT_THREADS")
    assert config.threads.get() == 0


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (config.cache, "off", False),
        (config.cache, "YES", True),
        (config.cache_size, "2G", 2 << 30),
        (config.cache_size, "512mb", 512 << 20),
        (config.cache_size, "7", 7),
        (config.linker, "ld.gold", "ld.gold"),
    ],
)
def test_values(monkeypatch, setting, text, value):
    monkeypatch.setenv(setting.name, text)
    assert setting.get() == value


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (config.cache, "maybe"),
        (config.threads, "-1"),
        (config.threads, "two"),
        (config.cache_size, "big"),
        (config.cache_size, "G"),
    ],
)
def test_bad_values(monkeypatch, setting, text):
    monkeypatch.setenv(setting.name, text)
    with pytest.raises(UserError, match=f"environment variable {setting.name}='{text}'"):
        setting.get()


def test_default_cache_dir(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert config._default_cache_dir() == Path("/caches/tilewright")
    assert config.cache_dir._parse("") == Path("/caches/tilewright")  # not the current folder


def test_only_config_reads_our_variables():
    """Every TILEWRIGHT_* name in the package is a setting, and has a line of help."""
    known = {setting.name for setting in config.all_settings()}
    assert all(setting.help for setting in config.all_settings())
    for path in Path(tilewright.__file__).parent.rglob("*.py"):
        if "mlir" in path.relative_to(Path(tilewright.__file__).parent).parts:
            continue
        text = path.read_text()
        assert set(re.findall(r"TILEWRIGHT_[A-Z_]+\b", text.replace("TILEWRIGHT_*", ""))) <= known, path
        if path.name != "config.py":
            assert not re.search(r"environ(\.get\(|\[)[\"']TILEWRIGHT", text), path


def test_error_text():
    error = InternalError(
        "it broke", location="node_7", ir="\n".join(f"line {i}" for i in range(50)), command="tile-opt x"
    )
    text = str(error)
    assert text.startswith("it broke\n  at: node_7\n  IR:\n    line 0")
    assert "(10 more lines)" in text and text.endswith("reproduce: tile-opt x")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InternalError and str(again) == text


def test_error_kinds():
    assert [e("x").kind for e in (UserError, UnsupportedError, InternalError)] == [
        "user error",
        "unsupported",
        "internal error",
    ]
    assert all(issubclass(e, TilewrightError) for e in (UserError, UnsupportedError, InternalError))
    assert issubclass(UserError, ValueError)
