# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cocktailer's models (Zhang et al., OSDI 2023, table 1): loops and branches of the data, on a CPU.

Beside them PyTorch, whose loops and branches are Python's, ONNX Runtime, and ours `driven`: with each iteration's
kernels started one by one by the host function, where it else starts all threads once. Sizes are the paper's, but for
NASRNN, which takes 100 steps of its 1000 at batch 64, and for the recursive autoencoder, whose tree is no ONNX graph
(`test_fractal_tree_models.py`). Seq2Seq ends when all its sentences have; random pictures keep about half of the
blocks of BlockDrop at batch 1, and all of them at batch 64. What the models are on a GPU: `bench.control_counts`.
"""

from __future__ import annotations

from bench.case import Case, Form, Suite

_PEERS = ("torch", "onnxruntime")
_DRIVEN = Form("driven", without=("tile-plan-levels", "tile-plan-programs"))


def _case(model: str, batch: int, **sizes: int) -> Case:
    name = f"{'lstm10' if model == 'lstm4' else model}_b{batch}"
    return Case(name, model, dict(batch=batch, **sizes), peers=_PEERS, rivals=(_DRIVEN,), gains={"torch": 1.0})


SUITE = Suite(
    "control",
    "models with loops and branches of the data beside PyTorch, and beside ours driven by the host",
    (
        *(_case("lstm4", batch, layers=10, sequence=64) for batch in (1, 64)),
        _case("nasrnn", 1),
        _case("nasrnn", 64, steps=100),
        *(_case("generation", batch) for batch in (1, 64)),
        *(_case("seq2seq", batch) for batch in (1, 64)),
        *(_case("blockdrop", batch) for batch in (1, 64)),
        _case("skipnet", 1),
    ),
)
