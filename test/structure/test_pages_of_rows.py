# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages that say which test shows what: the tests are there, and no row is forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "python" / "tilewright" / "rationale"
#: `file.py::test_name`, as pages name a test.
NAMED = re.compile(r"`(?:[\w/]+/)?(\w+\.py)::(test_\w+)`")


def named() -> list[tuple[str, str, str]]:
    """(page, file, test) of all pages of reasons."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        found += [(page.name, file, test) for file, test in NAMED.findall(page.read_text())]
    return found


def test_named_tests_exist() -> None:
    """In one of the files of that name."""
    defined = {
        (file.name, test)
        for file in ROOT.joinpath("test").rglob("test_*.py")
        for test in re.findall(r"^ *def (test_\w+)", file.read_text(), flags=re.M)
    }
    assert len(named()) > 100
    assert [row for row in named() if row[1:] not in defined] == []


@pytest.mark.parametrize(
    ("page", "row", "count"),
    [("mesh_validation.md", r"^\d+\. ", 30), ("mesh_rows.md", r"^- \*\*", 26), ("sparsity_rows.md", r"^\| \*\*", 27)],
)
def test_every_row_names_a_test_or_why_not(page: str, row: str, count: int) -> None:
    text = (PAGES / page).read_text().partition("## Notes")[0]
    rows = re.split(row, text, flags=re.M)[1:]
    assert len(rows) == count
    assert [one for one in rows if not NAMED.search(" ".join(one.split())) and not re.search(r"\bnone\b", one)] == []
