# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Causes, and the search for the one field that explains everything observed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cause:
    """Why a rung fails.

    Attributes:
        field: of the set-up, "b.stride"; an element of a tuple is "box[1]".
        expected: what the set-up says.
        found: what the observation shows; several values where it shows no difference between them.
        text: for a person, in the terms of the PTX ISA and the driver API.
    """

    field: str
    expected: Any
    found: tuple[Any, ...]
    text: str


@dataclass(frozen=True)
class Hypothesis:
    """One field has another value.

    Attributes:
        field, expected: as in `Cause`.
        found: the value.
        setup: the whole set-up with it.
    """

    field: str
    expected: Any
    found: Any
    setup: Any


def changed(setup: Any, field: str, value: Any) -> Hypothesis:
    """The hypothesis that a field, "operand.field", "field[i]" or "field", has another value."""
    return Hypothesis(field, get(setup, field), value, put(setup, field, value))


def get(setup: Any, field: str) -> Any:
    """The value of a field."""
    head, _, rest = field.partition(".")
    name, _, index = head.partition("[")
    value = getattr(setup, name)
    value = value[int(index[:-1])] if index else value
    return get(value, rest) if rest else value


def put(setup: Any, field: str, value: Any) -> Any:
    """A set-up with a field, "operand.field", "field[i]" or "field", replaced."""
    head, _, rest = field.partition(".")
    name, _, index = head.partition("[")
    old = getattr(setup, name)
    if rest:
        value = put(old, rest, value)
    elif index:
        at = int(index[:-1])
        value = (*old[:at], value, *old[at + 1 :])
    return dataclasses.replace(setup, **{name: value})


def search(
    hypotheses: Iterable[Hypothesis], explains: Callable[[Any], bool], say: Callable[[Hypothesis], str]
) -> Cause | None:
    """The cause, where hypotheses of one field alone explain an observation.

    Args:
        hypotheses: one change each.
        explains: whether a set-up gives the whole observation.
        say: the text about a hypothesis that holds.

    Returns:
        None: no field explains it, or more than one does: unknown.
    """
    holding = [one for one in hypotheses if explains(one.setup)]
    if len({one.field for one in holding}) != 1:
        return None
    first = holding[0]
    return Cause(first.field, first.expected, tuple(one.found for one in holding), say(first))
