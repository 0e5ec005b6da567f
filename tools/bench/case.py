# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured: a case is a model, its sizes, and how fast ours must be relative to the best peer."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One line of a suite.

    Attributes:
        name: shown in the table.
        model: a name in test/models (`models.MODELS`).
        sizes: parameters of the model's builder.
        target: the largest accepted latency of ours divided by the best peer's; None where no target is set.
        gflop: work of one run in 10^9 floating point operations, for rates; None where a rate says nothing.
        peers: whom to compare with (modules of bench.peers).
        error: the largest accepted max|ours - peer| / max|peer|.
    """

    name: str
    model: str
    sizes: Mapping[str, object] = field(default_factory=dict)
    target: float | None = None
    gflop: float | None = None
    peers: tuple[str, ...] = ("onnxruntime",)
    error: float = 1e-4


@dataclass(frozen=True)
class Suite:
    """A named list of cases, with one line that says what for."""

    name: str
    summary: str
    cases: tuple[Case, ...]


def suites() -> dict[str, Suite]:
    """All suites, from the modules of bench.suites (each defines SUITE)."""
    package = importlib.import_module("bench.suites")
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    found = [importlib.import_module(f"bench.suites.{name}").SUITE for name in names]
    return {suite.name: suite for suite in found}
