"""From a module of the LLVM dialect to a loaded shared object: split, worker processes, linker."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tilewright.core import config
from tilewright.core.errors import InternalError, UserError
from tilewright.core.workers import Job, WorkerPool
from tilewright.mlir import ir
from tilewright.targets.cpu import linker

MODULE = """
module attributes {llvm.data_layout = "", other.thing = 1 : i64} {
  llvm.mlir.global internal constant @table(dense<[3, 4]> : tensor<2xi64>) : !llvm.array<2 x i64>
  llvm.func @twrt_launch(!llvm.ptr, !llvm.ptr, i64, i64)
  llvm.func @first(%a: !llvm.ptr, %b: i64, %e: i64, %s: !llvm.ptr) {
    %p = llvm.mlir.addressof @table : !llvm.ptr
    %v = llvm.load %p : !llvm.ptr -> i64
    %h = llvm.call @helper(%v) : (i64) -> i64
    llvm.store %h, %a : i64, !llvm.ptr
    llvm.return
  }
  llvm.func internal @helper(%v: i64) -> i64 {
    %r = llvm.add %v, %v : i64
    llvm.return %r : i64
  }
  llvm.func @"second.copy"(%a: !llvm.ptr, %b: i64, %e: i64, %s: !llvm.ptr) {
    llvm.store %b, %a : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @third(%a: !llvm.ptr, %b: i64, %e: i64, %s: !llvm.ptr) {
    llvm.store %b, %a : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @tw_main(%bufs: !llvm.ptr) {
    %n = llvm.mlir.constant(5 : i64) : i64
    %z = llvm.mlir.constant(0 : i64) : i64
    %out = llvm.load %bufs : !llvm.ptr -> !llvm.ptr
    llvm.call @first(%out, %z, %n, %out) : (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
    %next = llvm.getelementptr %out[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.call @third(%next, %n, %n, %out) : (!llvm.ptr, i64, i64, !llvm.ptr) -> ()
    %f = llvm.mlir.addressof @"second.copy" : !llvm.ptr
    llvm.return
  }
}
"""


def split(text=MODULE, entry="tw_main"):
    from tilewright.ir.units import split

    with ir.Context() as context:
        context.load_all_available_dialects()
        return split(ir.Module.parse(text), entry)


def test_split_makes_one_unit_per_function_and_shares_equal_kernels():
    units, shared = split()
    assert [unit.symbol for unit in units] == ["first", "second.copy", "tw_main"]
    assert shared == {"first": "first", "second.copy": "second.copy", "third": "second.copy"}
    first, _, main = (unit.module.decode() for unit in units)
    assert "@table" in first and "@helper" in first and "@tw_main" not in first
    assert "llvm.data_layout" in first and "other.thing" not in first
    assert "llvm.call @third" not in main and main.count("second.copy") >= 2


def test_split_refuses_what_is_not_lowered():
    with pytest.raises(InternalError, match=r"'func.func' is left at the top"):
        split("func.func private @f()")
    with pytest.raises(InternalError, match="has no function @tw_main"):
        split("llvm.func @f()")


@pytest.fixture(scope="module")
def pool():
    pool = WorkerPool(2)
    yield pool
    pool.close()


def jobs(units):
    return [Job(unit.symbol, unit.module, "x86-64", "+sse2") for unit in units]


def test_code_runs(pool, tmp_path):
    units, _ = split()
    output = tmp_path / "model.so"
    linker.link(pool.compile(jobs(units)), output)
    from tilewright.runtime.cpu import library

    code = library.load_code(output)
    results = (ctypes.c_int64 * 2)()
    code.tw_main((ctypes.c_void_p * 1)(ctypes.addressof(results)))
    assert list(results) == [6, 5]
    assert library.address(code, "second.copy") and not library.address(code, "third")
    assert os.listdir(tmp_path) == ["model.so"]


def test_a_kernel_that_llvm_refuses(pool):
    with pytest.raises(InternalError) as caught:
        pool.compile([Job("bad_kernel", b"module { llvm.func @bad( }", "x86-64", "")])
    error = caught.value
    assert "no code for kernel 'bad_kernel'" in error.message and error.location == "bad_kernel"
    assert "llvm.func @bad(" in error.ir
    assert os.system(error.command + " 2>/dev/null") != 0
    good = split()[0][1:2]
    assert pool.compile(jobs(good))[0].startswith(b"\x7fELF")


FRAGILE = """
import os, sys
from tilewright.core import worker
def emit(module, cpu, features, level):
    print("noise on stdout", flush=True)
    os.write(1, b"more noise")
    if module == b"abort":
        os.write(2, b"LLVM ERROR: out of registers")
        os.abort()
    return module.upper() + cpu.encode()
worker.serve({"object": emit})
"""


def test_a_worker_that_dies_is_started_again():
    pool = WorkerPool(1, [sys.executable, "-c", textwrap.dedent(FRAGILE)])
    try:
        for _ in range(2):
            assert pool.compile([Job("a", b"one", "c", ""), Job("b", b"three", "c", "")]) == [b"ONEc", b"THREEc"]
            with pytest.raises(InternalError, match=r"(?s)matmul_3.: .* worker died .signal 6; .*out of registers"):
                pool.compile([Job("good", b"x", "c", ""), Job("matmul_3", b"abort", "c", "")])
    finally:
        pool.close()


def test_only_workers_make_code():
    """LLVM may abort: no other part of the product, nor of its tests, calls what makes code in its own process."""
    calls = re.compile(r"\b(emit_object|emit_ptx|emit_assembly|to_llvm_ir|ExecutionEngine|gpu-module-to-binary)\b")
    root = Path(__file__).resolve().parents[3]
    found = set()
    for path in [*(root / "python/tilewright").rglob("*.py"), *(root / "test").rglob("*.py")]:
        name = str(path.relative_to(root))
        if not name.startswith("python/tilewright/mlir/") and path != Path(__file__) and calls.search(path.read_text()):
            found.add(name)
    assert found == {
        "python/tilewright/core/worker.py",  # the worker
        "python/tilewright/compiler/all_passes.py",  # names the pass that asks the workers
        "python/tilewright/pipelines/rocm_lower.py",  # text: targets/rocm/assembly.py runs it in a process of its own
        "test/lib/Target/test_emission.py",  # what is refused before there is any code
    }


def test_a_worker_that_was_idle_is_started_again():
    text = textwrap.dedent(FRAGILE).replace('{"object": emit}', '{"object": emit}, 0.05')
    pool = WorkerPool(1, [sys.executable, "-c", text])
    try:
        for pause in (0, 0.5, 0.1, 0.12):
            time.sleep(pause)
            assert pool.compile([Job("a", b"one" * 100_000, "c", "")]) == [b"ONE" * 100_000 + b"c"]
    finally:
        pool.close()


def test_linkers(monkeypatch, tmp_path):
    with config.linker.override("no-such-linker"), pytest.raises(UserError, match="TILEWRIGHT_LINKER names"):
        linker.find_linker()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(linker, "CANDIDATES", ("ld.lld-22", "cc"))
    with pytest.raises(UserError, match="no linker found .*apt-get install lld-22"):
        linker.find_linker()


def test_the_linker_fails(tmp_path):
    with pytest.raises(InternalError, match="failed: "):
        linker.link([b"not an object"], tmp_path / "model.so")
    assert os.listdir(tmp_path) == []


def test_what_the_code_calls_must_be_there(pool, tmp_path):
    text = b"""
    llvm.func @%s(f64) -> f64
    llvm.func @tw_main(%%x: f64) -> f64 {
      %%y = llvm.call @%s(%%x) : (f64) -> f64
      llvm.return %%y : f64
    }"""
    (known,) = pool.compile([Job("tw_main", text % (b"exp", b"exp"), "x86-64", "+sse2")])
    linker.link([known], tmp_path / "model.so")
    (unknown,) = pool.compile([Job("tw_main", text % (b"__no_such", b"__no_such"), "x86-64", "+sse2")])
    with pytest.raises(InternalError, match="the code calls __no_such, which neither the run-time nor the C library"):
        linker.link([unknown], tmp_path / "other.so")
    assert os.listdir(tmp_path) == ["model.so"]


@pytest.mark.parametrize("loop", [False, True])
def test_zeros_are_stored_as_vectors(pool, loop):
    """No `memset`, in a row or in a loop: code generation would make it a loop over bytes."""
    kind = "vector<8xf32>"
    row = "\n".join(
        f"""%q{i} = llvm.getelementptr %a[{i}] : (!llvm.ptr) -> !llvm.ptr, {kind}
        llvm.store %z, %q{i} {{alignment = 4 : i64}} : {kind}, !llvm.ptr"""
        for i in range(32)
    )
    looped = f"""llvm.br ^next(%b : i64)
      ^next(%i: i64):
        %q = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {kind}
        llvm.store %z, %q {{alignment = 4 : i64}} : {kind}, !llvm.ptr
        %n = llvm.add %i, %one : i64
        %c = llvm.icmp "slt" %n, %e : i64
        llvm.cond_br %c, ^next(%n : i64), ^end
      ^end:"""
    text = f"""llvm.func @zeros(%a: !llvm.ptr, %b: i64, %e: i64, %s: !llvm.ptr) {{
      %z = llvm.mlir.constant(dense<0.0> : {kind}) : {kind}
      %one = llvm.mlir.constant(1 : i64) : i64
      {looped if loop else row}
      llvm.return
    }}"""
    (code,) = pool.compile([Job("zeros", text.encode(), "x86-64-v3", "+avx2", code="llvm-ir")])
    assert b"store <8 x float> zeroinitializer" in code and b"memset" not in code


@pytest.mark.parametrize("name", ["/usr/bin/cc", "/usr/bin/ld.lld"])
def test_link_commands(name):
    command = linker.link_command(name, ["0.o"], "m.so")
    assert command[0] == name and command[-1] == "0.o"
    assert ("-Wl,-Bsymbolic" in command) == name.endswith("cc")
    assert ("-Wl,-z,noexecstack" in command) == name.endswith("cc")
