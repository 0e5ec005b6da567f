# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random trials find what the rules say, and what they do not; where a rule is wrong they say so."""

from __future__ import annotations

import numpy as np
import pytest

import pruned_programs
from tilewright import InternalError, UserError, reference
from tilewright.mlir import ir
from tilewright.normalize.sparsity import trials
from tilewright.normalize.sparsity.facts import Facts
from tilewright.normalize.sparsity.known import Known
from tilewright.passes import run_pipeline

MAPS = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
#m = affine_map<(m, n) -> (m)>
"""
#: %h = relu(bias - (x v) * (x v)): of two columns no number is above zero, which follows from no rule. Then a product.
GATED = """
  %bias = arith.constant dense<[-1.0, 50.0, -3.0, 60.0]> : tensor<4xf32>
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %v = arith.constant dense<[[0.1, -0.2, 0.3, 0.2], [0.2, 0.1, -0.1, 0.3], [0.3, 0.2, 0.1, -0.1]]> : tensor<3x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %d = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %k = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<8x3xf32>, tensor<3x4xf32>) outs(%d : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  %h = linalg.generic {indexing_maps = [#i, #n, #i], iterator_types = ["parallel", "parallel"]}
      ins(%k, %bias : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %p : f32
    %t = arith.subf %q, %s : f32
    %u = arith.maximumf %t, %zero : f32
    linalg.yield %u : f32
  } -> tensor<8x4xf32>
  %g = tensor.empty() : tensor<8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %w : tensor<8x4xf32>, tensor<4x2xf32>) outs(%f : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
"""


def function(body: str, arguments: str = "%x: tensor<8x3xf32>", kind: str = "tensor<8x2xf32>") -> ir.Module:
    text = f"{MAPS}func.func @main({arguments}) -> {kind} {{\n{body}\n  return %y : {kind}\n}}"
    with ir.Context(), ir.Location.unknown():
        return ir.Module.parse(text)


def operations(module: ir.Module) -> list[ir.Operation]:
    return [op.operation for op in module.body.operations[0].regions[0].blocks[0].operations]


def generics(ops: list[ir.Operation]) -> list[ir.Operation]:
    return [op for op in ops if op.name == "linalg.generic"]


def looked_at(ops: list[ir.Operation]) -> Facts:
    facts = Facts()
    for op in ops:
        facts.look_at(op)
    return facts


def shrunk(module: ir.Module, count: int) -> list[str]:
    done = run_pipeline(module.operation, f"builtin.module(tile-shrink-dead{{trials={count}}},canonicalize)")
    return [remark.message for remark in done.diagnostics]


@pytest.mark.parametrize("seed", range(40))
def test_trials_find_what_the_rules_say(seed: int) -> None:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(pruned_programs.random_program(seed)[0])
        ops = operations(module)
        facts = looked_at(ops)
        found = trials.tried(ops, facts, 4)
        assert found.skipped == []
        for op in ops:
            if op.name in ("arith.constant", "tensor.empty") or not len(op.results):
                continue
            tried = found.axes.get(op.results[0], (None,) * 9)
            for sound, seen in zip(facts.of(op.results[0]), tried, strict=False):
                if sound is not None and sound.any:
                    assert seen is not None and seen.known[sound.known].all(), str(op)
                    np.testing.assert_array_equal(seen.numbers[sound.known], sound.numbers[sound.known])


def test_a_wrong_rule_is_an_internal_error() -> None:
    module = function(GATED)
    ops = operations(module)
    made = generics(ops)[1].results[0]
    right = Known(np.zeros(4, np.float32), np.array([True, False, True, False]), np.zeros(4, bool))
    wrong = Known(np.zeros(4, np.float32), np.array([True, True, False, False]), np.zeros(4, bool))
    with module.context:
        for claim in (right, wrong):
            facts = Facts({made: (None, claim)})
            for op in ops:
                facts.look_at(op)
            if claim is right:
                trials.tried(ops, facts, 2)
                continue
            with pytest.raises(InternalError, match=r"axis 1 holds 0.0 at 1, and a random trial has numbers from"):
                trials.tried(ops, facts, 2)


def test_the_program_shrinks_where_no_rule_knows() -> None:
    """Inputs of a size at which the two columns are zero, and the same without trials: nothing shrinks."""
    before, without, after = function(GATED), function(GATED), function(GATED)
    assert shrunk(without, 0) == []
    assert "tensor<8x4xf32>, tensor<4x2xf32>" in str(without)
    remarks = shrunk(after, 16)
    assert any("2 slices hold one number in all of 16, which no rule says" in text for text in remarks), remarks
    assert any("reductions keep 50 % of 160 terms" in text for text in remarks), remarks
    x = np.random.default_rng(0).uniform(-5, 5, (8, 3)).astype(np.float32)
    (expected,) = reference.run(before, "main", [x])
    np.testing.assert_allclose(reference.run(after, "main", [x])[0], expected, rtol=1e-6)
    assert np.abs(expected).max() > 0


def test_numbers_have_both_signs() -> None:
    """relu(-x) is zero for all positive x: that is nothing to find."""
    text = GATED.replace("dense<[-1.0, 50.0, -3.0, 60.0]>", "dense<0.0>").replace("mulf %p, %p", "addf %p, %p")
    module = function(text.replace("-0.", "0."))
    with module.context:
        ops = operations(module)
        assert trials.tried(ops, looked_at(ops), 8).alone == 0


GATHERED = """
  %table = arith.constant dense<[[1.0, 0.0, 2.0], [3.0, 0.0, 4.0], [5.0, 0.0, 6.0], [7.0, 0.0, 8.0], [9.0, 0.0, 1.0],
      [2.0, 0.0, 3.0], [4.0, 0.0, 5.0], [6.0, 0.0, 7.0], [8.0, 0.0, 9.0]]> : tensor<9x3xf32>
  %e = tensor.empty() : tensor<8x3xf32>
  %y = linalg.generic {indexing_maps = [#m, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8xi32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%p: i32, %o: f32):
    %r = arith.index_cast %p : i32 to index
    %d = linalg.index 1 : index
    %v = tensor.extract %table[%r, %d] : tensor<9x3xf32>
    linalg.yield %v : f32
  } -> tensor<8x3xf32>
"""


def test_a_dead_column_of_a_table_that_is_looked_up() -> None:
    module = function(GATHERED, "%x: tensor<8xi32>", "tensor<8x3xf32>")
    with module.context:
        ops = operations(module)
        facts = looked_at(ops)
        found = trials.tried(ops, facts, 6)
        looked_up = generics(ops)[0].results[0]
        assert all(axis is None for axis in facts.of(looked_up))
        rows, columns = found.axes[looked_up]
        assert rows is None and columns is not None and columns.known.tolist() == [False, True, False]
        assert found.alone == 1 and found.skipped == []


def test_what_is_too_large_is_drawn_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first product is not run; what reads it is, with random numbers, and what that makes is found."""
    monkeypatch.setattr(trials, "_MOST", 70)
    remarks = shrunk(function(GATED), 4)
    assert any("operations not run (linalg.generic): too large" in text for text in remarks), remarks
    assert any("2 slices hold one number" in text for text in remarks), remarks


def test_operations_that_are_not_run_keep_what_rules_say() -> None:
    """A loop is drawn; of a tensor that is drawn the slices that are known stay."""
    loop = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> tensor<8x4xf32> {
    scf.yield %s : tensor<8x4xf32>
  }
  %bias = arith.constant dense<[-1.0, 50.0, -3.0, 60.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#i, #n, #i], iterator_types = ["parallel", "parallel"]}
      ins(%l, %bias : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %p : f32
    %u = arith.subf %q, %t : f32
    linalg.yield %u : f32
  } -> tensor<8x4xf32>"""
    module = function(loop, "%n: index, %x: tensor<8x4xf32>", "tensor<8x4xf32>")
    with module.context:
        ops = operations(module)
        claim = Known(np.full(4, 2.0, np.float32), np.array([False, True, False, False]), np.zeros(4, bool))
        (made,) = [op.results[0] for op in ops if op.name == "scf.for"]
        facts = Facts({made: (None, claim)})
        for op in ops:
            facts.look_at(op)
        found = trials.tried(ops, facts, 4)
        assert [op.name for op in found.skipped] == ["scf.for"]
        columns = found.axes[generics(ops)[0].results[0]][1]
        assert made not in found.axes
    assert columns is not None and columns.known.tolist() == [False, True, False, False]
    assert columns.numbers[1] == 46.0


LOOP = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %to = arith.constant TRIPS : index
  %g = arith.constant 0.0 : f32
  %y = scf.for %i = %c0 to %to step %c1 iter_args(%s = %x) -> tensor<8x4xf32> {
    %r = tensor.insert %g into %s[%i, %c1] : tensor<8x4xf32>
    BODY
    scf.yield %r : tensor<8x4xf32>
  }"""
ENDLESS = """
    %q = scf.while (%a = %i) : (index) -> index {
      %more = arith.cmpi sge, %a, %c0 : index
      scf.condition(%more) %a : index
    } do {
    ^bb0(%a: index):
      scf.yield %a : index
    }"""


@pytest.mark.parametrize(("trips", "body", "runs"), [(8, "", True), (10**9, "", False), (8, ENDLESS, False)])
def test_loops_run_if_they_are_short(trips: int, body: str, runs: bool) -> None:
    """One that writes zeros into a column; one with too many trips, and one that may never end, are drawn."""
    text = LOOP.replace("TRIPS", str(trips)).replace("BODY", body)
    module = function(text, "%x: tensor<8x4xf32>", "tensor<8x4xf32>")
    with module.context:
        ops = operations(module)
        found = trials.tried(ops, looked_at(ops), 4)
        assert [op.name for op in found.skipped] == ([] if runs else ["scf.for"])
        columns = [found.axes[op.results[0]][1] for op in ops if op.name == "scf.for" and op.results[0] in found.axes]
    if runs:
        assert columns[0] is not None and columns[0].known.tolist() == [False, True, False, False]
    else:
        assert columns == []


def test_bodies_of_loops_are_tried() -> None:
    head = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%state = %x) -> tensor<8x3xf32> {"""
    more = """
  %next = tensor.insert_slice %z into %state[0, 0] [8, 2] [1, 1] : tensor<8x2xf32> into tensor<8x3xf32>
  scf.yield %next : tensor<8x3xf32>
  }"""
    text = head + GATED.replace("%y =", "%z =").replace("ins(%x,", "ins(%state,") + more
    before, after = (function(text, kind="tensor<8x3xf32>") for _ in range(2))
    remarks = shrunk(after, 8)
    assert any("reductions keep 50 % of 160 terms" in told for told in remarks), remarks
    x = np.random.default_rng(0).uniform(-5, 5, (8, 3)).astype(np.float32)
    (expected,), (found,) = (reference.run(module, "main", [x]) for module in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_open_sizes_are_told() -> None:
    body = """
  %y = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%x : tensor<?x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.subf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x4xf32>"""
    (told,) = shrunk(function(body, "%x: tensor<?x4xf32>", "tensor<?x4xf32>"), 4)
    assert "sizes are known at run time only" in told


def test_what_is_not_finite_refutes_no_rule() -> None:
    """Rules take 0 * x for 0; where x is infinite, a trial says nothing of what follows."""
    body = """
  %m = arith.constant dense<[0.0, 1.0, 1.0, 1.0]> : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %h = linalg.generic {indexing_maps = [#i, #n, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %a = math.exp %p : f32
    %b = math.exp %a : f32
    %t = arith.mulf %b, %q : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>
  %y = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %c = arith.cmpf oge, %p, %zero : f32
    %one = arith.constant 1.0 : f32
    %t = arith.select %c, %one, %zero : f32
    linalg.yield %t : f32
  } -> tensor<8x4xf32>"""
    module = function(body, "%x: tensor<8x4xf32>", "tensor<8x4xf32>")
    with module.context:
        ops = operations(module)
        facts = looked_at(ops)
        known = facts.of(ops[-2].results[0])[1]
        assert known is not None and known.known[0] and known.numbers[0] == 1.0
        trials.tried(ops, facts, 8)


@pytest.mark.parametrize("count", [-3, 1])
def test_a_number_of_trials_that_shows_nothing(count: int) -> None:
    with pytest.raises(UserError, match="give 0"):
        shrunk(function(GATED), count)
