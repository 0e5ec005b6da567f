# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python passes, run from Python: nested, threaded, mixed with C++ ones, with options."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from adding_functions import functions

from tilewright.core.errors import UserError
from tilewright.mlir import ir
from tilewright.passes import Pass, load_file, option, register, run_pipeline

USER_PASSES = Path(__file__).parents[2] / "tools/tile-opt/Inputs/user_passes.py"
load_file(USER_PASSES)


def marks(module: ir.Module) -> list[str]:
    return [op.attributes["test.mark"].value for op in module.body]


def test_options_reach_the_pass() -> None:
    module = functions(1)
    run_pipeline(module, "builtin.module(func.func(test-mark{label=a max-rows=-3 scale=0.25 fast sizes=7 names=p,q}))")
    assert marks(module) == ["a -3 0.25 True 7 p+q"]


def test_remarks_of_many_threads() -> None:
    module = functions(24)
    done = run_pipeline(module, "builtin.module(func.func(cse,test-tell,canonicalize))")
    assert [(d.severity, d.message) for d in done.diagnostics] == [("remark", "3 operations")] * 24


def test_defaults() -> None:
    module = functions(1)
    run_pipeline(module, "builtin.module(func.func(test-mark))")
    assert marks(module) == ["none 8 0.5 False 4x8"]


def test_mixed_with_cpp_passes() -> None:
    module = functions(2)
    pipeline = "builtin.module(canonicalize,func.func(cse,test-mark{label=m},test-make-exp),tile-count-ops,cse)"
    report = run_pipeline(module, pipeline)
    counts = {named.name: named.attr.value for named in module.operation.attributes["tile.op_count"]}
    assert counts == {"arith.addf": 4, "func.func": 2, "func.return": 2, "math.exp": 2}
    assert [name.partition("(")[0] for name, _ in report.timings] == [
        "canonicalize", "func.func", "tile-count-ops", "cse",
    ]  # fmt: skip


def test_nested_and_threaded() -> None:
    module = functions(24)
    run_pipeline(module, "builtin.module(func.func(test-mark,cse,test-thread-id,canonicalize))")
    assert len(marks(module)) == 24
    threads = {op.attributes["test.thread"].value for op in module.body}
    assert len(threads) > 1, "all ran on one thread"


def test_many_runs_in_one_process() -> None:
    for _ in range(20):
        module = functions(4)
        run_pipeline(module, "builtin.module(func.func(test-mark,cse))")
        assert len(marks(module)) == 4


def test_two_python_threads_at_once() -> None:
    def work() -> list[str]:
        module = functions(8)
        run_pipeline(module, "builtin.module(func.func(test-mark,test-thread-id,cse))")
        return marks(module)

    with ThreadPoolExecutor(4) as pool:
        results = [job.result(timeout=60) for job in [pool.submit(work) for _ in range(8)]]
    assert all(len(result) == 8 for result in results)


def test_pipeline_inside_a_pass() -> None:
    @register
    @dataclass(frozen=True)
    class Inner(Pass):
        """Run a pipeline on the function."""

        name: ClassVar[str] = "test-inner"
        anchor: ClassVar[str | None] = "func.func"

        def run(self, op: ir.Operation) -> None:
            run_pipeline(op, "func.func(test-mark{label=inner},cse)")

    module = functions(6)
    run_pipeline(module, "builtin.module(func.func(test-inner))")
    assert [mark.split()[0] for mark in marks(module)] == ["inner"] * 6


def test_define_a_pass_again() -> None:
    for text in ("one", "two"):

        @register
        @dataclass(frozen=True)
        class Again(Pass):
            """Set an attribute."""

            name: ClassVar[str] = "test-again"
            value: str = text

            def run(self, op: ir.Operation) -> None:
                op.attributes["test.again"] = ir.StringAttr.get(self.value)

        module = functions(1)
        run_pipeline(module, "builtin.module(test-again)")
        assert module.operation.attributes["test.again"].value == text


def test_replaced_pass_is_released() -> None:
    def define() -> weakref.ref:
        @register
        @dataclass(frozen=True)
        class Short(Pass):
            """Do nothing."""

            name: ClassVar[str] = "test-short"

            def run(self, op: ir.Operation) -> None:
                pass

        return weakref.ref(Short)

    first = define()
    define()
    gc.collect()
    assert first() is None


@pytest.mark.parametrize(
    ("pipeline", "words"),
    [
        ("builtin.module(no-such-pass)", "no-such-pass"),
        ("builtin.module(func.func(test-mark{max-rows=many}))", "max-rows"),
        ("builtin.module(func.func(test-mark{nothing=1}))", "nothing"),
        ("builtin.module(test-mark", "expected"),
        ("builtin.module(test-mark)", "test-mark"),
    ],
)
def test_wrong_pipeline_is_a_user_error(pipeline: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        run_pipeline(functions(1), pipeline)


def make_pass(**body: object) -> type:
    return dataclass(frozen=True)(type("Made", (Pass,), {"name": "test-made", "__doc__": "Made.", **body}))


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        ({"name": ""}, TypeError, "no name"),
        ({"name": "canonicalize"}, ValueError, "exists already"),
        ({"dialects": ("nope",)}, ValueError, "unknown dialect 'nope'"),
        ({"__annotations__": {"a": dict}, "a": option(None, "")}, TypeError, "use bool, int"),
        ({"__annotations__": {"a": int}}, TypeError, "default"),
    ],
)
def test_malformed_pass(body: dict, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        register(make_pass(**body))


def test_pass_must_be_a_dataclass() -> None:
    with pytest.raises(TypeError, match="dataclass"):
        register(type("Plain", (Pass,), {"name": "test-plain"}))
