# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile time and memory: nothing grows faster than the graph, and the bench tells the truth."""

from __future__ import annotations

import cProfile
import pstats
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import models
import tilewright as tw
from bench.compiling import programs
from bench.compiling.__main__ import file_of, lines, measure, misses, names_of
from bench.compiling.graphs import GRAPHS
from bench.compiling.memory import PeakMemory, resident, tree
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.plan.graph.nests import MOST_OPS


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS)
def test_planning_does_work_in_proportion_to_the_graph(graph: str) -> None:
    """Function calls are counted, since seconds depend on the machine."""
    tw.compile(GRAPHS[graph](50).SerializeToString(), stop_after="plan")  # imports
    calls = {}
    for nodes in (200, 800):
        model = GRAPHS[graph](nodes).SerializeToString()
        with cProfile.Profile() as profile:
            tw.compile(model, stop_after="plan")
        calls[nodes] = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    assert calls[800] < 1.35 * 4 * calls[200]


def test_no_task_holds_more_operations_than_a_compiler_likes() -> None:
    text = tw.compile(GRAPHS["chain"](400).SerializeToString(), stop_after="normalize")
    with ir.Context():
        module = ir.Module.parse(text)
        run_pipeline(module.operation, "builtin.module(tile-materialize-fills,tile-plan-fusion)")
        sizes: Counter[str] = Counter()

        def count(op: ir.Operation) -> ir.WalkResult:
            if "tile.task" in op.attributes:
                sizes[str(op.attributes["tile.task"])] += 1
            return ir.WalkResult.ADVANCE

        module.operation.walk(count)
    assert max(sizes.values()) == MOST_OPS


@pytest.mark.parametrize(("name", "kernels", "operations"), [("densenet_tiny", 30, 1000), ("swin_tiny", 30, 6000)])
def test_code_stays_small(name: str, kernels: int, operations: int) -> None:
    """What LLVM gets is counted, since seconds depend on the machine: kernels, and operations of the largest one."""
    with ir.Context():
        module = ir.Module.parse(tw.compile(models.path(name), stop_after="lower"))
        functions = [op for op in module.body.operations if decisions.CODE.on(op.operation)]
        sizes = [str(op).count("\n") for op in functions]
    assert len(sizes) <= kernels
    assert max(sizes) <= operations


def test_memory_counts_what_a_process_starts() -> None:
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = bytearray(1 << 27); input()'])"
    with (
        subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE) as process,
        PeakMemory(process.pid, interval=0.005) as memory,
    ):
        while memory.bytes < 1 << 27 and process.poll() is None:
            pass
        assert len(tree(process.pid)) == 2
        process.communicate(b"\n")
    assert memory.processes == 2
    assert resident(process.pid) == 0


def test_a_compilation_is_measured_in_a_process_of_its_own(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    found = measure(file_of("chain:24", tmp_path), workers=1)
    assert found["compile"] > sum(found["phases"].values()) > 0
    assert found["peak_bytes"] > 100 << 20
    assert "chain:24" in next(lines("chain:24", found, top=1))
    slow = {**found, "compile": 13.0, "peak_bytes": 4 << 30}
    assert len(list(misses({"bert_base": [slow]}))) == 2
    steep = {"chain:10": [{**found, "compile": 1.0}], "chain:20": [{**found, "compile": 4.0}]}
    assert [line.split(":")[0] for line in misses(steep)] == ["chain"]


def test_programs_on_lists_are_cases_of_the_suites() -> None:
    assert {program for program in programs.CASES if program.startswith("dilated_lstm_d6")} >= {"dilated_lstm_d6_b256"}
    assert names_of(["lists"]) == list(programs.CASES)
    assert all(name in programs.CASES for pair in programs.GROWTH for name in pair[:2])


def test_time_may_grow_in_proportion_to_the_depth(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    case = programs.CASES["b2b_gemm"]
    found = measure(programs.path_of("b2b_gemm"), workers=1, program=case.program, bytecode=tmp_path)
    assert found["compile"] > 0 and found["kernels"] > 0
    assert any(tmp_path.rglob("*.pyc"))
    shallow, deep, ratio = programs.GROWTH[0]
    for factor, missed in ((0.9, 0), (1.1, 1)):
        seconds = {shallow: 1.0, deep: factor * ratio}
        runs = {name: [{**found, "compile": 1e-3 * value}] for name, value in seconds.items()}
        assert len(list(misses(runs))) == missed
