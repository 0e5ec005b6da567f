# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens per second of OpenVINO GenAI, in an environment that has it (`openvino-genai`).

`python openvino_side.py FOLDER PROMPT NEW BATCH THREADS`: FOLDER holds model.onnx. Prints a JSON object. Its pipeline
takes models whose past is a state, with the names that Hugging Face's exporter gives: this makes such a one.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

import numpy as np
import openvino
import openvino_genai
from openvino import opset13
from openvino._offline_transformations import apply_make_stateful_transformation

_NAMES = {"tokens": "input_ids", "positions": "position_ids", "attention_mask": "attention_mask"}


def stateful(path: str, batch: int) -> openvino.Model:
    """The model for a batch, its past a state whose rows `beam_idx` puts in order."""
    model = openvino.Core().read_model(path)
    shapes = {value.get_any_name(): value.get_partial_shape() for value in model.inputs}
    for shape in shapes.values():
        shape[0] = batch
    model.reshape(shapes)
    beams = opset13.parameter([-1], np.int32, name="beam_idx")
    beams.output(0).get_tensor().set_names({"beam_idx"})
    pairs = {}
    for given in model.get_parameters():
        name = given.output(0).get_any_name()
        if name in _NAMES:
            given.output(0).get_tensor().set_names({_NAMES[name]})
            continue
        readers = given.output(0).get_target_inputs()
        ordered = opset13.gather(given, beams, opset13.constant(0, np.int32))
        for reader in readers:
            reader.replace_source_output(ordered.output(0))
        pairs[name] = name.replace("past", "present")
    model.add_parameters([beams])
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, pairs)
    return model


def main(folder: str, prompt: int, new: int, batch: int, threads: int) -> dict[str, object]:
    """Continue `batch` equal prompts of `prompt` tokens by `new` greedy ones."""
    with tempfile.TemporaryDirectory() as place:
        file = f"{place}/openvino_model.xml"
        openvino.save_model(stateful(f"{folder}/model.onnx", batch), file, compress_to_fp16=False)
        options = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "ATTENTION_BACKEND": "SDPA"}
        pipeline = openvino_genai.LLMPipeline(place, "CPU", **options)
    config = openvino_genai.GenerationConfig()
    config.eos_token_id, config.ignore_eos = 3999, True
    ids = openvino.Tensor(np.tile(np.arange(prompt) * 37 % 3900 + 5, (batch, 1)).astype(np.int64))

    def seconds(count: int) -> tuple[float, list[int]]:
        config.max_new_tokens = count
        start = time.perf_counter()
        result = pipeline.generate(ids, config)
        return time.perf_counter() - start, list(map(int, result.tokens[0]))

    first, _ = min(seconds(1) for _ in range(2))
    whole, tokens = seconds(new)
    return {"prefill_ms": 1e3 * first, "tokens_per_s": batch * (new - 1) / (whole - first), "tokens": tokens}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:6]))))
