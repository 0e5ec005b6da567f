# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tools/conformance -k` takes, and what it says of what it does not."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def choice(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "test/conformance"))
    from onnx_suite.names import Choice

    return Choice


@pytest.mark.parametrize(
    ("text", "taken", "left"),
    [
        ("", ["test_relu", "anything"], []),
        ("relu", ["test_relu", "test_prelu_1"], ["test_selu"]),
        ("relu,top_k", ["test_relu", "test_top_k"], ["test_add"]),
        ("relu or top_k", ["test_relu", "test_top_k"], ["test_add"]),
        ("relu and not prelu", ["test_relu"], ["test_prelu_1", "test_add"]),
        ("not relu", ["test_add"], ["test_relu"]),
        ("soft and max or cast", ["test_softmax", "test_cast"], ["test_softplus", "test_max"]),
        ("sort,for", ["test_sort", "test_for"], ["test_add"]),
    ],
)
def test_names(choice: Any, text: str, taken: list[str], left: list[str]) -> None:
    found = choice.parse(text)
    assert [name for name in (*taken, *left) if found.takes(name)] == taken


@pytest.mark.parametrize("text", ["(relu or add)", "relu add", "relu and", "not"])
def test_what_is_no_choice(text: str) -> None:
    run = subprocess.run([ROOT / "tools/conformance", "-k", text], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 2 and "is no part of a name" in run.stderr


def test_a_choice_of_nothing_is_an_error() -> None:
    command = [ROOT / "tools/conformance", "--suite", "simple", "-k", "no_such_test"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 1 and "no test of suite simple has a name with -k 'no_such_test'" in run.stderr
