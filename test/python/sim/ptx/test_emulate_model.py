# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilewright emulate` of a compiled model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import models
import tilewright as tw
from tilewright import cli
from tilewright.runtime.gpu import gpu_code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("emulated")
    product = models.build("matmul", m=16, n=24, k=32, dtype="float32")
    return str(tw.compile(product, target="cuda:sm_80").save(place / "product"))


def test_a_model_runs_whole(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)
    np.save(tmp_path / "a.npy", a)
    command = ["emulate", folder, "--args", str(tmp_path / "a.npy"), "zeros:f32:32x24", "--seeds", "2", "--trace"]
    assert cli.main([*command, "--save", f"0={tmp_path / 'c.npy'}"]) == 0
    told = capsys.readouterr().out
    assert "no rule was broken" in told and "output 0, c: float32[16, 24]" in told
    assert told.count("warp instructions") == 1, "one run is counted"
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.zeros((16, 24), np.float32))


def test_a_broken_rule_is_told(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel that leaves its store out: the artifact's code and its hash in the manifest are of the broken one."""
    product = models.build("matmul", m=16, n=24, k=32, dtype="float32")
    whole = tw.compile(product, target="cuda:sm_80").save(tmp_path / "broken")
    (code,) = Path(whole, "code").glob("*.ptx")
    code.write_text(re.sub(r"st\.global\S+[^;]*;", ";", code.read_text()))
    manifest = Path(whole, "manifest.json")
    files = {f"code/{file.name}": file.read_bytes() for file in Path(whole, "code").iterdir()}
    known = json.loads(manifest.read_text())
    manifest.write_text(manifest.read_text().replace(known["code_sha256"], gpu_code._hash(files)))
    assert cli.main(["emulate", str(whole)]) == 1
    assert "output c" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--grid", "3"], "--grid is for one kernel of a PTX file"),
        (["--args", "zeros:i32:16x32"], "input a is of f32"),
        (["--args", "3"], "an input is a file, or zeros:TYPE:SIZES"),
        (["--args", "zeros:f32:16x31"], r"must have shape \[16, 32\]"),
        (["--args", *["zeros:f32:1"] * 3], "3 inputs are given, the model takes 2"),
        (["--save", "1=x.npy"], "with the number of an output"),
    ],
)
def test_mistakes_are_named(folder: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["emulate", folder, *more]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_what_is_no_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(bytes(range(256)))
    assert cli.main(["emulate", str(tmp_path / "x")]) == 2
    assert "neither PTX, which is text, nor a compiled model" in capsys.readouterr().err
