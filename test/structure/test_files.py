# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files stand where they are looked for: a pass in the file of its name, with a test of its name; folders are small."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

from imports import ROOT, sources

#: Python files of one folder, at most.
MOST_FILES = 25
COLUMNS = 120
#: Folders of files that a tool writes, and nobody breaks lines in.
WRITTEN = {
    "tools/bench/results": "measurements, as tools/bench stores them",
    "test/python/sim/ptx/ptx": "assembly, as LLVM prints it",
}
NAMED = re.compile(r'^    name: ClassVar\[str\] = "(tile-[\w-]+)"', re.M)


def tracked(*suffixes: str) -> list[Path]:
    """Files of the project that end so, relative to its root: those that git knows, or would take."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [Path(name) for name in names if name.endswith(suffixes) and (ROOT / name).is_file()]


def python_passes() -> dict[str, Path]:
    """File of each pass in Python, by its name."""
    return {name: path for path in sources().values() for name in NAMED.findall(path.read_text())}


def cpp_passes() -> dict[str, Path]:
    """ODS file of each pass in C++, by its name."""
    files = [ROOT / name for name in tracked(".td") if name.parts[0] == "lib"]
    return {name: file for file in files for name in re.findall(r': Pass<"([\w-]+)"', file.read_text())}


def test_a_python_pass_stands_in_the_file_of_its_name():
    passes = python_passes()
    assert len(passes) > 30
    assert {n: str(f) for n, f in passes.items() if f.stem != n.removeprefix("tile-").replace("-", "_")} == {}


def test_a_cpp_pass_stands_in_the_file_of_its_name():
    """`tile-x-y` in XY.cpp beside its Passes.td, however abbreviations are written (ToGPU)."""
    passes = cpp_passes()
    assert len(passes) > 50
    lost = {}
    for name, table in passes.items():
        beside = {file.stem.lower() for file in table.parent.glob("*.cpp")}
        if name.removeprefix("tile-").replace("-", "") not in beside:
            lost[name] = str(table.parent)
    assert lost == {}


def test_a_pass_has_a_lit_test_of_its_name():
    tests = {file.stem for file in tracked(".mlir") if file.parts[0] == "test"}
    assert [name for name in (*python_passes(), *cpp_passes()) if name not in tests] == []


def test_folders_are_small():
    counts = Counter(path.parent for path in sources().values())
    assert {str(folder): count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_every_package_says_what_is_in_it():
    """Its README.md, or the docstring of its `__init__.py` where it has one."""
    silent = [
        str(path.parent)
        for path in sources().values()
        if path.name == "__init__.py"
        if not (path.parent / "README.md").is_file() and '"""' not in path.read_text()
    ]
    assert silent == []


def test_lines_fit():
    """In every file that people write, also where a linter was told to look away."""
    long = [
        f"{file}:{number}"
        for file in tracked("")
        if not any(folder in WRITTEN for folder in map(str, file.parents))
        for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > COLUMNS
    ]
    assert long == []
