# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fault injection: what mutants are made, how they are judged, and that a sample of them is caught."""

import numpy as np
import pytest
import tensor_kernels
from ptx_text import kernel

from faulting import mutate
from tilewright.sim import ptx as emulate

TEXT = """
.visible .entry k(.param .u64 p) {
  .reg .b32 %r<9>; // mbarrier.init in a comment
$L__BB0_1:
  mbarrier.init.shared.b64 [full+8], 2;
  bar.sync 1, 256;
  cp.async.wait_group 1;
  @%p1 bra $L__BB0_1;
  { .reg .pred P1; mbarrier.try_wait.parity.shared.b64 P1, [full], %r3, 10000000; @P1 bra $D; }
  mbarrier.arrive.expect_tx.shared.b64 %rd1, [full], %r4;
  shl.b32 %r1, %r2, 7;
  ld.shared.u32 %r5, [%r1];
  ret;
}
"""


def _after(kind):
    return [m.after for m in mutate.mutants(TEXT) if m.kind == kind]


def test_statements_know_their_lines():
    code = mutate.statements(TEXT)
    assert [one.op for one in code][:4] == ["mbarrier.init.shared.b64", "bar.sync", "cp.async.wait_group", "bra"]
    assert [one.line for one in code][:4] == [5, 6, 7, 8]
    assert code[3].guarded and code[1].operands == "1, 256"


def test_kinds_of_mutants():
    assert _after("count") == ["cp.async.wait_group 2;", "cp.async.wait_group 0;"]
    assert _after("barrier") == ["bar.sync 7, 256;", "bar.sync 1, 224;", "bar.sync 1, 288;"]
    assert "setp.eq.u32 P1, 0, 0;" in _after("drop")
    assert any("mov.b32 %mutant, 3" in text for text in _after("arrivals"))
    assert any("xor.b32 %mutant, %r3, 1" in text for text in _after("parity"))
    assert any("add.s32 %mutant, %mutant, -16" in text for text in _after("bytes"))
    assert "shl.b32 %r1, %r2, 8;" in _after("address")
    assert any(text.startswith("cp.async.wait_group 1; bar.sync 1, 256;") for text in _after("move"))


def test_orders_of_accesses_that_others_wait_for():
    text = """
.visible .entry k(.param .u64 p) {
  atom.release.gpu.global.add.u32 %r1, [%rd1], 1;
  ld.acquire.gpu.global.u32 %r2, [%rd1];
  ld.relaxed.gpu.global.u32 %r3, [%rd1];
}
"""
    assert [m.after for m in mutate.mutants(text) if m.kind == "order"] == [
        "atom.relaxed.gpu.global.add.u32 %r1, [%rd1], 1;",
        "atom.release.cta.global.add.u32 %r1, [%rd1], 1;",
        "ld.relaxed.gpu.global.u32 %r2, [%rd1];",
        "ld.acquire.cta.global.u32 %r2, [%rd1];",
    ]


def test_numbers_that_no_address_is_made_of_stay():
    text = """
.visible .entry k(.param .u64 p) {
  add.s32 %r1, %r0, 32767;
  shl.b32 %r2, %r5, 2;
  add.s64 %rd2, %rd1, %r2;
  st.global.u32 [%rd2+8], %r1;
}
"""
    changed = {m.before for m in mutate.mutants(text)}
    assert changed == {"shl.b32 %r2, %r5, 2;", "st.global.u32 [%rd2+8], %r1;"}


def test_every_mutant_differs_and_names_its_line():
    for mutant in mutate.mutants(TEXT):
        around = " ".join(" ".join(TEXT.splitlines()[mutant.line - 2 : mutant.line + 1]).split())
        assert mutant.text != TEXT and mutant.before in around


def test_sample_has_all_kinds_and_is_reproducible():
    found = mutate.mutants(TEXT)
    chosen = mutate.sample(found, 9, seed=3)
    assert {m.kind for m in chosen} == {m.kind for m in found}
    assert chosen == mutate.sample(mutate.mutants(TEXT), 9, seed=3)


def _verdict(case, kind, line_text):
    found = [m for m in mutate.mutants(case.ptx()) if m.kind == kind and line_text in m.before]
    assert found, f"no mutant {kind} of {line_text}"
    run = lambda text, options: case.check(emulate.load(text), options)  # noqa: E731
    return mutate.judge(run, found[-1], orders=3, limit=200_000)


@pytest.mark.parametrize(
    "name, kind, text, rule",
    [
        ("ampere_gemm", "drop", "bar.sync", "race"),
        ("hopper_gemm", "bytes", "expect_tx", "dead-lock"),
        ("hopper_gemm", "drop", "wgmma.wait_group.sync.aligned 0", "asynchronous"),
        ("hopper_gemm", "drop", "mbarrier.try_wait", "uninitialised"),
        ("hopper_gemm", "drop", "fence.proxy.async", "race"),
        ("cluster_gemm", "drop", "barrier.cluster.wait;", "race"),
        ("cluster_gemm", "drop", "mbarrier.arrive.release.cluster", "dead-lock"),
    ],
)
def test_faults_that_a_compiler_could_make_are_caught(name, kind, text, rule):
    assert _verdict(tensor_kernels.cases()[name], kind, text).caught == rule


def test_a_harmless_change_is_not_caught():
    verdict = _verdict(tensor_kernels.hopper_gemm("gemm_128x64x64_dyn", 64), "repeat", "wgmma.commit_group")
    assert (verdict.harmful, verdict.caught) == ("", "")


def test_catch_rate_counts_only_what_changes_a_result():
    mutant = mutate.mutants(TEXT)[0]
    verdicts = [
        mutate.Verdict(mutant, "dead-lock", "dead-lock"),
        mutate.Verdict(mutant, "wrong result", ""),
        mutate.Verdict(mutant, "", "race"),
        mutate.Verdict(mutant, "", ""),
        mutate.Verdict(mutant, "", "", "no such opcode", True),
    ]
    assert mutate.catch_rate(verdicts) == 0.5
    assert "catch rate: 50.0%" in mutate.table(verdicts)


def test_a_device_loads_mutants_in_the_place_of_a_models_code():
    ptx = kernel("  mov.u32 %r0, 5;\n  mad.wide.u32 %rd10, %t, 4, %rd1;\n  st.global.u32 [%rd10], %r0;\n")
    device = emulate.Device(replace={ptx: ptx.replace("%r0, 5", "%r0, 6")})
    memory = device.alloc(128)
    loaded = device.function(device.load(ptx.encode()), "k")
    params = [bytes(8), memory.to_bytes(8, "little")]
    device.launch(loaded, (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, params)
    out = np.zeros(32, np.uint32)
    device.download(memory, memoryview(out))
    assert (out == 6).all()
