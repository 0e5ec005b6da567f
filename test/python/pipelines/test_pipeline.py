# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines as values, and their phases by name."""

from __future__ import annotations

import dataclasses

import pytest

from tilewright.core.errors import UserError
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.pipeline import PassSpec, Phase, Pipeline

FIRST = Phase(
    "first",
    [
        PassSpec("canonicalize", "one form of each op", {"top-down": False, "max-iterations": 3}),
        PassSpec("cse", "no op twice", on="func.func"),
    ],
    "Tidy up",
)
SECOND = Phase("second", [PassSpec("tile-count-ops", "reports want it", {"only": ("arith.addf", "arith.mulf")})])
EMPTY = Phase("empty", [])
PIPELINE = Pipeline("test", [FIRST, EMPTY, SECOND])


def module() -> ir.Module:
    with ir.Context():
        return ir.Module.parse(
            "func.func @f(%x: f32) -> f32 { %0 = arith.addf %x, %x : f32 %1 = arith.addf %x, %x : f32\n"
            "%2 = arith.mulf %0, %1 : f32 return %2 : f32 }"
        )


def test_text() -> None:
    first = "canonicalize{top-down=false max-iterations=3},func.func(cse)"
    second = "tile-count-ops{only=arith.addf,arith.mulf}"
    assert str(FIRST) == f"builtin.module({first})"
    assert str(PIPELINE) == f"builtin.module({first},{second})"
    assert str(PIPELINE.upto("empty")) == f"builtin.module({first})"
    assert str(PIPELINE.after("first")) == f"builtin.module({second})"
    assert str(PIPELINE.phase("second")) == f"builtin.module({second})"


def test_without_a_pass() -> None:
    left = PIPELINE.without("cse", "tile-count-ops")
    assert str(left) == "builtin.module(canonicalize{top-down=false max-iterations=3})"
    assert left.names == PIPELINE.names
    with pytest.raises(UserError, match="pipeline 'test' has no pass 'cs' to leave out"):
        PIPELINE.without("cs")


def test_runs_phase_by_phase_as_at_once() -> None:
    whole, parts, named = module(), module(), module()
    run_pipeline(whole, PIPELINE)
    for phase in PIPELINE.phases:
        run_pipeline(parts, phase)
    PIPELINE.register()
    run_pipeline(named, "builtin.module(tile-test-first,tile-test-empty,tile-test-second)")
    assert "arith.addf = 1" in str(whole)
    assert str(whole) == str(parts) == str(named)


def test_describe_numbers_the_reasons() -> None:
    text = PIPELINE.describe()
    assert "first: Tidy up" in text
    assert " 2. func.func(cse): no op twice" in text


def test_values() -> None:
    assert hash(PIPELINE) == hash(dataclasses.replace(PIPELINE))
    assert PIPELINE.names == ("first", "empty", "second")


def test_errors() -> None:
    with pytest.raises(UserError, match="no phase 'third': choose one of first, empty, second"):
        PIPELINE.upto("third")
    with pytest.raises(ValueError, match="needs a reason"):
        PassSpec("cse", " ")
    with pytest.raises(ValueError, match="two phases of one name"):
        Pipeline("twice", [FIRST, FIRST])


def test_name_of_another_pass() -> None:
    from tilewright.mlir._mlir_libs import _tilewright

    with pytest.raises(ValueError, match="exists already"):
        _tilewright.register_pipeline("canonicalize", "", "cse")
