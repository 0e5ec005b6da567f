# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs and outputs of decoders by the names that exporters give, or that a user says."""

from __future__ import annotations

import pytest

import tilewright as tw
from tilewright.generation import Names
from tilewright.generation.names import find
from tilewright.runtime.manifest import TensorSpec


def specs(*names: str) -> list[TensorSpec]:
    return [TensorSpec(name, "f32", (1,)) for name in names]


CONVENTIONS = [
    (
        ("input_ids", "attention_mask", "position_ids", "past_key_values.0.key", "past_key_values.0.value"),
        ("logits", "present.0.key", "present.0.value"),
    ),
    (
        ("input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value"),
        ("logits", "present_key_values.0.key", "present_key_values.0.value"),
    ),
    (("tokens", "past_key_10", "past_value_10"), ("logits", "present_key_10", "present_value_10")),
    (("input_ids", "past_0", "past_1"), ("logits", "present_0", "present_1")),
    (
        ("input_ids", "past_key_values.0.decoder.key", "past_key_values.0.decoder.value"),
        ("logits", "present.0.decoder.key", "present.0.decoder.value"),
    ),
]


@pytest.mark.parametrize(("inputs", "outputs"), CONVENTIONS)
def test_conventions(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
    found = find(specs(*inputs), specs(*outputs))
    assert found.ids == inputs[0] and found.logits == outputs[0]
    assert found.mask == ("attention_mask" if "attention_mask" in inputs else "")
    assert found.positions == ("position_ids" if "position_ids" in inputs else "")
    assert found.past == tuple(zip([n for n in inputs if n.startswith("past")], outputs[1:], strict=True))


def test_names_that_are_given() -> None:
    inputs, outputs = specs("x", "seen", "k", "past_0"), specs("y", "k2", "present_0")
    names = Names(ids="x", logits="y", mask="seen", past=(("k", "k2"),))
    assert find(inputs, outputs, names) == names
    with pytest.raises(tw.UserError, match="no input of the model is called input_ids or tokens or ids; there are x, "):
        find(inputs, outputs, Names(logits="y"))
    with pytest.raises(tw.UserError, match="the model has no output 'z'; there are y, k2, present_0"):
        find(inputs, outputs, Names(ids="x", logits="z"))


def test_what_has_no_name() -> None:
    with pytest.raises(tw.UserError, match="the model holds no past: no input and output are called past_key_values.0"):
        find(specs("input_ids"), specs("logits"))
    with pytest.raises(tw.UserError, match="no output continues the input past_1; there are logits, present_0"):
        find(specs("input_ids", "past_0", "past_1"), specs("logits", "present_0"))
