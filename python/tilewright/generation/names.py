# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which inputs and outputs of a decoder are tokens, mask, positions, past and present: by the usual names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.runtime.manifest import TensorSpec

_IDS = ("input_ids", "tokens", "ids")
_MASK = ("attention_mask", "mask")
_POSITIONS = ("position_ids", "positions")
#: What exporters call the logits.
LOGITS = "logits"
#: Of a layer's number and what it is (key, value, or both in one tensor), as exporters write them.
_PAST = (
    r"past_key_values\.(?P<layer>\d+)(?:\.decoder)?\.(?P<kind>key|value)",
    r"past_(?P<kind>key|value)s?_(?P<layer>\d+)",
    r"past_(?P<layer>\d+)(?P<kind>)",
)
_PRESENT = (
    r"present(?:_key_values)?\.(?P<layer>\d+)(?:\.decoder)?\.(?P<kind>key|value)",
    r"present_(?P<kind>key|value)s?_(?P<layer>\d+)",
    r"present_(?P<layer>\d+)(?P<kind>)",
)
_CONVENTION = "past_key_values.0.key and present.0.key, past_key_0 and present_key_0, or past_0 and present_0"


@dataclass(frozen=True)
class Names:
    """Names of a decoder's inputs and outputs; what is empty is looked for.

    Attributes:
        ids: the tokens, [batch, sequence] of integers.
        logits: [batch, sequence, vocabulary], or [batch, vocabulary] of the last token.
        past: pairs of an input that holds keys or values of the past and the output that holds them with the new ones.
        mask: 1 where there is a token, of the past and the new ones: [batch, past + sequence]. A model may have none.
        positions: of the new tokens, [batch, sequence]. A model may have none.
    """

    ids: str = ""
    logits: str = ""
    past: tuple[tuple[str, str], ...] = ()
    mask: str = ""
    positions: str = ""


def find(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], given: Names | None = None) -> Names:
    """The names of a model, those that are given first.

    Raises:
        UserError: a given name is none of the model's, or tokens, logits or the past have no name that is known.
    """
    given = given or Names()
    ins, outs = [spec.name for spec in inputs], [spec.name for spec in outputs]
    past = tuple(given.past) or _pairs(ins, outs)
    for name in (given.ids, given.mask, given.positions, *(old for old, _ in past)):
        _require(name, ins, "input")
    for name in (given.logits, *(new for _, new in past)):
        _require(name, outs, "output")
    if not past:
        raise UserError(
            f"the model holds no past: no input and output are called {_CONVENTION} (inputs: {', '.join(ins)}). "
            "Export it with its cache, or name the pairs: names=Names(past=[(input, output), ...])"
        )
    return Names(
        given.ids or _one(ins, _IDS, "input", "ids", "tokens"),
        given.logits or _one(outs, (LOGITS,), "output", "logits", "logits"),
        past,
        given.mask or _known(ins, _MASK),
        given.positions or _known(ins, _POSITIONS),
    )


def _require(name: str, known: Sequence[str], what: str) -> None:
    if name and name not in known:
        raise UserError(f"the model has no {what} {name!r}; there are {', '.join(known)}")


def _known(names: Sequence[str], usual: Sequence[str]) -> str:
    return next((name for name in usual if name in names), "")


def _one(names: Sequence[str], usual: Sequence[str], what: str, field: str, meaning: str) -> str:
    found = _known(names, usual)
    if not found:
        raise UserError(
            f"no {what} of the model is called {' or '.join(usual)}; there are {', '.join(names)}: "
            f"say which holds the {meaning}, names=Names({field}=...)"
        )
    return found


def _pairs(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Inputs of the past, each with its output, in the inputs' order."""
    past, present = _numbered(inputs, _PAST), _numbered(outputs, _PRESENT)
    lost = [name for key, name in past.items() if key not in present]
    if lost:
        raise UserError(
            f"no output continues the input {lost[0]}; there are {', '.join(outputs)}: name the pairs, past="
        )
    return tuple((name, present[key]) for key, name in past.items())


def _numbered(names: Sequence[str], patterns: Sequence[str]) -> dict[tuple[int, str], str]:
    found = {}
    for name in names:
        match = next(filter(None, (re.fullmatch(pattern, name) for pattern in patterns)), None)
        if match:
            found[int(match["layer"]), match["kind"]] = name
    return found
