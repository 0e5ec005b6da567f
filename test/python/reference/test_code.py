# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks as Python functions mean what the handlers, one by one, mean; and writing in place is never seen."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.reference import InterpreterError
from tilewright.reference.machine import Frame

BINARY = {
    "i": "addi subi muli andi ori xori maxsi minsi maxui minui".split(),
    "d": "divsi remsi floordivsi ceildivsi divui remui ceildivui".split(),
    "s": "shli shrsi shrui".split(),
    "f": "addf subf mulf divf maximumf minimumf".split(),
}
INTEGERS = [-128, -127, -7, -2, -1, 0, 1, 2, 3, 7, 126, 127]
FLOATS = [-np.inf, -1.5, -0.0, 0.0, 1.0, 2.5, np.inf, np.nan]


def loop(op: str, element: str, result: str, operands: int = 2) -> str:
    """Apply ``op`` (a format of scalars) to each element of vectors, in a loop of extracts and inserts."""
    vector, out = f"tensor<?x{element}>", f"tensor<?x{result}>"
    params = ", ".join(f"%t{k}: {vector}" for k in range(operands))
    reads = "\n".join(f"%a{k} = tensor.extract %t{k}[%i] : {vector}" for k in range(operands))
    return f"""func.func @main({params}) -> {out} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = tensor.dim %t0, %c0 : {vector}
      %e = tensor.empty(%n) : {out}
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %e) -> ({out}) {{
        {reads}
        %v = {op}
        %w = tensor.insert %v into %acc[%i] : {out}
        scf.yield %w : {out} }}
      return %r : {out} }}"""


