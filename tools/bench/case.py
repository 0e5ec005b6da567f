# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is measured: a case is a model, its sizes, and how fast ours must be relative to the best peer."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field

PEERS = ("onnxruntime", "openvino", "torch", "torch_compile", "iree")


@dataclass(frozen=True)
class Form:
    """A model in another form, or with other inputs, that computes the same or is of the same size.

    Attributes:
        name: shown in the table.
        model: a name in test/models; None: the case's own.
        sizes: parameters of the model's builder, instead of the case's; None: those of the case.
        inputs: arguments for the case's maker of inputs, beside its own.
        filled: zeros of weights and inputs are replaced by numbers too small to be seen: a dense twin.
        cover: the only format of its weights (`bench.cover`); empty: as the plan decides.
        without: passes that its pipeline leaves out.
        same: whether its results are those of the case.
        gain: how much faster ours must be, at least; None where that is only shown.
    """

    name: str
    model: str | None = None
    sizes: Mapping[str, object] | None = None
    inputs: Mapping[str, object] = field(default_factory=dict)
    filled: bool = False
    cover: str = ""
    without: tuple[str, ...] = ()
    same: bool = True
    gain: float | None = None


@dataclass(frozen=True)
class Case:
    """One line of a suite.

    Attributes:
        name: shown in the table.
        model: a name in test/models (`models.MODELS`).
        sizes: parameters of the model's builder.
        run_time: sizes of the model's symbolic dimensions in this row, which no one is told before.
        target: the largest accepted latency of ours divided by the best peer's; None where no target is set.
        gflop: work of one run in 10^9 operations; None where a rate says nothing.
        gbyte: memory traffic of one run in 10^9 bytes, for what is bound by memory; then the rate is in GB/s.
        limit: the machine's limit (a line of peak.c) that the rate is set against.
        share: the smallest accepted part of that limit, by number of threads.
        precision: what ours and the peers that have the choice are asked for: f32, bf16 or int8.
        accuracy: what ours is asked for: exact, winograd or winograd4.
        padded: the input that is zero at padding: what ours is told; results there are not compared.
        peers: whom to compare with (modules of bench.peers).
        error: the largest accepted max|ours - peer| / max|peer|.
        inputs: a maker of inputs (`INPUTS` of `models.sparse` and `models.lists`), and its arguments beside the sizes;
            None: random ones.
        rivals: forms of the model that ours is compared with, compiled by us, too.
        peers_form: what the peers get instead of the case's model.
        program: a program on nested lists (`bench.list_programs`) that the model stands for: ours and `torch_lists` run
            that; empty: none.
        gains: how much faster than these peers ours must be, at least.
    """

    name: str
    model: str
    sizes: Mapping[str, object] = field(default_factory=dict)
    target: float | None = None
    gflop: float | None = None
    gbyte: float | None = None
    limit: str = "fma_f32"
    share: Mapping[int, float] = field(default_factory=dict)
    precision: str = "f32"
    accuracy: str = "exact"
    padded: str = ""
    peers: tuple[str, ...] = PEERS
    error: float = 1e-4
    run_time: Mapping[str, int] = field(default_factory=dict)
    inputs: tuple[str, Mapping[str, object]] | None = None
    rivals: tuple[Form, ...] = ()
    peers_form: Form | None = None
    program: str = ""
    gains: Mapping[str, float] = field(default_factory=dict)

    @property
    def work(self) -> float | None:
        """What the rate counts: bytes where they are given, else operations, in 10^9."""
        return self.gbyte or self.gflop


@dataclass(frozen=True)
class Suite:
    """A named list of cases, with one line that says what for."""

    name: str
    summary: str
    cases: tuple[Case, ...]
    mean_target: float | None = None  # the largest accepted geometric mean of the rows' ratios


def peer_names() -> list[str]:
    """All peers, from the modules of bench.peers; ours is none."""
    package = importlib.import_module("bench.peers")
    return sorted({m.name for m in pkgutil.iter_modules(package.__path__)} - {"tilewright"})


def suites() -> dict[str, Suite]:
    """All suites, from the modules of bench.suites (each defines SUITE)."""
    package = importlib.import_module("bench.suites")
    names = sorted(m.name for m in pkgutil.iter_modules(package.__path__))
    found = [importlib.import_module(f"bench.suites.{name}").SUITE for name in names]
    return {suite.name: suite for suite in found}
