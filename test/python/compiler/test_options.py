# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of compile(): the text of each error, each rule of the table tried."""

from __future__ import annotations

import lowered_model
import pytest

import tilewright as tw
from tilewright.core import config
from tilewright.core.errors import UserError
from tilewright.core.options import CompileOptions
from tilewright.pipelines import cpu
from tilewright.targets import registry
from tilewright.targets.rules import RULES, Rule, check

CASES = [
    (
        {"start_from": "plan", "shapes": {"x": (1,)}},
        "shapes= is for models: IR that start_from= takes has its sizes",
    ),
    (
        {"start_from": "plan", "tune": 1.0},
        "tune= chooses tiles, and behind phase plan they are chosen: leave it out, or begin behind normalize",
    ),
    (
        {"append_in_place": True, "target": "cuda:sm_80"},
        "append_in_place= writes results behind inputs in a CPU's memory: the target must be cpu, not 'cuda:sm_80'",
    ),
    ({"precision": "int4"}, "there is no precision 'int4'; there are f32, tf32, bf16, int8, fp8-fast"),
    ({"calibration": 1}, "calibration= is for precision='int8'"),
    (
        {"precision": "bf16", "target": "reference"},
        "precision='bf16' is for CPUs and NVIDIA GPUs with their own pipeline",
    ),
    (
        {"precision": "tf32"},
        "precision='tf32' is for the tensor cores of NVIDIA GPUs: cpu has no such products; use 'bf16' or 'f32'",
    ),
    (
        {"precision": "int8"},
        "precision='int8' needs calibration=: inputs (an array, a tuple, a dict by name, or a list of these) whose "
        "activations give the ranges",
    ),
    (
        {"precision": "int8", "calibration": 1, "target": "cpu:x86-64-v3"},
        "cpu:x86-64-v3 has no instruction for products of bytes (VNNI): use precision='bf16' or 'f32'",
    ),
    ({"tune": -1.0}, "tune= is a number of seconds, 0 or more, not -1.0"),
    ({"precision": "bf16", "tune": 1.0}, "tune= measures f32 products: leave it out with precision='bf16'"),
    ({"accuracy": "most"}, "there is no accuracy 'most'; there are exact, winograd, winograd4, fast"),
    (
        {"accuracy": "fast"},
        "accuracy='fast' is for NVIDIA GPUs (approximations of their special function units) and their own pipeline",
    ),
    (
        {"precision": "bf16", "pipeline": "CPU"},
        "precision='bf16' is for CPUs and NVIDIA GPUs with their own pipeline",
    ),
    ({"accuracy": "winograd", "target": "reference"}, "accuracy='winograd' is for CPUs and their own pipeline"),
    (
        {"accuracy": "winograd", "precision": "bf16"},
        "accuracy='winograd' is for sums of f32 products: leave it out with precision='bf16'",
    ),
    ({"accuracy": "winograd", "tune": 1.0}, "tune= measures exact sums: leave it out with accuracy='winograd'"),
    (
        {"sizes": "all"},
        "sizes= says what open dimensions get: 'auto', 'general', 'each', not 'all'; shapes= fixes them",
    ),
    ({"opt_level": 4}, "opt_level must be 0, 1, 2 or 3, got 4"),
    ({"pipeline": "a"}, "pipeline must be a tilewright.pipelines Pipeline, got a str"),
    (
        {"tune": 1.0, "target": "cpu:x86-64-v3"},
        "tune= measures on this machine: the target must be cpu, or cuda where there is a GPU, not 'cpu:x86-64-v3'",
    ),
    (
        {"tune": 1.0, "target": "cuda:sm_80", "emulate": True},
        "tune= measures on a GPU, and the emulator has no clock: leave emulate= or tune= out",
    ),
    (
        {"tune": 1.0, "target": "cuda:sm_80"},
        "tune= measures on this machine's GPU, and there is no NVIDIA GPU with a driver here: leave it out (tiles then "
        "follow from the description of the device, by predicted time), or compile where the GPU is",
    ),
    (
        {"resident": True},
        "resident= keeps weights in the cores' memories: the target must be mesh:NAME, not 'cpu'",
    ),
    ({"tune": 1.0, "pipeline": "CPU"}, "tune= chooses tiles for the target's own pipeline: leave pipeline= out"),
    (
        {"emulate": True},
        "emulate= runs the code of a GPU: the target must be cuda:sm_80 or cuda:sm_90a, not 'cpu'",
    ),
    (
        {"emulate": {"sed": 1}, "target": "cuda:sm_80"},
        "the emulator has no option sed; emulate= may hold seed, checks, trace, options, replace, multiprocessors",
    ),
    (
        {"cubin": True},
        "cubin= stores a GPU's machine code: the target must be cuda:sm_80 or cuda:sm_90a, not 'cpu'",
    ),
    (
        {"cubin": True, "target": "cuda:sm_80"},
        "cubin=True needs NVIDIA's assembler, and no ptxas was found: install the CUDA toolkit, name the program in "
        "TILEWRIGHT_PTXAS, or leave cubin= out (the GPU's driver then assembles the PTX when the model is loaded)",
    ),
    (
        {"target": "reference", "stop_after": "plan"},
        "target 'reference' interprets what phase import makes: stop_after can only be 'import'",
    ),
]


@pytest.fixture(autouse=True)
def no_assembler():
    """As on most machines: nor is there a GPU."""
    with config.ptxas.override("off"), config.libcuda.override("/nonexistent/libcuda.so"):
        yield


def _with_pipeline(options: dict) -> dict:
    """`CPU` stands for the pipeline of this machine."""
    own = options.get("pipeline") == "CPU"
    return {**options, "pipeline": cpu.PIPELINE} if own else options


def _asked(options: dict) -> tuple[registry.Target, CompileOptions]:
    """Target and options, as compile() makes them of its arguments."""
    rest = {name: value for name, value in _with_pipeline(options).items() if name != "target"}
    return registry.named(options.get("target", "cpu")), CompileOptions(**rest)


def _first_broken(options: dict) -> Rule:
    target, chosen = _asked(options)
    return next(rule for rule in (*RULES, *target.rules) if rule.broken(target, chosen))


@pytest.mark.parametrize(("options", "message"), CASES)
def test_text_of_errors(options: dict, message: str) -> None:
    """The whole text, from the table and from compile()."""
    options = _with_pipeline(options)
    with pytest.raises(UserError) as found:
        check(*_asked(options))
    assert found.value.message == message
    with pytest.raises(UserError) as found:
        tw.compile(lowered_model.TEXT, **options)
    assert found.value.message == message


def test_every_rule_has_a_case() -> None:
    """The first rule that each case breaks: together they are those for all targets, and those of each."""
    found = {id(_first_broken(options)) for options, _ in CASES}
    rules = [*RULES, *(rule for target in registry.known() for rule in target.rules)]
    assert [rule.message for rule in rules if id(rule) not in found] == []


def test_defaults_break_no_rule() -> None:
    """Nor does what the options are for."""
    for options in ({}, {"precision": "bf16"}, {"accuracy": "winograd4"}, {"tune": 1.0}):
        check(*_asked(options))
