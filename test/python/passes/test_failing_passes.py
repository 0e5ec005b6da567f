# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What comes out when a pass fails: type, message, location, IR, and a command that fails again."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tilewright.core import config
from tilewright.core.errors import InternalError, UnsupportedError
from tilewright.mlir import ir
from tilewright.mlir._mlir_libs import _tilewright
from tilewright.passes import load_file, run_pipeline
from tilewright.passes.text import leaf_name, single_passes, split_passes

USER_PASSES = Path(__file__).parents[2] / "tools/tile-opt/Inputs/user_passes.py"
load_file(USER_PASSES)

TEXT = """
func.func @good(%x: f32) -> f32 { return %x : f32 }
func.func @bad(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32 loc("the node")
  %1 = arith.addf %x, %x : f32
  %2 = arith.addf %0, %1 : f32
  return %2 : f32
} loc("the function")
"""


def parse(text: str = TEXT) -> ir.Module:
    with ir.Context():
        return ir.Module.parse(text)


def rerun(command: str) -> subprocess.CompletedProcess:
    """Run the command of an error with this interpreter's tile-opt."""
    words = shlex.split(command)
    assert words[0] == "tile-opt"
    tool = [sys.executable, "-m", "tilewright.tools.tile_opt"]
    return subprocess.run([*tool, *words[1:]], capture_output=True, text=True)


def test_python_pass_raises(tmp_path: Path) -> None:
    with pytest.raises(InternalError) as caught:
        run_pipeline(parse(), "builtin.module(func.func(cse,test-fail),canonicalize)", dump_dir=tmp_path)
    error = caught.value
    assert isinstance(error.__cause__, ValueError)
    assert "'test-fail' failed: ValueError: a bad function" in error.message
    assert error.location == "the function"
    saved = (tmp_path / "before_test-fail.mlir").read_text()
    assert saved.count("arith.addf") == 2, "cse before the failing pass must have run"
    again = rerun(error.command)
    assert again.returncode != 0
    assert "ValueError: a bad function" in again.stderr


def test_cpp_pass_fails(tmp_path: Path) -> None:
    text = """
    func.func @f() {
      %0 = tensor.empty() : tensor<4xf32>
      %1 = "some.op"(%0) : (tensor<4xf32>) -> tensor<4xf32>
      return
    }"""
    pipeline = "builtin.module(func.func(cse,test-mark),one-shot-bufferize)"
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
    with pytest.raises(InternalError, match="'one-shot-bufferize' failed: ") as caught:
        run_pipeline(module, pipeline, dump_dir=tmp_path)
    error = caught.value
    assert error.__cause__ is None
    assert "test.mark" in (tmp_path / "before_one-shot-bufferize.mlir").read_text()
    assert "some.op" in error.ir
    again = rerun(error.command)
    assert again.returncode != 0
    assert error.message.partition("failed: ")[2] in again.stderr


def test_unsupported_keeps_type_and_names_the_op(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        run_pipeline(parse(), "builtin.module(func.func(test-fail{how=unsupported}))", dump_dir=tmp_path)
    error = caught.value
    assert error.message == "this function is too bad to compile"
    assert error.location == "the node"
    assert "too bad" in rerun(error.command).stderr


@pytest.mark.parametrize("verify", [None, True, False])
@pytest.mark.parametrize("after", ["", ",cse"])
def test_invalid_ir_names_the_pass_that_made_it(tmp_path: Path, verify: bool | None, after: str) -> None:
    """Verified once, behind the last pass, too; where passes are a user's, without a word of it."""
    pipeline = f"builtin.module(func.func(test-fail{{how=break}}{after}))"
    with (
        config.verify.override(False),
        pytest.raises(InternalError, match="'test-fail' failed: .*function_type") as caught,
    ):
        run_pipeline(parse(), pipeline, dump_dir=tmp_path, verify=verify)
    assert "test-fail" in caught.value.command


def test_what_the_verifier_says_is_told_where_nothing_is_run_again() -> None:
    """In a process of its own or in a bisection no IR before the run is kept; what is wrong is said all the same."""
    with pytest.raises(InternalError, match="function_type") as caught:
        run_pipeline(parse(), "builtin.module(func.func(test-fail{how=break}))", verify=False, replay=False)
    assert caught.value.location == "the function"


def test_a_run_that_is_interrupted_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not run again to be verified."""
    runs, run = [], _tilewright.run
    monkeypatch.setattr(_tilewright, "run", lambda *args, **named: runs.append(args) or run(*args, **named))
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(parse(), "builtin.module(func.func(test-fail{how=interrupt}),cse)", verify=False)
    assert len(runs) == 1


def test_verified_once_where_all_passes_are_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    run = _tilewright.run

    def noted(*args: Any, **named: Any) -> Any:
        asked.append(named["verify"])
        return run(*args, **named)

    monkeypatch.setattr(_tilewright, "run", noted)
    for setting, pipeline in [(False, "cse"), (True, "cse"), (False, "cse,func.func(test-mark)")]:
        with config.verify.override(setting):
            run_pipeline(parse(), f"builtin.module({pipeline})")
    with config.verify.override(False):
        run_pipeline(parse(), "builtin.module(cse)", replay=False)
    assert asked == [False, True, True, True]


def test_without_dump_dir_the_ir_goes_to_a_temporary_file() -> None:
    with pytest.raises(InternalError) as caught:
        run_pipeline(parse(), "builtin.module(func.func(test-fail))")
    path = Path(shlex.split(caught.value.command)[1])
    assert "@bad" in path.read_text()
    assert "mlir_reproducer" in path.read_text()


def test_dump_after_each_pass(tmp_path: Path) -> None:
    run_pipeline(parse(), "builtin.module(cse,func.func(test-mark{label=x}),canonicalize)", dump_dir=tmp_path / "ir")
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert [name[:8] for name in names] == ["001_cse.", "002_func", "003_cano"]
    assert "test.mark" not in (tmp_path / "ir" / names[0]).read_text()
    assert "test.mark" in (tmp_path / "ir" / names[1]).read_text()


def test_print_ir_and_timing(capfd: pytest.CaptureFixture) -> None:
    run_pipeline(parse(), "builtin.module(cse,func.func(test-mark))", print_ir=True, timing=True)
    printed = capfd.readouterr().err
    assert "IR Dump After" in printed
    assert "test-mark" in printed.partition("Execution time report")[2]


def test_split_text() -> None:
    assert split_passes("a{x=1,2},b(c,d{y=f(g)}),e") == ["a{x=1,2}", "b(c,d{y=f(g)})", "e"]
    assert list(single_passes("m(a,f(b{o=p(q)},any(c)))")) == ["m(a)", "m(f(b{o=p(q)}))", "m(f(any(c)))"]
    assert leaf_name("m(f(b{o=p(q)}))") == "b"
