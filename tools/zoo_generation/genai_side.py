# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens per second of ONNX Runtime GenAI, in an environment that has it.

`python genai_side.py FOLDER PROMPT NEW BATCH THREADS`: FOLDER holds model.onnx and genai_config.json, which says how
many threads too. Prints a JSON object.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import onnxruntime_genai


def main(folder: str, prompt: int, new: int, batch: int, threads: int) -> dict[str, object]:
    """Continue `batch` equal prompts of `prompt` tokens by `new` greedy ones."""
    del threads  # the configuration says it
    model = onnxruntime_genai.Model(folder)
    tokens = (np.arange(prompt) * 37 % 3900 + 5).astype(np.int32)
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(max_length=prompt + new, batch_size=batch, do_sample=False)
    batched = np.tile(tokens, (batch, 1)) if batch > 1 else tokens

    def begun() -> tuple[onnxruntime_genai.Generator, float]:
        """A generator behind its first token, and the seconds of that."""
        generator = onnxruntime_genai.Generator(model, parameters)
        start = time.perf_counter()
        generator.append_tokens(batched)
        generator.generate_next_token()
        return generator, time.perf_counter() - start

    begun()
    generator, first = begun()
    began = time.perf_counter()
    for _ in range(new - 1):
        generator.generate_next_token()
    seconds = time.perf_counter() - began
    made = list(map(int, generator.get_sequence(0)[prompt:]))
    return {"prefill_ms": 1e3 * first, "tokens_per_s": batch * (new - 1) / seconds, "tokens": made}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:6]))))
