# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batches of sentences of different lengths: time in proportion to real tokens, and no loss where there is no padding.

A layer of BERT-base on 16 sentences of at most 128 tokens. `pooled_*` give the mean of real tokens, so that nothing
reads padding and none is computed without an option; `hidden_*` give hidden states, with `padded="attention_mask"`.
Rivals: `own whole` computes padding like tokens (pass `tile-skip-padding` left out), `own full` has a batch of full
sentences. A batch with padding is to gain 0.9 of what its tokens are fewer, a full one to lose 3 % at most.
"""

from __future__ import annotations

from bench.case import Case, Form, Suite
from models.sparse import lengths

_BATCH, _SEQUENCE = 16, 128
_PASS = ("tile-skip-padding",)
_NO_LOSS = 1 / 1.03


def _least(about: int) -> float:
    """The gain that is asked of a batch whose sentences have about as many tokens."""
    if about == _SEQUENCE:
        return _NO_LOSS
    return 0.9 * _BATCH * _SEQUENCE / float(lengths(_BATCH, _SEQUENCE, about).sum())


def _case(name: str, about: int, padded: str = "", **sizes: object) -> Case:
    filled = about == _SEQUENCE
    whole = Form("whole", without=_PASS, gain=_least(about))
    full = Form("full", inputs=dict(full=True), gain=_least(about), same=False)
    return Case(
        f"{name}_{'full' if filled else about}",
        "bert_base",
        dict(layers=1, batch=_BATCH, sequence=_SEQUENCE, **sizes),
        padded=padded,
        inputs=("ragged", dict(full=True) if filled else dict(about=about)),
        peers=("onnxruntime", "openvino"),
        rivals=(whole,) if filled else (whole, full),
    )


SUITE = Suite(
    "padding",
    "batches of sentences of different lengths beside the same with padding computed, and full ones",
    (
        *(_case("pooled", about, pooled=True) for about in (30, 64, _SEQUENCE)),
        *(_case("hidden", about, "attention_mask") for about in (30, _SEQUENCE)),
    ),
)
