# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One compilation for all sizes of batch and sequence, beside the code for each set of sizes."""

from bench.case import Case, Suite

_MODEL = dict(style="export", dynamic=True)


def _case(batch: int, sequence: int) -> Case:
    name = f"minilm_b{batch}_s{sequence}"
    run_time = dict(batch=batch, sequence=sequence)
    return Case(name, "minilm", _MODEL, target=1.15, peers=("specialized", "onnxruntime"), run_time=run_time)


SUITE = Suite(
    "cpu-sizes",
    "MiniLM with symbolic batch and sequence, compiled once, beside itself compiled for each set of sizes",
    (_case(1, 128), _case(8, 128), _case(1, 17), _case(3, 200)),
)
