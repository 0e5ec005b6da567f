# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens per second beside ONNX Runtime GenAI and OpenVINO GenAI: `tools/decoders --genai PYTHON FOLDER`.

The model is `test/models/decoder.py` with 4 layers of 512, 8 heads on 2 of keys, in f32 and with weights of 4 bits, one
file for all. All run greedily, each in a process of its own, in turns, behind a run that is not timed; the best of the
rounds counts.
"""

from __future__ import annotations

import importlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tilewright as tw
from zoo_generation.int4 import quantized

ROOT = Path(__file__).resolve().parents[2]
_SIZES = {
    "layers": 4, "hidden": 512, "heads": 8, "kv_heads": 2, "intermediate": 1024, "vocabulary": 4000, "positions": 4096
}  # fmt: skip
#: Tokens of the prompt, new ones, requests.
_CASES = ((512, 65, 1), (512, 33, 4))
_FORMS = ("f32", "int4")
#: The model for one new token.
_STEP = "step.tw"
#: Each with the script that runs it.
_PEERS = {"onnxruntime-genai": "genai_side.py", "openvino-genai": "openvino_side.py"}


def _configuration(threads: int) -> dict[str, Any]:
    """What ONNX Runtime GenAI wants to know of the model."""
    files = {"filename": "model.onnx", "session_options": {"provider_options": [], "intra_op_num_threads": threads}}
    inputs = {"input_ids": "tokens", "attention_mask": "attention_mask", "position_ids": "positions"}
    inputs |= {f"past_{kind}_names": f"past_{kind}_%d" for kind in ("key", "value")}
    outputs = {"logits": "logits"} | {f"present_{kind}_names": f"present_{kind}_%d" for kind in ("key", "value")}
    sizes = {"head_size": 64, "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4}
    decoder = {**files, **sizes, "num_key_value_heads": 2, "inputs": inputs, "outputs": outputs}
    tokens = {"bos_token_id": 1, "eos_token_id": 3999, "pad_token_id": 0, "vocab_size": 4000}
    model = {**tokens, "context_length": 4096, "type": "llama", "decoder": decoder}
    return {"model": model, "search": {"do_sample": False, "max_length": 4096, "past_present_share_buffer": False}}


def _ours(folder: str, prompt: int, new: int, batch: int, threads: int, step: str = "") -> dict[str, Any]:
    options: dict[str, Any] = {"threads": threads, "capacity": 4096, "batch": batch}
    generator = tw.Generator(f"{folder}/model.tw", step=f"{folder}/{step}" if step else None, **options)
    tokens = [i * 37 % 3900 + 5 for i in range(prompt)]
    generator.generate([tokens] * batch, max_tokens=2)  # memory and code are there
    requests = [generator.submit(tokens, max_tokens=new) for _ in range(batch)]
    start = time.perf_counter()
    generator.step()
    began = time.perf_counter()
    generator.run()
    seconds = time.perf_counter() - began
    rate = batch * (new - 1) / seconds
    return {"prefill_ms": 1e3 * (began - start), "tokens_per_s": rate, "tokens": requests[0].tokens}


def _run(python: str, script: str, folder: Path, case: tuple[int | str, ...]) -> dict[str, Any]:
    command = [python, str(Path(__file__).with_name(script)), str(folder), *map(str, case)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return {"error": lines[-1] if lines else f"exit status {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def _prepared(folder: Path, form: str) -> Path:
    """A folder with the model in one form, and ours compiled."""
    sys.path.insert(0, str(ROOT / "test"))
    place = folder / form
    place.mkdir(parents=True, exist_ok=True)
    model = importlib.import_module("models.decoder").decoder("padded", dynamic=True, **_SIZES)
    model = quantized(model) if form == "int4" else model
    (place / "model.onnx").write_bytes(model.SerializeToString())
    if not (place / _STEP).exists():
        generator = tw.Generator(str(place / "model.onnx"), step=True)
        generator.model.save(place / "model.tw")
        generator.step_model.save(place / _STEP)
    return place


def _better(best: dict[str, Any] | None, found: dict[str, Any]) -> dict[str, Any]:
    if best is None or "error" in found:
        return found
    return {
        "prefill_ms": round(min(best["prefill_ms"], found["prefill_ms"]), 1),
        "tokens_per_s": round(max(best["tokens_per_s"], found["tokens_per_s"]), 1),
        "tokens": found["tokens"],
    }


def compare(python: str, folder: Path, threads: tuple[int, ...] = (1,), rounds: int = 2) -> Iterator[dict[str, Any]]:
    """Yield rows of all, by the interpreter of an environment with the peers; what one cannot take is its error."""
    own = Path(__file__).name
    sides: dict[str, tuple[str, str, tuple[str, ...]]]
    sides = {name: (python, script, ()) for name, script in _PEERS.items()}
    sides |= {"tilewright": (sys.executable, own, ()), "tilewright, step=": (sys.executable, own, (_STEP,))}
    for count, form, case in itertools.product(threads, _FORMS, _CASES):
        place = _prepared(folder, form)
        (place / "genai_config.json").write_text(json.dumps(_configuration(count)))
        row: dict[str, Any] = dict(zip(("prompt", "new", "batch"), case, strict=True))
        row |= {"form": form, "threads": count}
        for _ in range(rounds):
            for name, (at, script, more) in sides.items():
                row[name] = _better(row.get(name), _run(at, script, place, (*case, count, *more)))
        tokens = {name: row[name].pop("tokens", None) for name in sides}
        row["same_tokens"] = [name for name in sides if tokens[name] == tokens["tilewright"]]
        yield row


if __name__ == "__main__":
    print(json.dumps(_ours(sys.argv[1], *map(int, sys.argv[2:6]), *sys.argv[6:])))
