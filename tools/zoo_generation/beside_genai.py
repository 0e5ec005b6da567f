# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens per second beside ONNX Runtime GenAI: `tools/decoders --genai PYTHON FOLDER`.

The model is `test/models/decoder.py` with 4 layers of 512, 8 heads on 2 of keys, f32, one file for both. Both run
greedily on one thread, each in a process of its own, in turns; the best of the rounds counts.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import tilewright as tw

ROOT = Path(__file__).resolve().parents[2]
_SIZES = {
    "layers": 4, "hidden": 512, "heads": 8, "kv_heads": 2, "intermediate": 1024, "vocabulary": 4000, "positions": 4096
}  # fmt: skip
_CASES = ((512, 65, 1), (512, 33, 4))
_ROUNDS = 3


def _configuration() -> dict[str, Any]:
    """What GenAI wants to know of the model."""
    files = {"filename": "model.onnx", "session_options": {"provider_options": [], "intra_op_num_threads": 1}}
    inputs = {"input_ids": "tokens", "attention_mask": "attention_mask", "position_ids": "positions"}
    inputs |= {f"past_{kind}_names": f"past_{kind}_%d" for kind in ("key", "value")}
    outputs = {"logits": "logits"} | {f"present_{kind}_names": f"present_{kind}_%d" for kind in ("key", "value")}
    sizes = {"head_size": 64, "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4}
    decoder = {**files, **sizes, "num_key_value_heads": 2, "inputs": inputs, "outputs": outputs}
    tokens = {"bos_token_id": 1, "eos_token_id": 3999, "pad_token_id": 0, "vocab_size": 4000}
    model = {**tokens, "context_length": 4096, "type": "llama", "decoder": decoder}
    return {"model": model, "search": {"do_sample": False, "max_length": 4096, "past_present_share_buffer": False}}


def _ours(folder: str, prompt: int, new: int, batch: int) -> dict[str, Any]:
    generator = tw.Generator(f"{folder}/model.tw", threads=1, capacity=4096, batch=batch)
    tokens = [i * 37 % 3900 + 5 for i in range(prompt)]
    requests = [generator.submit(tokens, max_tokens=new) for _ in range(batch)]
    start = time.perf_counter()
    generator.step()
    began = time.perf_counter()
    generator.run()
    seconds = time.perf_counter() - began
    rate = batch * (new - 1) / seconds
    return {"prefill_ms": 1e3 * (began - start), "tokens_per_s": rate, "tokens": requests[0].tokens}


def _run(python: str, script: str, folder: Path, case: tuple[int, ...]) -> dict[str, Any]:
    command = [python, str(Path(__file__).with_name(script)), str(folder), *map(str, case)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(python: str, folder: Path) -> list[dict[str, Any]]:
    """Rows of both, by the interpreter of an environment with onnxruntime-genai."""
    sys.path.insert(0, str(ROOT / "test"))
    decoder = importlib.import_module("models.decoder").decoder
    folder.mkdir(parents=True, exist_ok=True)
    model = decoder("padded", dynamic=True, **_SIZES)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "genai_config.json").write_text(json.dumps(_configuration()))
    tw.compile(model).save(folder / "model.tw")
    rows = []
    for case in _CASES:
        row: dict[str, Any] = dict(zip(("prompt", "new", "batch"), case, strict=True))
        for _ in range(_ROUNDS):
            for name, at, script in (
                ("genai", python, "genai_side.py"),
                ("tilewright", sys.executable, Path(__file__).name),
            ):
                found = _run(at, script, folder, case)
                best = row.setdefault(name, found)
                best["prefill_ms"] = round(min(best["prefill_ms"], found["prefill_ms"]), 1)
                best["tokens_per_s"] = round(max(best["tokens_per_s"], found["tokens_per_s"]), 1)
        row["same_tokens"] = row["genai"].pop("tokens") == row["tilewright"].pop("tokens")
        rows.append(row)
    return rows


if __name__ == "__main__":
    print(json.dumps(_ours(sys.argv[1], *map(int, sys.argv[2:5]))))
