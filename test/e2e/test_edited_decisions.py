# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attributes edited by hand in the IR that a pass reads change the code, on each target that reads them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import decision_borders
import pytest
from decision_edits import CPU, EDITS, GPU, UNEDITED, Edit

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import decisions

TARGETS = {"cpu": CPU, "cuda": GPU}
DECLARED = {(d.name, TARGETS[target]) for d in decisions.read() if not d.informational for target in d.targets}


def test_each_declared_attribute_has_an_edit() -> None:
    """Or stands in the list of those that have none yet, which may only become shorter."""
    edited = {(edit.name, edit.target) for edit in EDITS}
    waiting = {(name, target) for target, names in UNEDITED.items() for name in names.split()}
    assert edited | waiting == DECLARED and not edited & waiting
    readers = {reader for d in decisions.read() for reader in d.readers}
    print(
        f"{len(decisions.read())} attributes, {len({name for name, _ in DECLARED})} of them for code, "
        f"{len(readers)} readers, {len(TARGETS)} targets; {len(edited)} of {len(DECLARED)} pairs have an edit"
    )


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit.name}-{edit.target.partition(':')[0]}")
def test_an_edit_changes_the_code(edit: Edit) -> None:
    given = decision_borders.before(edit.program, edit.target, edit.reader)
    edited = re.sub(edit.old, edit.new, given, count=1)
    assert edited != given, f"nothing to edit before {edit.reader}"
    if edit.refused:
        _make(edit, given)
        with pytest.raises(Exception, match=edit.refused):
            _make(edit, edited)
    else:
        assert _make(edit, given) != _make(edit, edited)


def _make(edit: Edit, text: str) -> str:
    if edit.alone:
        return decision_borders.after(text, edit.alone)
    return decision_borders.code(text, edit.target, edit.reader)
