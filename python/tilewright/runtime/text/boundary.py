# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands between a user's strings and maps and the numbers of compiled code, as an artifact keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

TEXT, MAP, NUMBERS = "string", "map", "numbers"


@dataclass(frozen=True)
class Value:
    """An input or output of the model as users see it.

    Attributes:
        name: of the value.
        kind: ``string`` (a tensor of strings), ``map`` (a dict, or a list of them) or ``numbers``.
        shape: sizes, names of those that a call brings, None where nothing is known; of a map ().
    """

    name: str
    kind: str
    shape: tuple[int | str | None, ...] = ()


@dataclass(frozen=True)
class Step:
    """An operator that Python runs.

    Attributes:
        op: its ONNX name.
        inputs: names of values; empty where an optional one is left out.
        outputs: names of values.
        attributes: numbers, strings and lists of them.
        label: how messages call the node.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    label: str = ""


@dataclass(frozen=True)
class Boundary:
    """The way of a call: steps, code, steps.

    Attributes:
        words: the strings that the model knows; their places are their codes.
        inputs: what a user gives.
        before: what is computed of that alone.
        passed: inputs of the code; those that are strings go as codes.
        results: outputs of the code, in order.
        after: what is computed of those, and of all before.
        outputs: what a user gets.
        texts: names of the values that are strings.
        constants: strings and numbers that steps read, as nested lists.
    """

    words: tuple[str, ...]
    inputs: tuple[Value, ...]
    before: tuple[Step, ...]
    passed: tuple[str, ...]
    results: tuple[str, ...]
    after: tuple[Step, ...]
    outputs: tuple[Value, ...]
    texts: frozenset[str]
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(value.name for value in self.inputs)

    def data(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {**asdict(self), "texts": sorted(self.texts)}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Boundary:
        """From what `data` gave, through JSON or not."""
        values = {key: tuple(Value(v["name"], v["kind"], tuple(v["shape"])) for v in data[key]) for key in _VALUES}
        steps = {key: tuple(_step(s) for s in data[key]) for key in _STEPS}
        names = {key: tuple(data[key]) for key in ("words", "passed", "results")}
        return cls(**names, **values, **steps, texts=frozenset(data["texts"]), constants=dict(data["constants"]))


_VALUES, _STEPS = ("inputs", "outputs"), ("before", "after")


def _step(data: Mapping[str, Any]) -> Step:
    return Step(data["op"], tuple(data["inputs"]), tuple(data["outputs"]), dict(data["attributes"]), data["label"])
