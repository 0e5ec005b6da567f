# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every labelled constraint of the dialect is described, upheld in C++ and tested."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "dialects" / "Tile"
LABEL = re.compile(r"\b[a-z_]+_c[0-9]+\b")


def labels(files: list[Path], pattern: str) -> set[str]:
    """Labels in what `pattern` finds in the files."""
    texts = [match for file in files for match in re.findall(pattern, file.read_text())]
    return {label for text in texts for label in LABEL.findall(text)}


DESCRIBED = labels(sorted(SOURCES.glob("*.td")), r"- `[a-z_0-9]+`:")
CHECKED = labels(sorted(SOURCES.glob("*.cpp")), r"//[^\n]*")
TESTED = {
    name
    for file in Path(__file__).parent.glob("*-invalid.mlir")
    for name in re.findall(r"(?:@|sym_name = \")([a-z_]+_c[0-9]+)[a-z_]*\b", file.read_text())
}
# Upheld by what ODS generates from a trait or interface: no verifier of our own to hold a comment.
BY_TRAIT = {"splat_c1"}


@pytest.mark.parametrize("label", sorted(DESCRIBED))
def test_constraint(label: str) -> None:
    assert label in CHECKED | BY_TRAIT, f"{label} stands in no comment of dialects/Tile/*.cpp"
    assert label in TESTED, f"no test of that name in {Path(__file__).parent}/*-invalid.mlir"


def test_no_unknown_labels() -> None:
    assert len(DESCRIBED) > 70
    assert CHECKED <= DESCRIBED
    assert TESTED <= DESCRIBED
