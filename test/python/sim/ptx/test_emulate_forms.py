# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of instructions: what ptxas accepts, the emulator loads (those that our code and LLVM write, and their kin)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tilewright.sim import ptx as emulate

FORMS = (Path(__file__).parent / "Inputs" / "forms.ptx").read_text()


def test_every_form_is_known() -> None:
    """One kernel of all forms: it loads, and each instruction is one of the text's lines."""
    kernel = emulate.load(FORMS).kernel("forms")
    assert len(kernel.kernel.code) == sum(
        line.endswith(";") and not line.startswith(".") for line in FORMS.splitlines()
    )


@pytest.mark.skipif(not shutil.which("ptxas"), reason="ptxas is not installed")
def test_ptxas_accepts_every_form(tmp_path: Path) -> None:
    """So that no form is tested that does not exist."""
    (tmp_path / "forms.ptx").write_text(FORMS)
    command = ["ptxas", "-arch=sm_90a", "forms.ptx", "-o", "forms.cubin"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
