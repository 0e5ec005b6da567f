"""Builds libtwrt with plain g++, with and without sanitizers, and runs twrt_test.cpp against it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "lib" / "Runtime"
COMPILER = shutil.which("g++") or shutil.which("clang++")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")


def build_and_run(folder: Path, flags: list[str]) -> subprocess.CompletedProcess:
    program = folder / "twrt_test"
    sources = [str(path) for path in sorted(SOURCE.glob("*.cpp"))] + [str(HERE / "twrt_test.cpp")]
    command = [COMPILER, "-std=c++17", "-g", *flags, f"-I{SOURCE}", *sources, "-o", str(program), "-lpthread"]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode and "cannot find -l" in built.stderr:
        pytest.skip(f"sanitizer library is not installed: {flags}")
    assert built.returncode == 0, built.stderr
    # What cannot be allocated is null, as without sanitizers.
    options = {f"{kind}_OPTIONS": "allocator_may_return_null=1" for kind in ("ASAN", "TSAN")}
    environment = {**os.environ, **options}
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=300, env=environment)


def test_runs(tmp_path):
    done = build_and_run(tmp_path, ["-O2", "-Wall", "-Wextra", "-Werror"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "ok"


def test_no_data_race(tmp_path):
    done = build_and_run(tmp_path, ["-O1", "-fsanitize=thread"])
    assert "WARNING: ThreadSanitizer" not in done.stderr, done.stderr[:4000]
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_and_undefined_behaviour(tmp_path):
    done = build_and_run(tmp_path, ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"])
    assert done.returncode == 0, done.stdout + done.stderr[:4000]
