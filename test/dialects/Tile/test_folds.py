# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folds and canonicalizations keep what the reference interpreter computes."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright import reference
from tilewright.mlir import ir
from tilewright.mlir.passmanager import PassManager

TEXT = (Path(__file__).parent / "canonicalize.mlir").read_text()
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i1": np.bool_}
FUNCTIONS = [
    "identities",
    "compositions",
    "splat_moves",
    "constants",
    "conversions",
    "convert_back",
    "select",
    "reductions",
    "group",
]


def argument(type_: ir.Type, rng: np.random.Generator) -> np.ndarray:
    """Small random numbers of a scalar, tile or tensor type."""
    shape = list(type_.shape) if isinstance(type_, ir.ShapedType) else []
    element = str(type_.element_type if isinstance(type_, ir.ShapedType) else type_)
    return np.asarray(rng.integers(-9, 9, shape)).astype(DTYPES[element])


def run(module: ir.Module, name: str, seed: int) -> list[np.ndarray]:
    """What a function of the module computes on random arguments."""
    rng = np.random.default_rng(seed)
    function = next(op for op in module.body.operations if op.attributes["sym_name"].value == name)
    return reference.run(module, name, [argument(type_, rng) for type_ in function.type.inputs])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_numbers(name: str) -> None:
    with ir.Context():
        module = ir.Module.parse(TEXT)
        before = run(module, name, seed=7)
        PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        after = run(module, name, seed=7)
    assert len(before) == len(after) > 0
    for left, right in zip(before, after, strict=True):
        np.testing.assert_array_equal(left, right, strict=True)


def test_all_functions_are_compared() -> None:
    with ir.Context():
        module = ir.Module.parse(TEXT)
        names = {op.name.value for op in module.body.operations if op.operation.name == "func.func"}
    assert names == {*FUNCTIONS, "dead"}
