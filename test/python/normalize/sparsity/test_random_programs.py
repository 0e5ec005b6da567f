# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the rules claim of random programs is true, and what is left of these computes the same."""

from __future__ import annotations

import numpy as np
import pytest

import pruned_programs
from tilewright import reference
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.normalize.sparsity import apart
from tilewright.normalize.sparsity.facts import Facts, is_tensor
from tilewright.passes import run_pipeline


def parsed(text: str) -> ir.Module:
    with ir.Context(), ir.Location.unknown():
        return ir.Module.parse(text)


def inputs(shape: tuple[int, int], seed: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng([seed, 1])
    return [rng.choice([-2.0, -1.0, 0.0, 1.0, 3.0], shape) for _ in range(count)]


def all_values(module: ir.Module) -> list[ir.Value]:
    """The tensors that @main makes; it returns them from now on."""
    (main,) = walk(module.operation, "func.func")
    block = main.regions[0].blocks[0]
    values = [v for op in block.operations for v in op.operation.results if is_tensor(v)]
    values = [v for v in values if v.owner.operation.name != "tensor.empty"]
    end = block.operations[len(block.operations) - 1]
    with module.context, ir.Location.unknown():
        with ir.InsertionPoint(end):
            ir.Operation.create("func.return", operands=values)
        end.operation.erase()
        kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in values])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
    return values


@pytest.mark.parametrize("seed", range(60))
def test_facts_hold(seed: int) -> None:
    """Each slice that is said to hold one number holds it, for many inputs."""
    text, shape = pruned_programs.random_program(seed)
    module = parsed(text)
    values = all_values(module)
    facts = Facts()
    with module.context, ir.Location.unknown():
        for op in module.body.operations[0].regions[0].blocks[0].operations:
            facts.look_at(op.operation)
    for x in inputs(shape, seed, 12):
        for value, array in zip(values, reference.run(module, "main", [x]), strict=True):
            for d, axis in enumerate(facts.of(value)):
                if axis is None:
                    continue
                moved = np.moveaxis(array, d, 0).reshape(array.shape[d], -1)
                wrong = [i for i in np.flatnonzero(axis.known) if not (moved[i] == axis.numbers[i]).all()]
                assert wrong == [], f"{value} axis {d}"


@pytest.mark.parametrize("seed", range(120))
def test_results_stay(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Axes of more than 16 indices keep whole vectors. Of half of the programs all loops that may are apart."""
    if seed % 2:
        monkeypatch.setattr(apart, "_WORTH", 0)
    text, shape = pruned_programs.random_program(seed, widest=50 if seed % 3 == 0 else 6)
    before, after = parsed(text), parsed(text)
    run_pipeline(after.operation, "builtin.module(tile-shrink-dead,canonicalize)")
    for x in inputs(shape, seed, 4):
        for a, b in zip(reference.run(before, "main", [x]), reference.run(after, "main", [x]), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_programs_shrink() -> None:
    """Of these programs most get smaller: the test above compares something."""
    smaller = 0
    for seed in range(40):
        module = parsed(pruned_programs.random_program(seed)[0])
        done = run_pipeline(module.operation, "builtin.module(tile-shrink-dead)")
        smaller += any("pruned weights" in remark.message for remark in done.diagnostics)
    assert smaller > 15
