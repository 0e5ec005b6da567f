# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What configuring says where LLVM is missing, of another version, or the compiler is not clang."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def configure(tmp_path: Path, *options: str) -> str:
    """Configure into an empty folder, expect a failure, and return the lines that say why."""
    cmake = Path(sys.executable).with_name("cmake")
    if not cmake.exists():
        pytest.skip("cmake is not in this environment")
    command = [cmake, "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", *options]
    path = os.pathsep.join([str(cmake.parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment)
    assert done.returncode != 0
    return done.stderr


def fake_mlir(tmp_path: Path, version: str) -> str:
    """A package MLIR that claims a version; returns the option that makes CMake take it."""
    folder = tmp_path / "mlir"
    folder.mkdir()
    lines = [f'set(LLVM_VERSION "{version}.1.0")', f"set(LLVM_VERSION_MAJOR {version})"]
    (folder / "MLIRConfig.cmake").write_text("\n".join(lines))
    return f"-DMLIR_DIR={folder}"


def one_line(message: str, start: str) -> str:
    """The line of a message that has `start` in it."""
    lines = [line for line in message.splitlines() if start in line]
    assert len(lines) == 1, message
    return lines[0]


def test_another_version_of_llvm_is_named_with_what_to_install(tmp_path: Path) -> None:
    line = one_line(configure(tmp_path, fake_mlir(tmp_path, "21")), "wrong version")
    assert "21.1.0" in line and "22 is needed" in line and "apt-get install libmlir-22-dev" in line


def test_an_llvm_without_shared_libraries_is_refused(tmp_path: Path) -> None:
    line = one_line(configure(tmp_path, fake_mlir(tmp_path, "22")), "without the shared library")
    assert "apt-get install libmlir-22-dev" in line


def test_another_compiler_is_refused(tmp_path: Path) -> None:
    line = one_line(configure(tmp_path, "-DCMAKE_CXX_COMPILER=g++", "-DCMAKE_C_COMPILER=gcc"), "is not clang")
    assert "clang-22" in line
