# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR at the borders of phases leads `tile-opt`, in a fresh process, to the code of `tilewright.compile`: all bytes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import models
from tilewright.core.errors import InternalError
from tilewright.tools.replay import BORDERS, compiled, differences, replayed

#: A machine that no other process knows by name: fewer cores and a smaller L2 cache than its like.
TOML = Path(__file__).parents[1] / "python/targets/Inputs/small.toml"
TARGETS = ("cpu", "cpu:x86-64-v3", f"cpu:{TOML}", "cuda:sm_80", "cuda:sm_90a")
#: An encoder with a mask, convolutions, a recurrence, a decode step with a cache.
NAMES = ("bert_tiny", "mobilenet_tiny", "lstm_tiny", "t5_decoder_tiny")
#: Few that meet most: each target and each model once, from the borders that the most passes follow.
SAMPLE = {
    ("bert_tiny", f"cpu:{TOML}"): ("import", "plan"),
    ("mobilenet_tiny", "cpu:x86-64-v3"): ("normalize", "schedule"),
    ("lstm_tiny", "cpu"): ("tile",),
    ("lstm_tiny", "cuda:sm_80"): ("import", "lower"),
    ("t5_decoder_tiny", "cuda:sm_90a"): ("normalize", "tile"),
}
LARGE = ("minilm", "resnet50", "lstm4", "gpt_decode", "fixed_cache")


def check(name: str, target: str, borders: tuple[str, ...], folder: Path) -> None:
    """Compile once, and go on from each border."""
    expected = compiled(str(models.path(name)), target, folder / "ir")
    assert expected
    for border in borders:
        found = replayed(folder / "ir", border, target.partition(":")[0], folder / border)
        assert not differences(expected, found), f"other code from the border after {border}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), SAMPLE, ids=[f"{n}-{Path(t).stem}" for n, t in SAMPLE])
def test_sample(name: str, target: str, tmp_path: Path) -> None:
    check(name, target, SAMPLE[name, target], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=[Path(t).stem for t in TARGETS])
@pytest.mark.parametrize("name", (*NAMES, *LARGE))
def test_all_borders(name: str, target: str, tmp_path: Path) -> None:
    check(name, target, BORDERS, tmp_path)


def test_other_code_is_seen(tmp_path: Path) -> None:
    """The comparison finds a plan for another machine, and IR that cannot go on is an error."""
    expected = compiled(str(models.path("mlp_tiny")), "cpu:x86-64-v3", tmp_path / "ir")
    file = tmp_path / "ir/1-normalize.mlir"
    text = file.read_text()
    assert "vector_bits = 256" in text
    file.write_text(text.replace("vector_bits = 256", "vector_bits = 128"))
    found = replayed(tmp_path / "ir", "normalize", "cpu", tmp_path / "out")
    assert differences(expected, found)
    file.write_text(re.sub(r"tile\.device = #tile\.device<[^>]*>, ", "", text))
    with pytest.raises(InternalError, match="names none in `tile.device`"):
        replayed(tmp_path / "ir", "normalize", "cpu", tmp_path / "none")
