# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code that checks its accesses (TILEWRIGHT_SANITIZE=address) is stopped at the first element that is not its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.core import config

_HERE = Path(__file__).parent
sys.path.append(str(_HERE.parents[1] / "tools"))

from fuzzing import sanitizer  # noqa: E402

#: What the message of each program of overruns.py says: which function did what, and where.
EXPECTED = {
    "input": "wrong reads 64 bytes outside of a buffer",
    "element": "wrong reads 8 bytes outside of a buffer",
    "result": "wrong writes 64 bytes outside of a buffer",
    "local": "wrong reads 64 bytes between the places of the arena or of a kernel's local memory",
    "weight": "wrong reads 64 bytes outside of a buffer",
    "constant": "wrong reads 64 bytes outside of a constant of the code",
    "arena read": "wrong reads 64 bytes between the places of the arena",
    "arena written": "wrong writes 64 bytes between the places of the arena",
    "block": "wrong writes 64 bytes outside of a buffer",
}


@pytest.mark.slow
@pytest.mark.skipif(sanitizer.missing() is not None, reason=str(sanitizer.missing()))
def test_an_overrun_of_one_element_is_caught() -> None:
    environment = {**os.environ, **sanitizer.environment(), "TILEWRIGHT_CACHE": "0"}
    command = [sys.executable, _HERE / "overruns.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() == EXPECTED.keys()
    for name, (right, wrong, report) in found.items():
        assert right == 0 and wrong == sanitizer.EXIT_CODE, name
        assert (sanitizer.message(report) or "").startswith(EXPECTED[name]), f"{name}: {report}"


def test_such_code_is_refused_where_nothing_checks_it() -> None:
    kernel = "tile.kernel @k(%x: memref<4xf32>) {\n  %c = arith.constant 0 : index\n"
    kernel += "  %t = arith.constant dense<1.0> : !tile.tile<4xf32>\n"
    kernel += "  tile.store %t, %x[%c] : !tile.tile<4xf32>, memref<4xf32>\n  tile.return\n}\n"
    with config.sanitize.override("address"), pytest.raises(tw.UserError, match="preloads the run-time of clang's"):
        tw.kernel(kernel)()
    (plain,) = tw.kernel(kernel)()
    assert np.array_equal(plain, np.ones(4, np.float32))


def test_the_name_of_another_sanitizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_SANITIZE", "thread")
    with pytest.raises(tw.UserError, match="the only sanitizer is address"):
        config.sanitize.get()