def both_ways(interpret, monkeypatch, text, *args):
    """Run as Python functions, then op by op; the results must be the same bits."""
    before = [np.array(arg) for arg in args]
    fast = interpret(text, *args)
    with monkeypatch.context() as patch:
        patch.setattr(Frame, "run", Frame.run_arrays)
        slow = interpret(text, *args)
    for a, b in zip(fast, slow, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    for arg, copy in zip(args, before, strict=True):
        np.testing.assert_array_equal(arg, copy)
    return fast


def pairs(values, dtype, keep=lambda a, b: True):
    """All pairs of values as two vectors."""
    kept = [(a, b) for a in values for b in values if keep(a, b)]
    return [np.array(column, dtype) for column in zip(*kept, strict=True)]


@pytest.mark.parametrize(("element", "dtype"), [("i8", np.int8), ("i32", np.int32), ("i64", np.int64)])
@pytest.mark.parametrize("op", [*BINARY["i"], *BINARY["d"], *BINARY["s"]])
def test_integer_expressions(interpret, monkeypatch, op, element, dtype):
    keep = {"d": lambda a, b: b != 0 and (a, b) != (-128, -1), "s": lambda a, b: b >= 0}
    kind = next(k for k, names in BINARY.items() if op in names)
    args = pairs(INTEGERS, dtype, keep.get(kind, lambda a, b: True))
    both_ways(interpret, monkeypatch, loop(f"arith.{op} %a0, %a1 : {element}", element, element), *args)


@pytest.mark.parametrize("predicate", "eq ne slt sle sgt sge ult ule ugt uge".split())
def test_integer_comparisons(interpret, monkeypatch, predicate):
    text = loop(f"arith.cmpi {predicate}, %a0, %a1 : i16", "i16", "i1")
    both_ways(interpret, monkeypatch, text, *pairs(INTEGERS, np.int16))


@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
@pytest.mark.parametrize("op", BINARY["f"])
def test_float_expressions(interpret, monkeypatch, op, element):
    text = loop(f"arith.{op} %a0, %a1 : {element}", element, element)
    both_ways(interpret, monkeypatch, text, *pairs(FLOATS, f"f{int(element[1:]) // 8}"))


@pytest.mark.parametrize("predicate", "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true false".split())
def test_float_comparisons(interpret, monkeypatch, predicate):
    text = loop(f"arith.cmpf {predicate}, %a0, %a1 : f32", "f32", "i1")
    both_ways(interpret, monkeypatch, text, *pairs(FLOATS, np.float32))


CASTS = [
    ("index_cast", "i32", "index"),
    ("index_cast", "index", "i8"),
    ("index_castui", "i8", "index"),
    ("extsi", "i8", "i64"),
    ("extui", "i8", "i32"),
    ("extui", "i1", "i64"),
    ("trunci", "i64", "i16"),
    ("trunci", "i32", "i1"),
    ("sitofp", "i32", "f32"),
    ("sitofp", "i1", "f32"),
    ("uitofp", "i8", "f64"),
    ("extf", "f32", "f64"),
    ("truncf", "f64", "f16"),
    ("truncf", "f32", "bf16"),
    ("fptosi", "f32", "i32"),
    ("bitcast", "f32", "i32"),
]


@pytest.mark.parametrize(("op", "source", "target"), CASTS)
def test_casts(interpret, monkeypatch, op, source, target):
    if source.startswith("i"):
        dtype = {"i1": np.bool_, "index": np.int64}.get(source) or f"i{int(source[1:]) // 8}"
        values = np.array([v % 2 if source == "i1" else v for v in INTEGERS], dtype)
    else:
        values = np.array([-1.5, 0, 0.1, 2.5, 60.75], f"f{int(source[1:]) // 8}")
    both_ways(interpret, monkeypatch, loop(f"arith.{op} %a0 : {source} to {target}", source, target, 1), values)


@pytest.mark.parametrize("op", ["exp", "tanh", "atan", "sinh", "erf", "round", "log1p", "rsqrt"])
def test_math(interpret, monkeypatch, op):
    values = np.float32([0.1, 0.5, 1.0, 2.5, -0.25 if op != "rsqrt" else 3.0])
    both_ways(interpret, monkeypatch, loop(f"math.{op} %a0 : f32", "f32", "f32", 1), values)


def test_maps_of_indices(interpret, monkeypatch):
    text = loop("affine.apply affine_map<(a, b) -> (a * 3 + b floordiv 2 - b mod 5)>(%a0, %a1)", "index", "index")
    both_ways(interpret, monkeypatch, text, *pairs([-7, -1, 0, 4, 11], np.int64))
    text = loop("affine.min affine_map<(a, b) -> (a, b ceildiv 3, 2)>(%a0, %a1)", "index", "index")
    both_ways(interpret, monkeypatch, text, *pairs([-7, -1, 0, 4, 11], np.int64))


SORT = """func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %r = scf.for %i = %c1 to %n step %c1 iter_args(%t = %x) -> (tensor<?xf32>) {
    %v = tensor.extract %t[%i] : tensor<?xf32>
    %w:2 = scf.while (%j = %i, %u = %t) : (index, tensor<?xf32>) -> (index, tensor<?xf32>) {
      %more = arith.cmpi sgt, %j, %c0 : index
      %go = scf.if %more -> (i1) {
        %k = arith.subi %j, %c1 : index
        %p = tensor.extract %u[%k] : tensor<?xf32>
        %less = arith.cmpf olt, %v, %p : f32
        scf.yield %less : i1
      } else { scf.yield %more : i1 }
      scf.condition(%go) %j, %u : index, tensor<?xf32>
    } do {
    ^bb0(%j: index, %u: tensor<?xf32>):
      %k = arith.subi %j, %c1 : index
      %p = tensor.extract %u[%k] : tensor<?xf32>
      %u2 = tensor.insert %p into %u[%j] : tensor<?xf32>
      scf.yield %k, %u2 : index, tensor<?xf32>
    }
    %t2 = tensor.insert %v into %w#1[%w#0] : tensor<?xf32>
    scf.yield %t2 : tensor<?xf32>
  }
  return %r, %x : tensor<?xf32>, tensor<?xf32> }"""


def test_a_sort_copies_its_tensor_once(interpret, monkeypatch, rng):
    x = rng.random(40, np.float32)
    copies, array = [], np.array
    monkeypatch.setattr(np, "array", lambda *args, **named: copies.append(1) or array(*args, **named))
    done, same = interpret(SORT, x)
    monkeypatch.undo()
    np.testing.assert_array_equal(done, np.sort(x))
    np.testing.assert_array_equal(same, x)
    assert len(copies) <= 3
    both_ways(interpret, monkeypatch, SORT, x)


def test_slices_are_put_in_place(interpret, monkeypatch):
    """A list that rows are put into one by one is copied once, not for each row; one that is read again stays."""
    row, rows = "tensor<1x3xf32>", "tensor<4x3xf32>"
    puts = "\n".join(
        f"%r{k + 1} = tensor.insert_slice %x into %r{k}[{k}, 0] [1, 3] [1, 1] : {row} into {rows}" for k in range(4)
    )
    text = f"""func.func @main(%x: {row}, %r0: {rows}) -> ({rows}, {rows}) {{
      {puts}
      %last = tensor.insert_slice %x into %r4[0, 0] [1, 3] [1, 1] : {row} into {rows}
      return %last, %r4 : {rows}, {rows} }}"""
    x, zeros = np.ones((1, 3), np.float32), np.zeros((4, 3), np.float32)
    copies, array = [], np.array
    monkeypatch.setattr(np, "array", lambda *args, **named: copies.append(1) or array(*args, **named))
    interpret(text, x, zeros)
    monkeypatch.undo()
    assert len(copies) == 2
    both_ways(interpret, monkeypatch, text, x, zeros)


T = "tensor<4xi32>"
PURE = {
    "old value is read later": f"""
      %b = tensor.insert %v into %a[%c0] : {T}
      return %a, %b : {T}, {T}""",
    "view of the old value": f"""
      %e = tensor.insert %v into %a[%c1] : {T}
      %s = tensor.expand_shape %e [[0, 1]] output_shape [2, 2] : {T} into tensor<2x2xi32>
      %b = tensor.insert %v into %e[%c0] : {T}
      %q = tensor.collapse_shape %s [[0, 1]] : tensor<2x2xi32> into {T}
      return %q, %b : {T}, {T}""",
    "loop from a constant": f"""
      %k = arith.constant dense<[1, 2, 3, 4]> : {T}
      %b = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %k) -> ({T}) {{
        %u = tensor.insert %v into %t[%i] : {T}
        scf.yield %u : {T} }}
      return %k, %b : {T}, {T}""",
    "swap": f"""
      %z = tensor.insert %v into %a[%c0] : {T}
      %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %z, %u = %a) -> ({T}, {T}) {{
        %w = arith.index_cast %i : index to i32
        %t2 = tensor.insert %w into %t[%i] : {T}
        scf.yield %u, %t2 : {T}, {T} }}
      return %r#0, %r#1 : {T}, {T}""",
    "one tensor carried twice": f"""
      %z = tensor.insert %v into %a[%c0] : {T}
      %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %z, %u = %z) -> ({T}, {T}) {{
        %t2 = tensor.insert %v into %t[%i] : {T}
        scf.yield %t2, %u : {T}, {T} }}
      return %r#0, %r#1 : {T}, {T}""",
    "the first value is read in the loop": f"""
      %z = tensor.insert %v into %a[%c0] : {T}
      %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %z, %u = %a) -> ({T}, {T}) {{
        %t2 = tensor.insert %v into %t[%i] : {T}
        %p = tensor.extract %z[%i] : {T}
        %u2 = tensor.insert %p into %u[%i] : {T}
        scf.yield %t2, %u2 : {T}, {T} }}
      return %r#0, %r#1 : {T}, {T}""",
    "branches": f"""
      %z = tensor.insert %v into %a[%c0] : {T}
      %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %z, %u = %a) -> ({T}, {T}) {{
        %odd = arith.cmpi eq, %i, %c1 : index
        %s:2 = scf.if %odd -> ({T}, {T}) {{
          %t2 = tensor.insert %v into %t[%i] : {T}
          scf.yield %t2, %t : {T}, {T}
        }} else {{
          %u2 = tensor.insert %v into %u[%i] : {T}
          scf.yield %t, %u2 : {T}, {T} }}
        scf.yield %s#0, %s#1 : {T}, {T} }}
      return %r#0, %r#1 : {T}, {T}""",
    "a generic reads it from outside": f"""
      %z = tensor.insert %v into %a[%c0] : {T}
      %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %z, %u = %a) -> ({T}, {T}) {{
        %g = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]}}
            outs(%u : {T}) {{
        ^bb0(%o: i32):
          %d = linalg.index 0 : index
          %x = tensor.extract %t[%d] : {T}
          %y = arith.addi %x, %o : i32
          linalg.yield %y : i32 }} -> {T}
        %t2 = tensor.insert %v into %t[%i] : {T}
        scf.yield %t2, %g : {T}, {T} }}
      return %r#0, %r#1 : {T}, {T}""",
}


def program(body: str) -> str:
    """A function of a tensor, a value, and the constants that bodies use."""
    return f"""func.func @main(%a: {T}, %v: i32) -> ({T}, {T}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      {body} }}"""


@pytest.mark.parametrize("name", PURE)
def test_values_stay_values(interpret, monkeypatch, name):
    both_ways(interpret, monkeypatch, program(PURE[name]), np.arange(4, dtype=np.int32), 9)


class Draw:
    """Random programs that insert into, hand on and exchange three tensors in loops and branches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def name(self) -> str:
        """A new SSA name."""
        self.count += 1
        return f"%x{self.count}"

    def block(self, tensors: list[str], indices: list[str], depth: int) -> tuple[str, list[str]]:
        """Lines, and three of the tensors that they see."""
        lines, seen = [], list(tensors)
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.choice(["put", "put", "for", "if"] if depth < 3 else ["put"])
            text, new = getattr(self, f"{kind}_")(seen, indices, depth)
            lines.append(text)
            seen += new
        return "\n".join(lines), self.random.choices(seen[-6:], k=3)

    def put_(self, seen: list[str], indices: list[str], _depth: int) -> tuple[str, list[str]]:
        """Move an element from one tensor to another, as itself or as a slice."""
        value, sum_, result = self.name(), self.name(), self.name()
        source, target = self.random.choice(seen), self.random.choice(seen)
        i, j = self.random.choice(indices), self.random.choice(indices)
        if self.random.random() < 0.3:
            text = f"""{value} = tensor.extract_slice {source}[{i}] [1] [1] : {T} to tensor<1xi32>
              {result} = tensor.insert_slice {value} into {target}[{j}] [1] [1] : tensor<1xi32> into {T}"""
            return text, [result]
        text = f"""{value} = tensor.extract {source}[{i}] : {T}
          {sum_} = arith.addi {value}, %v : i32
          {result} = tensor.insert {sum_} into {target}[{j}] : {T}"""
        return text, [result]

    def for_(self, seen: list[str], indices: list[str], depth: int) -> tuple[str, list[str]]:
        """A loop that carries three tensors."""
        result, i = self.name(), self.name()
        arguments = [self.name() for _ in range(3)]
        visible = seen + arguments if self.random.random() < 0.5 else arguments
        body, out = self.block(visible, [*indices, i], depth + 1)
        start = ", ".join(f"{a} = {s}" for a, s in zip(arguments, self.random.choices(seen, k=3), strict=True))
        kinds = ", ".join([T] * 3)
        text = f"""{result}:3 = scf.for {i} = %c0 to %c4 step %c1 iter_args({start}) -> ({kinds}) {{
          {body}
          scf.yield {", ".join(out)} : {kinds} }}"""
        return text, [f"{result}#{k}" for k in range(3)]

    def if_(self, seen: list[str], indices: list[str], depth: int) -> tuple[str, list[str]]:
        """A branch that yields three tensors."""
        result, condition = self.name(), self.name()
        kinds = ", ".join([T] * 3)
        parts = []
        for _ in range(2):
            body, out = self.block(seen, indices, depth + 1)
            parts.append(f"{{\n{body}\nscf.yield {', '.join(out)} : {kinds} }}")
        text = f"""{condition} = arith.cmpi sgt, {self.random.choice(indices)}, %c1 : index
          {result}:3 = scf.if {condition} -> ({kinds}) {" else ".join(parts)}"""
        return text, [f"{result}#{k}" for k in range(3)]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(interpret, monkeypatch, seed):
    draw = Draw(seed)
    body, (first, second, _) = draw.block(["%a", "%a", "%a"], ["%c0", "%c1"], 0)
    both_ways(
        interpret, monkeypatch, program(f"{body}\nreturn {first}, {second} : {T}, {T}"), np.int32([3, 1, 4, 1]), 1
    )


def test_deep_nests(interpret):
    depth = 24
    starts = ["%z", *(f"%a{d}" for d in range(depth))]
    loops = "".join(
        f"%r{d} = scf.for %i{d} = %c0 to %n step %c1 iter_args(%a{d} = {starts[d]}) -> (index) {{\n"
        for d in range(depth)
    )
    inner = f"%s = arith.addi %a{depth - 1}, %n : index scf.yield %s : index }}\n"
    ends = "".join(f"scf.yield %r{d} : index }}\n" for d in range(depth - 1, 0, -1))
    text = f"""func.func @main(%n: index) -> index {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %z = arith.constant 5 : index
      {loops} {inner} {ends}
      return %r0 : index }}"""
    assert int(interpret(text, 1)[0]) == 6


def test_errors_name_op_and_place(interpret):
    text = """func.func @main(%x: tensor<3xf32>, %n: index) -> tensor<3xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<3xf32>) {
        %v = tensor.extract %t[%i] : tensor<3xf32>
        %d = arith.divsi %n, %i : index loc("the_node")
        scf.yield %t : tensor<3xf32> }
      return %r : tensor<3xf32> }"""
    with pytest.raises(InterpreterError, match=r"arith.divsi: integer division by zero(.|\n)*at: loc\(\"the_node\"\)"):
        interpret(text, np.zeros(3, np.float32), 1)
    outside = text.replace("arith.divsi %n, %i", "arith.addi %n, %i")
    with pytest.raises(InterpreterError, match=r"tensor.extract: index 3 is out of bounds"):
        interpret(outside, np.zeros(3, np.float32), 4)


def test_a_place_before_a_tensor_that_dies(interpret):
    """Its variable is emptied by then; the error names the index all the same."""
    text = """
    func.func @main(%a: tensor<4xf32>, %i: index, %x: f32) -> tensor<4xf32> {
      %0 = tensor.insert %x into %a[%i] : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    with pytest.raises(InterpreterError, match=r"index -1 "):
        interpret(text, np.zeros(4, np.float32), -1, np.float32(1))
