# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code from modules of the LLVM dialect: lib/Target, in a worker process, since LLVM may abort."""

from __future__ import annotations

import pytest

from lib.Conversion.native import emit
from tilewright.core.errors import InternalError
from tilewright.mlir import ir
from tilewright.mlir._mlir_libs import _tilewright

ADD = """module {
  llvm.func @add(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
    %0 = llvm.fadd %x, %y : vector<16xf32>
    llvm.return %0 : vector<16xf32>
  }
}"""


def test_object_is_an_elf_relocatable() -> None:
    """Text and bytecode give the same code; each function has its own section."""
    code = emit("object", ADD, "x86-64-v3", "")
    assert code[:4] == b"\x7fELF"
    assert code[16] == 1  # ET_REL
    assert b".text.add" in code
    with ir.Context():
        bytecode = ir.Module.parse(ADD).operation.get_asm(binary=True)
    assert emit("object", bytecode, "x86-64-v3", "") == code


def test_cpu_decides_the_registers() -> None:
    """512 bits where the CPU has them, although LLVM's Intel tuning prefers 256."""
    assert b"zmm" in emit("assembly", ADD, "sapphirerapids", "")
    assert b"zmm" not in emit("assembly", ADD, "haswell", "")
    assert b'"prefer-vector-width"="512"' in emit("llvm-ir", ADD, "sapphirerapids", "")
    assert b'"target-features"="-avx512f"' in emit("llvm-ir", ADD, "skylake", "-avx512f")


SCALE = """module {
  llvm.func @scale(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<16xf32> {
    %all = llvm.mlir.constant(-1 : i16) : i16
    %rounding = llvm.mlir.constant(4 : i32) : i32
    %0 = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%x, %y, %x, %all, %rounding)
      : (vector<16xf32>, vector<16xf32>, vector<16xf32>, i16, i32) -> vector<16xf32>
    llvm.return %0 : vector<16xf32>
  }
}"""


def test_an_abort_of_llvm_is_an_exception() -> None:
    """An instruction that the CPU lacks: LLVM ends its process, and this one names the kernel and goes on."""
    assert b"vscalefps" in emit("assembly", SCALE, "sapphirerapids", "")
    with pytest.raises(
        InternalError, match="no code for kernel 'test': the compile worker died .signal 6; it said: LLVM ERROR"
    ):
        emit("object", SCALE, "haswell", "")
    assert emit("object", ADD, "haswell", "")[:4] == b"\x7fELF"


def _register_tile(rows: int, vectors: int, lanes: int, steps: int = 4) -> str:
    """Sums of rows x vectors over a loop of some steps: each loads vectors of weights, and an element for each row."""
    kind, count = f"vector<{lanes}xf32>", rows * vectors
    sums = [f"%s{i}" for i in range(count)]
    lines = []

    def load(name: str, base: str, offset: int, type_: str) -> None:
        lines.append(f"{name}_at = llvm.getelementptr {base}[{offset}] : (!llvm.ptr) -> !llvm.ptr, f32")
        lines.append(f"{name} = llvm.load {name}_at {{alignment = 4 : i64}} : !llvm.ptr -> {type_}")

    for u in range(steps):
        for v in range(vectors):
            load(f"%w{u}_{v}", "%w", (u * vectors + v) * lanes, kind)
        for r in range(rows):
            x = f"%x{u}_{r}"
            load(x, "%x", u * rows + r, "f32")
            lines.append(f"{x}_one = llvm.insertelement {x}, %none[%first : i64] : {kind}")
            lines.append(f"{x}_all = llvm.shufflevector {x}_one, %none [{', '.join('0' * lanes)}] : {kind}")
            for v in range(vectors):
                i, new = r * vectors + v, f"%s{u}_{r}_{v}"
                lines.append(
                    f"{new} = llvm.intr.fma({x}_all, %w{u}_{v}, {sums[i]}) : ({kind}, {kind}, {kind}) -> {kind}"
                )
                sums[i] = new
    body, zeros = "\n    ".join(lines), ", ".join(["%zero"] * count)
    kinds = ", ".join([kind] * count)
    stores = []
    for i in range(count):
        stores.append(f"%y{i} = llvm.getelementptr %out[{i * lanes}] : (!llvm.ptr) -> !llvm.ptr, f32")
        stores.append(f"llvm.store %t{i}, %y{i} {{alignment = 4 : i64}} : {kind}, !llvm.ptr")
    heads, tails = (", ".join(f"%{name}{i}: {kind}" for i in range(count)) for name in "st")
    behind = "\n    ".join(stores)
    return f"""module {{
  llvm.func @tile(%xs: !llvm.ptr {{llvm.noalias}}, %ws: !llvm.ptr {{llvm.noalias}}, %out: !llvm.ptr {{llvm.noalias}},
                  %n: i64) {{
    %none = llvm.mlir.poison : {kind}
    %zero = llvm.mlir.zero : {kind}
    %first = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    llvm.br ^body(%first, {zeros} : i64, {kinds})
  ^body(%i: i64, {heads}):
    %x = llvm.getelementptr %xs[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<{steps * rows} x f32>
    %w = llvm.getelementptr %ws[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<{steps * vectors * lanes} x f32>
    {body}
    %next = llvm.add %i, %one : i64
    %more = llvm.icmp "slt" %next, %n : i64
    llvm.cond_br %more, ^body(%next, {", ".join(sums)} : i64, {kinds}), ^behind({", ".join(sums)} : {kinds})
  ^behind({tails}):
    {behind}
    llvm.return
  }}
}}"""


