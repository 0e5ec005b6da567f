# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every labelled constraint of a dialect is described, upheld in C++ and tested."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIALECTS = sorted(path.name for path in (ROOT / "dialects").iterdir() if (path / "CMakeLists.txt").exists())
LABEL = re.compile(r"\b[a-z_]+_c[0-9]+\b")
# Upheld by what ODS generates from a trait or interface: no verifier of our own to hold a comment.
BY_TRAIT = {"splat_c1"}


def labels(files: list[Path], pattern: str) -> set[str]:
    """Labels in what `pattern` finds in the files."""
    texts = [match for file in files for match in re.findall(pattern, file.read_text())]
    return {label for text in texts for label in LABEL.findall(text)}


def described(dialect: str) -> set[str]:
    """Labels in the descriptions of a dialect."""
    return labels(sorted((ROOT / "dialects" / dialect).glob("*.td")), r"- `[a-z_0-9]+`:")


def checked(dialect: str) -> set[str]:
    """Labels in comments of its C++."""
    return labels(sorted((ROOT / "dialects" / dialect).glob("*.cpp")), r"//[^\n]*")


def refused(dialect: str) -> set[str]:
    """Labels that name a test of what is refused."""
    return {
        name
        for file in (Path(__file__).parent / dialect).glob("*-invalid.mlir")
        for name in re.findall(r"(?:@|sym_name = \")([a-z_]+_c[0-9]+)[a-z_]*\b", file.read_text())
    }


@pytest.mark.parametrize(("dialect", "label"), [(d, label) for d in DIALECTS for label in sorted(described(d))])
def test_constraint(dialect: str, label: str) -> None:
    assert label in checked(dialect) | BY_TRAIT, f"{label} stands in no comment of dialects/{dialect}/*.cpp"
    assert label in refused(dialect), f"no test of that name in test/dialects/{dialect}/*-invalid.mlir"


@pytest.mark.parametrize(("dialect", "least"), [("Tile", 70), ("SparseTile", 30), ("Fractal", 50), ("CoreMesh", 25)])
def test_no_unknown_labels(dialect: str, least: int) -> None:
    assert len(described(dialect)) > least
    assert checked(dialect) <= described(dialect)
    assert refused(dialect) <= described(dialect)


def test_every_dialect_is_looked_at() -> None:
    assert DIALECTS == ["CoreMesh", "Fractal", "SparseTile", "Tile"]
