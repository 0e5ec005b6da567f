# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One textual pipeline mixes Python and C++ passes: nested and threaded, in `tile-opt` and from Python alike."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tilewright.mlir import ir
from tilewright.passes import load_builtin_passes, load_file, registered_passes, run_pipeline
from tilewright.pipelines.cpu import PIPELINE

USER_PASSES = Path(__file__).parents[2] / "tools/tile-opt/Inputs/user_passes.py"
MIXED = (
    "builtin.module(canonicalize,"
    "func.func(cse,test-mark{label=m sizes=2,4},test-thread-id,canonicalize,test-make-exp),tile-count-ops,cse)"
)
COUNT = 16


def source() -> str:
    body = (
        "%0 = arith.addf %x, %x : f32\n %1 = arith.addf %x, %x : f32\n %2 = arith.mulf %0, %1 : f32\n return %2 : f32"
    )
    return "\n".join(f"func.func @f{i}(%x: f32) -> f32 {{\n {body}\n}}" for i in range(COUNT))


def tile_opt(file: Path, *options: str) -> str:
    command = [sys.executable, "-m", "tilewright.tools.tile_opt", str(file), "--load-python", str(USER_PASSES)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def without_threads(text: str) -> tuple[str, set[str]]:
    """The text without the threads' numbers, and the numbers."""
    written = re.compile(r'test\.thread = "(\d+)"')
    return written.sub("", text), set(written.findall(text))


def test_tool_and_library_agree_with_and_without_threads(tmp_path: Path) -> None:
    file = tmp_path / "in.mlir"
    file.write_text(source())
    threaded, many = without_threads(tile_opt(file, f"--pass-pipeline={MIXED}"))
    alone, one = without_threads(tile_opt(file, f"--pass-pipeline={MIXED}", "--mlir-disable-threading"))
    load_file(USER_PASSES)
    with ir.Context():
        module = ir.Module.parse(source())
    run_pipeline(module.operation, MIXED)
    here, also_many = without_threads(str(module).strip())
    assert threaded == alone == here
    assert len(many) > 1 and len(also_many) > 1, "the functions were all given to one thread"
    assert len(one) == 1
    # Every pass did its work, the C++ ones before, between and behind the Python ones.
    assert threaded.count("math.exp %") == COUNT
    assert threaded.count("arith.addf %") == COUNT, "cse merges the two sums"
    assert f"math.exp = {COUNT} : i64" in threaded
    assert threaded.count('test.mark = "m 8 0.5 False 2x4') == COUNT


def test_the_pipeline_of_the_cpu_is_mixed() -> None:
    load_builtin_passes()
    python = set(registered_passes())
    for name in ("normalize", "plan"):
        names = {spec.name for spec in PIPELINE.phase(name).passes}
        assert names & python and names - python, f"phase {name} has passes of one language only"
