# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of a scalar, by brute force: for all numbers of a small domain in the place of what is not known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilewright.core.arithmetic import FUNCTIONS
from tilewright.ir.generics import body, walk
from tilewright.mlir import ir
from tilewright.normalize.sparsity.facts import Facts
from tilewright.normalize.sparsity.known import Known, evaluate

FLOATS = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf")
INTEGERS = ("addi", "subi", "muli", "andi", "ori", "xori", "divsi", "maxsi", "minsi", "maxui", "shli")
CASES = [
    *((f"arith.{name}", f"%r = arith.{name} %a, %o : f64", 2, "f64") for name in FLOATS),
    *((f"arith.{name}", f"%r = arith.{name} %a, %o : i32", 2, "i32") for name in INTEGERS),
    ("arith.negf", "%r = arith.negf %o : f64", 1, "f64"),
    ("math.absf", "%r = math.absf %o : f64", 1, "f64"),
    ("math.tanh", "%r = math.tanh %o : f64", 1, "f64"),
    ("math.exp", "%r = math.exp %o : f64", 1, "f64"),
    ("math.fma", "%r = math.fma %a, %b, %o : f64", 3, "f64"),
]
#: Divisors are none of these, and shifts are by no negative number: what is undefined is not looked at.
DOMAINS = {"f64": (-1.0, 0.0, 2.0), "i32": (-1, 0, 2)}


def generic(line: str, count: int, kind: str) -> ir.Module:
    """A module with one `linalg.generic`, whose body has a line that makes %r of %a, %b and the accumulator %o."""
    names = ["%a", "%b"][: count - 1]
    ins = f"ins({', '.join(['%x'] * len(names))} : {', '.join([f'tensor<1x{kind}>'] * len(names))})" if names else ""
    maps = ", ".join(["affine_map<(d) -> (d)>"] * count)
    arguments = ", ".join(f"{n}: {kind}" for n in [*names, "%o"])
    text = f"""func.func @main(%x: tensor<1x{kind}>) -> tensor<1x{kind}> {{
      %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}} {ins}
          outs(%x : tensor<1x{kind}>) {{
      ^bb0({arguments}):
        {line}
        linalg.yield %r : {kind}
      }} -> tensor<1x{kind}>
      return %y : tensor<1x{kind}>
    }}"""
    with ir.Context(), ir.Location.unknown():
        return ir.Module.parse(text)


def claimed(module: ir.Module, arguments: list[Known]) -> Known:
    (operation,) = walk(module.operation, "linalg.generic")
    with module.context:
        (found,) = evaluate(body(operation), arguments, {}, len(arguments[0].numbers))
    return found


def is_defined(name: str, values: tuple[float, ...]) -> bool:
    if name in ("arith.divf", "arith.divsi"):
        return values[1] != 0
    return name != "arith.shli" or values[1] >= 0


@pytest.mark.parametrize(("name", "line", "count", "kind"), CASES, ids=[case[0] for case in CASES])
def test_claims_hold(name: str, line: str, count: int, kind: str) -> None:
    domain = DOMAINS[kind]
    rows = list(itertools.product(itertools.product(domain, (True, False)), repeat=count))
    dtype = np.dtype(np.float64 if kind == "f64" else np.int32)
    arguments = []
    for at in range(count):
        numbers = np.array([row[at][0] for row in rows], dtype)
        known = np.array([row[at][1] for row in rows])
        arguments.append(Known(numbers, known, ~known & (at == count - 1)))
    found = claimed(generic(line, count, kind), arguments)
    claims = 0
    for index, row in enumerate(rows):
        choices = [[value] if known else domain for value, known in row]
        for values in filter(lambda v: is_defined(name, v), itertools.product(*choices)):
            with np.errstate(all="ignore"):
                result = FUNCTIONS[name](*(np.asarray(v, dtype) for v in values))
            if found.known[index]:
                assert result == found.numbers[index], (values, row)
            if found.kept[index]:
                assert result == values[-1], (values, row)
            claims += bool(found.known[index] or found.kept[index])
    assert claims > 0


