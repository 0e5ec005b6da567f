# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tools/decoders` checks, on a hand-made decoder; the frameworks' run by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from models.decoder import decoder

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow  # compiles a decoder, 200 tokens of three prompts twice


def test_a_decoder_against_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from zoo_generation.__main__ import checked, first_difference

    model = decoder("padded", dynamic=True, layers=1, hidden=24, intermediate=32, positions=256)
    (tmp_path / "own.script.onnx").write_bytes(model.SerializeToString())
    compiled = tw.compile(model, threads=1)
    data = {}
    for number, (tokens, past) in enumerate(((3, 0), (1, 5))):
        feeds = {"tokens": np.ones((1, tokens), np.int64), "positions": np.arange(past, past + tokens)[None]}
        feeds["attention_mask"] = np.ones((1, past + tokens), np.int64)
        feeds |= {s.name: np.ones((1, 2, past, 6), np.float32) for s in compiled.inputs if "past" in s.name}
        data |= {f"{number}/in/{name}": value for name, value in feeds.items()}
        data |= {f"{number}/out/{name}": value for name, value in compiled(**feeds).items()}
    np.savez(tmp_path / "own.npz", **data)
    prompts = [[1, 2, 3], [4], [5, 6, 7, 8]]
    tokens = tw.Generator(compiled).generate(prompts, max_tokens=200)
    (tmp_path / "own.json").write_text(json.dumps({"prompts": prompts, "tokens": tokens}))
    row = checked(tmp_path / "own.script.onnx")
    assert row["status"] == "equal" and row["error"] == 0.0 and row["exporter"] == "script", row
    assert first_difference([1, 2, 3], [1, 4, 3]) == 1
    tokens[1][7] += 1
    (tmp_path / "own.json").write_text(json.dumps({"prompts": prompts, "tokens": tokens}))
    row = checked(tmp_path / "own.script.onnx")
    assert row["status"] == "tokens differ" and row["together"] == [None, 7, None]
    assert "zoo_generation" in sys.modules
