# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the sources of MLIR's Python bindings come from: the user's folder, the cache, the errors (no network)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_spec = importlib.util.spec_from_file_location("fetch", ROOT / "tools/cmake/fetch_mlir_sources.py")
assert _spec is not None and _spec.loader is not None
fetch = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fetch)


def llvm_tree(root: Path, version: str | None) -> Path:
    """An unpacked llvm-project with nothing in it but what is looked at."""
    for part in fetch.PARTS:
        (root / part).mkdir(parents=True)
    if version:
        lines = [
            f"set(LLVM_VERSION_{n} {v})" for n, v in zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True)
        ]
        file = root / "cmake/Modules/LLVMVersion.cmake"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(lines))
    return root


@pytest.mark.parametrize("version", ["22.1.8", None])
def test_a_folder_of_the_user_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    monkeypatch.setenv("MLIR_SOURCE_DIR", str(llvm_tree(tmp_path, version)))
    assert fetch.locate("22.1.8") == tmp_path.resolve()


def test_another_patch_level_gets_a_remark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLIR_SOURCE_DIR", str(llvm_tree(tmp_path, "22.1.3")))
    assert fetch.locate("22.1.8") == tmp_path.resolve()
    assert "remark: MLIR_SOURCE_DIR holds LLVM 22.1.3" in capsys.readouterr().err


@pytest.mark.parametrize("version", ["21.1.8", "22.2.0"])
def test_another_version_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("MLIR_SOURCE_DIR", str(llvm_tree(tmp_path, version)))
    with pytest.raises(fetch.FetchError, match=f"holds LLVM {version}, but 22.1.8 is installed"):
        fetch.locate("22.1.8")


def test_a_folder_without_the_sources_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIR_SOURCE_DIR", str(tmp_path))
    with pytest.raises(fetch.FetchError, match="holds no mlir/python"):
        fetch.locate("22.1.8")


def test_the_cache_is_used_without_fetching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLIR_SOURCE_DIR", raising=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(fetch, "fetch", lambda *_: pytest.fail("fetched although cached"))
    tree = llvm_tree(tmp_path / "mlir-src-22.1.8", None)
    assert fetch.locate("22.1.8") == tree


def test_no_debian_mirror_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fetch, "mirrors", lambda: [])
    with pytest.raises(fetch.FetchError, match="MLIR_SOURCE_DIR"):
        fetch.tarball_line(tmp_path, "22.1.8")