def test_choices() -> None:
    """A condition that is known chooses; else both sides must be the same number."""
    some = np.array([True, True, False, False])
    condition = Known(np.array([True, False, True, False]), some, np.zeros(4, bool))
    line = "%z = arith.constant 0.0 : f64\n%c = arith.cmpf ogt, %a, %z : f64\n%r = arith.select %c, %b, %o : f64"
    a = Known(np.where(condition.numbers, 1.0, -1.0), some, np.zeros(4, bool))
    b = Known(np.array([5.0, 5.0, 5.0, 7.0]), np.ones(4, bool), np.zeros(4, bool))
    o = Known(np.array([6.0, 6.0, 5.0, 5.0]), np.ones(4, bool), np.zeros(4, bool))
    found = claimed(generic(line, 3, "f64"), [a, b, o])
    assert found.known.tolist() == [True, True, True, False]
    assert found.numbers[:3].tolist() == [5.0, 6.0, 5.0]


def test_a_sum_of_a_known_number_is_not_that_number() -> None:
    """Terms are added as often as there are any; a maximum of them is the same after each."""
    text = """
    #i = affine_map<(m, n) -> (m, n)>
    #n = affine_map<(m, n) -> (n)>
    func.func @main(%x: tensor<3x2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %c = arith.constant dense<[2.0, 0.0]> : tensor<2xf32>
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<2xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
      %g = tensor.empty() : tensor<3x2xf32>
      %b = linalg.generic {indexing_maps = [#n, #i], iterator_types = ["parallel", "parallel"]}
          ins(%c : tensor<2xf32>) outs(%g : tensor<3x2xf32>) {
      ^bb0(%p: f32, %o: f32):
        linalg.yield %p : f32
      } -> tensor<3x2xf32>
      %s = linalg.generic {indexing_maps = [#i, #n], iterator_types = ["reduction", "parallel"]}
          ins(%b : tensor<3x2xf32>) outs(%f : tensor<2xf32>) {
      ^bb0(%p: f32, %o: f32):
        %t = arith.addf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<2xf32>
      %m = linalg.generic {indexing_maps = [#i, #n], iterator_types = ["reduction", "parallel"]}
          ins(%b : tensor<3x2xf32>) outs(%f : tensor<2xf32>) {
      ^bb0(%p: f32, %o: f32):
        %t = arith.maximumf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<2xf32>
      return %s, %m : tensor<2xf32>, tensor<2xf32>
    }"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        facts = Facts()
        operations = [op.operation for op in module.body.operations[0].regions[0].blocks[0].operations]
        for op in operations:
            facts.look_at(op)
        sums, most = (facts.of(op.results[0])[0] for op in operations[-3:-1])
    assert sums is not None and sums.known.tolist() == [False, True]
    assert most is not None and most.known.tolist() == [True, True] and most.numbers.tolist() == [2.0, 0.0]


@pytest.mark.parametrize("unsigned", ["", "unsigned "])
def test_decoded_zeros(unsigned: str) -> None:
    """A code that is its zero point is zero, whatever the scale; others are known with their scale."""
    text = f"""func.func @main(%q: tensor<1xi8>, %t: tensor<1xf32>, %x: tensor<1xf32>) -> tensor<1xf32> {{
      %y = linalg.generic {{
          indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>, affine_map<(d) -> (d)>,
                           affine_map<(d) -> (d)>], iterator_types = ["parallel"]}}
          ins(%q, %q, %t : tensor<1xi8>, tensor<1xi8>, tensor<1xf32>) outs(%x : tensor<1xf32>) {{
      ^bb0(%c: i8, %z: i8, %s: f32, %o: f32):
        %r = sparse_tile.decode {unsigned}%c zero_point %z : i8 scale %s : f32 : i8 to f32
        linalg.yield %r : f32
      }} -> tensor<1xf32>
      return %y : tensor<1xf32>
    }}"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
    codes, zeros = (np.array(values, np.int8) for values in ([-56, 7, -56, 7], [-56, 7, 7, -56]))
    for known in itertools.product([False, True], repeat=3):
        numbers = (codes, zeros, np.full(4, 0.5, np.float32), np.zeros(4, np.float32))
        none = np.zeros(4, bool)
        arguments = [Known(n, np.full(4, k), none) for n, k in zip(numbers, (*known, False), strict=True)]
        found = claimed(module, arguments)
        expected = np.full(4, all(known)) | (np.full(4, known[0] and known[1]) & (codes == zeros))
        np.testing.assert_array_equal(found.known, expected)
        plain = [n.view(np.uint8) if unsigned else n for n in (codes, zeros)]
        want = (plain[0].astype(np.float32) - plain[1]) * np.float32(0.5)
        np.testing.assert_array_equal(found.numbers[found.known], want[found.known])
