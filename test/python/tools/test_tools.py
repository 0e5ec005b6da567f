# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools as commands: start time, no needless imports, the language server, reduction."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

INPUTS = Path(__file__).parents[2] / "tools/tile-opt/Inputs"
MODULE = """
func.func @f(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  %1 = arith.mulf %x, %x : f32
  return %0 : f32
}
"""


def run_tool(name: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", f"tilewright.tools.{name}", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


def test_tile_opt_imports_little() -> None:
    """What a start costs, as a count: 430 modules, of which 255 are ours (passes that can be asked for), none large."""
    command = [sys.executable, "-X", "importtime", "-m", "tilewright.tools.tile_opt", "--cse", "-"]
    done = subprocess.run(command, input=MODULE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    lines = (line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:"))
    names = [line[2].strip() for line in lines]
    assert "tilewright.passes.registry" in names
    assert not {"numpy", "onnx", "torch", "onnxruntime", "ml_dtypes"} & set(names)
    assert len([name for name in names if name.startswith("tilewright")]) < 265 and len(names) < 460


def test_tile_opt_imports_no_heavy_modules() -> None:
    program = (
        "import sys\n"
        "from tilewright.tools import common, tile_opt\n"
        "common.delay_numpy()\n"
        "common.load_passes([])\n"
        "heavy = {'numpy.linalg', 'onnx', 'torch', 'onnxruntime'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import numpy\n"
        "from numpy.linalg import norm\n"
        "assert norm(numpy.ones(4)) == 2.0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_version_and_dialects() -> None:
    shown = run_tool("tile_opt", "--show-dialects").stdout
    assert "linalg" in shown
    assert "tile" in shown.replace(",", "\n").split()


def test_lsp_server_answers() -> None:
    request = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"processId": os.getpid(), "rootUri": None, "capabilities": {}},
        }
    )
    farewell = [{"jsonrpc": "2.0", "id": 2, "method": "shutdown"}, {"jsonrpc": "2.0", "method": "exit"}]
    messages = [request, *(json.dumps(message) for message in farewell)]
    stdin = "".join(f"Content-Length: {len(message)}\r\n\r\n{message}" for message in messages)
    answer = run_tool("tile_lsp_server", stdin=stdin)
    assert '"completionProvider"' in answer.stdout
    assert answer.returncode == 0


def test_reduce(tmp_path: Path) -> None:
    """The tester finds the bug (exit status 1) as long as a mulf is left; the dead addf goes.

    Not tested with --reduction-tree: LLVM 22's own mlir-reduce crashes on it.
    """
    source, script = tmp_path / "in.mlir", tmp_path / "tester.sh"
    source.write_text(MODULE.replace("return %0", "return %1"))
    script.write_text('#!/bin/sh\nif grep -q arith.mulf "$1"; then exit 1; fi\nexit 0\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    result = run_tool("tile_reduce", str(source), f"--opt-reduction-pass=opt-pass=canonicalize test={script}")
    assert result.returncode == 0, result.stderr
    assert "arith.mulf" in result.stdout
    assert "arith.addf" not in result.stdout


PRODUCT = (
    "func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x64xf32>, %c: tensor<4x64xf32>) -> tensor<4x64xf32> {\n"
    "%0 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x64xf32>) outs(%c : tensor<4x64xf32>)"
    " -> tensor<4x64xf32>\nreturn %0 : tensor<4x64xf32>\n}\n"
)


def test_phases_by_name() -> None:
    """Every phase of the CPU pipeline is a pass of tile-opt, and its documentation tells the reasons."""
    from tilewright.pipelines.cpu import PIPELINE

    listed = run_tool("tile_opt", "--help").stdout
    for phase in PIPELINE.phases:
        assert f"--tile-cpu-{phase.name} " in listed
        document = run_tool("tile_opt", "--pass-doc", f"tile-cpu-{phase.name}").stdout
        assert all(spec.reason in document for spec in phase.passes)


def test_text_of_a_phase_does_the_same_as_its_name(tmp_path: Path) -> None:
    from tilewright.pipelines.cpu import PIPELINE

    source = tmp_path / "in.mlir"
    source.write_text(PRODUCT)
    text = str(PIPELINE.phase("normalize"))
    by_text = run_tool("tile_opt", str(source), f"--pass-pipeline={text}")
    by_name = run_tool("tile_opt", str(source), "--pass-pipeline=builtin.module(tile-cpu-normalize)")
    by_flag = run_tool("tile_opt", str(source), "--tile-cpu-normalize")
    assert by_text.stderr == ""
    assert "linalg.generic" in by_text.stdout
    assert by_text.stdout == by_name.stdout == by_flag.stdout


def test_phases_mean_the_same_for_every_machine(tmp_path: Path) -> None:
    """The device stands on the module: a phase by name plans for it, and says where it does not know it."""
    source = tmp_path / "in.mlir"
    source.write_text(PRODUCT)

    def planned(*target: str) -> subprocess.CompletedProcess:
        return run_tool("tile_opt", str(source), *target, "--tile-cpu-normalize", "--tile-cpu-plan")

    wide, narrow = (planned(f"--tile-set-target=target=cpu:x86-64-v{n}").stdout for n in (4, 3))
    assert "units = {" in wide and "vector_bits = 512" in wide and "vector_bits = 256" in narrow
    assert wide.split("func.func")[1] != narrow.split("func.func")[1]
    nothing = planned()
    assert nothing.returncode == 1
    assert "`tile.device`" in nothing.stderr and "tile-set-target" in nothing.stderr
    gpu = planned("--tile-set-target=target=cuda:sm_80")
    assert gpu.returncode == 1
    assert "makes code for a CPU, and the module's device 'nvidia-sm80' is a GPU" in gpu.stderr