@pytest.mark.parametrize(("cpu", "rows", "lanes"), [("haswell", 6, 8), ("znver3", 6, 8), ("sapphirerapids", 12, 16)])
def test_register_tiles_do_not_spill(cpu: str, rows: int, lanes: int) -> None:
    """Tiles as products take them, some steps a round: nothing goes through the stack."""
    code = emit("assembly", _register_tile(rows, 2, lanes), cpu, "").decode()
    assert code.count("vfmadd") >= 8 * rows
    assert "rsp" not in code


def _recurrence(copies: int) -> str:
    """a[i + 1] = a[i] + 1, beside some copies from b to c."""
    lines = []
    for i in range(copies):
        lines.append(f"%f{i} = llvm.getelementptr %b[%i, {i}] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<64 x f32>")
        lines.append(f"%t{i} = llvm.getelementptr %c[%i, {i}] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<64 x f32>")
        lines.append(f"%v{i} = llvm.load %f{i} : !llvm.ptr -> f32")
        lines.append(f"llvm.store %v{i}, %t{i} : f32, !llvm.ptr")
    body = "\n    ".join(lines)
    return f"""module {{
  llvm.func @scan(%a: !llvm.ptr {{llvm.noalias}}, %b: !llvm.ptr {{llvm.noalias}},
                  %c: !llvm.ptr {{llvm.noalias}}, %n: i64) {{
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %step = llvm.mlir.constant(1.0 : f32) : f32
    llvm.br ^body(%zero : i64)
  ^body(%i: i64):
    %next = llvm.add %i, %one overflow<nsw, nuw> : i64
    %from = llvm.getelementptr inbounds %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %to = llvm.getelementptr inbounds %a[%next] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %old = llvm.load %from : !llvm.ptr -> f32
    %new = llvm.fadd %old, %step : f32
    llvm.store %new, %to : f32, !llvm.ptr
    {body}
    %more = llvm.icmp "slt" %next, %n : i64
    llvm.cond_br %more, ^body(%next : i64), ^end
  ^end:
    llvm.return
  }}
}}"""


def test_recurrences_of_small_loops_stay_in_registers() -> None:
    """The pass that finds them compares all pairs of loads and stores: large functions go without."""
    assert b"phi float" in emit("llvm-ir", _recurrence(8), "haswell", "")


def test_ptx() -> None:
    """A kernel entry for a GPU."""
    text = """module {
  llvm.func @k(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %0 = llvm.mlir.constant(1.0 : f32) : f32
    llvm.store %0, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}"""
    ptx = emit("ptx", text, "sm_90a", "").decode()
    assert ".target sm_90a" in ptx
    assert ".entry k(" in ptx


@pytest.mark.parametrize(
    "module,cpu,message",
    [
        ("module {", "haswell", "the module cannot be read"),
        ("func.func private @f()", "haswell", "the module is not all LLVM dialect"),
        (ADD, "i8087", "LLVM knows no CPU named 'i8087'"),
    ],
)
def test_errors_are_exceptions(module: str, cpu: str, message: str) -> None:
    """What is wrong is said, and the process lives on."""
    with pytest.raises(ValueError, match=message):
        _tilewright.emit_object(module, cpu, "", 3)


def test_module_must_be_text_or_bytes() -> None:
    """Anything else is a TypeError."""
    with pytest.raises(TypeError, match="bytes"):
        _tilewright.emit_object(3, "haswell", "", 3)
