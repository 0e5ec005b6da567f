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
from decision_edit import ARTIFACT, CPU, GPU, Edit
from decision_edits_cpu import CPU_EDITS
from decision_edits_cuda import GPU_EDITS

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
import decisions

EDITS = (*CPU_EDITS, *GPU_EDITS)
TARGETS = {"cpu": CPU, "cuda": GPU}
DECLARED = {(d.name, TARGETS[target]) for d in decisions.read() if not d.informational for target in d.targets}


def test_each_declared_attribute_has_an_edit() -> None:
    edited = {(edit.name, edit.target) for edit in EDITS}
    assert edited == DECLARED, "an attribute without an edit for a target that it decides for, or one that is none"
    readers = {reader for d in decisions.read() for reader in d.readers}
    print(
        f"{len(decisions.read())} attributes, {len({name for name, _ in DECLARED})} of them for code, "
        f"{len(readers)} readers, {len(TARGETS)} targets; {len(edited)} of {len(DECLARED)} pairs have an edit"
    )


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit.name}-{edit.target.partition(':')[0]}")
def test_an_edit_changes_the_code(edit: Edit) -> None:
    given = decision_borders.before(edit.program, edit.target, edit.reader)
    edited = re.sub(edit.old, edit.new, given, count=0 if edit.every else 1)
    assert edited != given, f"nothing to edit before {edit.reader}"
    if edit.refused:
        _make(edit, given)
        with pytest.raises(Exception, match=edit.refused):
            _make(edit, edited)
    else:
        same = _make(edit, given) == _make(edit, edited)
        assert not same, "the edit changes nothing"


def _make(edit: Edit, text: str) -> object:
    if edit.reader == ARTIFACT:
        return decision_borders.artifact(text, edit.program, edit.target)
    code = decision_borders.code(text, edit.target, edit.reader)
    return re.sub(rf"(?m)^tile\.{edit.name}\b.*$", "", code)  # what stands on a function as edited is no change
