# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choices that exclude each other: for every target here, for one of them in its own folder.

Each rule has its error, and they are checked in order: those for all targets first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.core.options import ACCURACIES, PRECISIONS, SIZES, CompileOptions
from tilewright.targets.base import Target

Text = Callable[[Target, CompileOptions], str]


@dataclass(frozen=True)
class Rule:
    """Choices that cannot be had: which, and what the user is told (`{t}` is the target, `{o}` the options)."""

    broken: Callable[[Target, CompileOptions], bool]
    message: str | Text

    def text(self, target: Target, options: CompileOptions) -> str:
        """The message for these choices."""
        if callable(self.message):
            return self.message(target, options)
        return self.message.format(t=target, o=options)


NARROW = "precision={o.precision!r}"
NOT_EXACT = "accuracy={o.accuracy!r}"
#: Who a precision or an accuracy is for, where not every target with an own pipeline has it.
_IS_FOR = {
    "tf32": "the tensor cores of NVIDIA GPUs: {t} has no such products; use 'bf16' or 'f32'",
    "fp8-fast": "the float8 of NVIDIA GPUs: {t} has no such products; use 'f32'",
    "fast": "NVIDIA GPUs (approximations of their special function units) and their own pipeline",
    "winograd": "CPUs and their own pipeline",
    "winograd4": "CPUs and their own pipeline",
}


def _is_for(option: str) -> Text:
    def text(target: Target, options: CompileOptions) -> str:
        value = getattr(options, option)
        known = {"precision": target.precisions, "accuracy": target.accuracies}[option]
        rest = _IS_FOR.get(value, f"other targets: {{t}} has {', '.join(known)}")
        return f"{option}={value!r} is for {rest.format(t=target)}"

    return text


RULES: tuple[Rule, ...] = (
    Rule(
        lambda t, o: o.precision not in PRECISIONS,
        f"there is no precision {{o.precision!r}}; there are {', '.join(PRECISIONS)}",
    ),
    Rule(lambda t, o: o.precision == "f32" and o.calibration is not None, "calibration= is for precision='int8'"),
    Rule(
        lambda t, o: o.precision != "f32" and (len(t.precisions) == 1 or o.pipeline is not None),
        f"{NARROW} is for CPUs and NVIDIA GPUs with their own pipeline",
    ),
    Rule(lambda t, o: o.precision not in t.precisions, _is_for("precision")),
    Rule(
        lambda t, o: o.precision == "int8" and o.calibration is None,
        "precision='int8' needs calibration=: inputs (an array, a tuple, a dict by name, or a list of these) whose "
        "activations give the ranges",
    ),
    Rule(lambda t, o: not o.tune >= 0, "tune= is a number of seconds, 0 or more, not {o.tune!r}"),
    Rule(
        lambda t, o: bool(o.tune) and o.precision != "f32",
        f"tune= measures f32 products: leave it out with {NARROW}",
    ),
    Rule(
        lambda t, o: o.accuracy not in ACCURACIES,
        f"there is no accuracy {{o.accuracy!r}}; there are {', '.join(ACCURACIES)}",
    ),
    Rule(
        lambda t, o: o.accuracy != "exact" and (o.accuracy not in t.accuracies or o.pipeline is not None),
        _is_for("accuracy"),
    ),
    Rule(
        lambda t, o: o.accuracy != "exact" and bool(o.tune),
        f"tune= measures exact sums: leave it out with {NOT_EXACT}",
    ),
    Rule(
        lambda t, o: o.sizes not in SIZES,
        f"sizes= says what open dimensions get: {', '.join(map(repr, SIZES))}, not {{o.sizes!r}}; shapes= fixes them",
    ),
    Rule(
        lambda t, o: o.start_from is not None and bool(o.shapes),
        "shapes= is for models: IR that start_from= takes has its sizes",
    ),
    Rule(
        lambda t, o: o.is_decided and bool(o.tune),
        "tune= chooses tiles, and behind phase {o.start_from} they are chosen: leave it out, or begin behind normalize",
    ),
    Rule(lambda t, o: o.opt_level not in range(4), "opt_level must be 0, 1, 2 or 3, got {o.opt_level!r}"),
    Rule(
        lambda t, o: o.pipeline is not None and not hasattr(o.pipeline, "phases"),
        "pipeline must be a tilewright.pipelines Pipeline, got a {o.pipeline.__class__.__name__}",
    ),
    Rule(
        lambda t, o: bool(o.tune) and not t.tunes,
        "tune= measures on this machine: the target must be cpu, or cuda where there is a GPU, not {t.name!r}",
    ),
    Rule(
        lambda t, o: bool(o.tune) and o.pipeline is not None,
        "tune= chooses tiles for the target's own pipeline: leave pipeline= out",
    ),
    Rule(
        lambda t, o: o.emulate is not False and not t.emulates,
        "emulate= runs the code of a GPU: the target must be cuda:sm_80 or cuda:sm_90a, not {t.name!r}",
    ),
    Rule(
        lambda t, o: o.resident and not t.has_residents,
        "resident= keeps weights in the cores' memories: the target must be mesh:NAME, not {t.name!r}",
    ),
    Rule(
        lambda t, o: o.append_in_place and not t.appends,
        "append_in_place= writes results behind inputs in a CPU's memory: the target must be cpu, not {t.name!r}",
    ),
    Rule(
        lambda t, o: o.cubin and not t.assembles,
        "cubin= stores a GPU's machine code: the target must be cuda:sm_80 or cuda:sm_90a, not {t.name!r}",
    ),
)


def check(target: Target, options: CompileOptions) -> None:
    """Raise the error of the first rule that the choices break.

    Raises:
        UserError: they break one.
    """
    for rule in (*RULES, *target.rules):
        if rule.broken(target, options):
            raise UserError(rule.text(target, options))
