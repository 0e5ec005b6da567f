# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights are a value of one run of passes: other runs, at the same time and with the same names, see their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.mlir import ir
from tilewright.passes import Pass, load_builtin_passes, register, run_pipeline
from tilewright.passes.weights import FILE, known_array, write_weights

FUNCTIONS = 8
MODULE = "ml_program.global private @mask(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>\n" + "".join(
    f"func.func @f{n}() {{\n  %m = ml_program.global_load_const @mask : tensor<4xf32>\n  return\n}}\n"
    for n in range(FUNCTIONS)
)


@register
@dataclass(frozen=True)
class ReadMask(Pass):
    """Write into each function the first element of the mask that it loads."""

    name: ClassVar[str] = "test-read-mask"
    anchor: ClassVar[str | None] = "func.func"

    def run(self, op: ir.Operation) -> None:
        """Look at the weight; meanwhile other runs look at theirs."""
        found = known_array(op.regions[0].blocks[0].operations[0].results[0])
        op.attributes["test.mask"] = ir.StringAttr.get("none" if found is None else str(float(found[0])), op.context)


def seen(text: str = MODULE, weights: dict[str, np.ndarray] | None = None, attributes: str = "") -> set[str]:
    """What the functions of a module, in a context of its own, see of the mask."""
    with ir.Context():
        load_builtin_passes()
        module = ir.Module.parse(f"module {attributes} {{\n{text}\n}}")
        run_pipeline(module.operation, "builtin.module(func.func(test-read-mask))", weights=weights)
        functions = [op for op in module.body.operations if op.operation.name == "func.func"]
        return {ir.StringAttr(op.attributes["test.mask"]).value for op in functions}


def mask(value: float) -> dict[str, np.ndarray]:
    return {"mask": np.full(4, value, np.float32)}


def test_runs_at_the_same_time_see_their_own() -> None:
    count, rounds = 4, 20
    start = threading.Barrier(count)

    def one(number: int) -> list[set[str]]:
        start.wait()
        return [seen(weights=mask(float(number))) for _ in range(rounds)]

    with ThreadPoolExecutor(count) as threads:
        for number, results in enumerate(threads.map(one, range(count))):
            assert results == [{str(float(number))}] * rounds


def test_nothing_is_left_of_a_run() -> None:
    assert seen(weights=mask(3.0)) == {"3.0"}
    assert seen() == {"none"}
    assert seen(weights={"other": np.zeros(4, np.float32)}) == {"none"}
    assert seen(weights={"mask": np.zeros(5, np.float32)}) == {"none"}, "of another shape: not the global's"


def test_runs_within_a_run_see_their_own() -> None:
    with ir.Context():
        load_builtin_passes()
        module = ir.Module.parse(f"module {{\n{MODULE}\n}}")
        from tilewright.passes.weights import bound, weight_at

        outer, inner = mask(1.0), mask(2.0)
        with bound(module.operation, outer):
            with bound(module.operation, inner):
                assert weight_at(module.body.operations[1], "mask") is inner["mask"]
            assert weight_at(module.body.operations[1], "mask") is outer["mask"]
        assert weight_at(module.body.operations[1], "mask") is None


def test_a_module_names_a_file(tmp_path: Path) -> None:
    name = write_weights(tmp_path, mask(7.0))
    assert write_weights(tmp_path, mask(7.0)) == name, "named by what it holds"
    assert write_weights(tmp_path, mask(8.0)) != name
    assert seen(attributes=f'attributes {{{FILE} = "{tmp_path / name}"}}') == {"7.0"}
    assert seen(weights=mask(1.0), attributes=f'attributes {{{FILE} = "{tmp_path / name}"}}') == {"1.0"}
    with pytest.raises(UserError, match="there is no such file"):
        seen(attributes=f'attributes {{{FILE} = "{tmp_path / "gone.safetensors"}"}}')


def test_copies_are_runs_of_their_own() -> None:
    with ir.Context():
        load_builtin_passes()
        copy = ir.Module.parse(f"module {{\n{MODULE}\n}}").operation.clone(ip=False)
        run_pipeline(copy, "builtin.module(func.func(test-read-mask))", weights=mask(5.0))
        assert str(copy).count('test.mask = "5.0"') == FUNCTIONS
