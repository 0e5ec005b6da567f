# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of numbers in a body holds for the machine's numbers, too."""

from __future__ import annotations

import pytest

from tilewright.ir.generics import body as body_of
from tilewright.mlir import ir
from tilewright.plan.sparse.padding.readers import Readers, Unproved
from tilewright.plan.sparse.padding.scalars import Scalar, Trust, evaluate
from tilewright.plan.sparse.padding.tokens import Tokens, packed_steps


def told(kind: str, constants: str, body: str, argument: Scalar, result: str = "f32") -> Scalar:
    """What is known of %r, made of an argument %x in a body."""
    text = f"""func.func @main(%in: tensor<4x{kind}>) -> tensor<4x{result}> {{
      {constants}
      %e = tensor.empty() : tensor<4x{result}>
      %all = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}} ins(%in : tensor<4x{kind}>) outs(%e : tensor<4x{result}>) {{
      ^bb0(%x: {kind}, %o: {result}):
        {body}
        linalg.yield %r : {result}
      }} -> tensor<4x{result}>
      return %all : tensor<4x{result}>
    }}"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        *_, generic, _end = module.body.operations[0].regions[0].blocks[0].operations
        return evaluate(body_of(generic.operation), [argument, Scalar()])


@pytest.mark.parametrize("widen", ["arith.uitofp %d : i8 to f32", "arith.extui %d : i8 to i32"])
def test_bytes_below_zero_are_large_without_a_sign(widen: str) -> None:
    """(mask - 1) of bytes is 255 at padding, not -1: a mask by it hides nothing."""
    body = f"%d = arith.subi %x, %c : i8\n%r = {widen}"
    found = told("i8", "%c = arith.constant 1 : i8", body, Scalar.exactly(0), widen.rpartition(" ")[2])
    assert found.low <= 255 <= found.high


def test_bytes_overflow() -> None:
    body = "%d = arith.addi %x, %c : i8\n%r = arith.sitofp %d : i8 to f32"
    found = told("i8", "%c = arith.constant 100 : i8", body, Scalar.exactly(100))
    assert found.low <= -56 <= found.high


def test_what_a_region_reads_is_read() -> None:
    body = """%r = scf.if %yes -> f32 {
      scf.yield %x : f32
    } else {
      scf.yield %zero : f32
    }"""
    held = "%yes = arith.constant true\n%zero = arith.constant 0.0 : f32\n"
    assert told("f32", held, body, Scalar(-1, 1, Trust.BLANK)).trust is not Trust.SAME
    assert told("f32", held, body, Scalar(-1, 1)).trust is Trust.SAME


HIDDEN = """
#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#e = affine_map<(b, s, n) -> (b, s, n)>
#m = affine_map<(b, s, n) -> (b, s)>
#r = affine_map<(b, s, n) -> (b, n)>
func.func @main(%x: tensor<4x64x8xf32>, %mask: tensor<4x64xi64>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %none = arith.constant 0 : i64
  %low = arith.constant MASKED : f32
  %few = arith.constant -1.0e31 : f32
  %w = arith.constant dense<1.0> : tensor<8x8xf32>
  %e = tensor.empty() : tensor<4x64x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x64x8xf32>) -> tensor<4x64x8xf32>
  %g = tensor.empty() : tensor<4x8xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x64x8xf32>, tensor<8x8xf32>) outs(%f : tensor<4x64x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %a = arith.mulf %p, %q : f32
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<4x64x8xf32>
  %z = linalg.generic {indexing_maps = [#e, #m, #e], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %mask : tensor<4x64x8xf32>, tensor<4x64xi64>) outs(%e : tensor<4x64x8xf32>) {
  ^bb0(%p: f32, %q: i64, %o: f32):
    %is = arith.cmpi ne, %q, %none : i64
    %t = arith.select %is, %p, %low : f32
    linalg.yield %t : f32
  } -> tensor<4x64x8xf32>
  %s = linalg.generic {indexing_maps = [#e, #r], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%z : tensor<4x64x8xf32>) outs(%h : tensor<4x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %is = arith.cmpf olt, %p, %few : f32
    %n = arith.select %is, %one, %zero : f32
    %t = arith.addf %o, %n : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}
"""


@pytest.mark.parametrize("masked", ["-3.0e38", "0xFF800000"])
def test_a_mask_of_what_is_packed_may_be_read(masked: str) -> None:
    """A count of hidden tokens sees -3e38, or -inf, in the model, and zeros where tokens are packed."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(HIDDEN.replace("MASKED", masked))
        block = module.body.operations[0].regions[0].blocks[0]
        tokens = Tokens(block, (4, 64))
        readers = Readers(tokens, block.arguments[1], packed_steps(tokens)[1])
        with pytest.raises(Unproved):
            readers.prove(block)


POOLED = """
  %most = linalg.generic {indexing_maps = [#e, #m, #r], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%y, %shift : tensor<4x64x8xf32>, tensor<4x64xf32>) outs(%h : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.maximumf %p, %o : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  return"""
SHIFT = """
  %one_each = tensor.empty() : tensor<4x64xf32>
  %shift = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}
      ins(%mask : tensor<4x64xi64>) outs(%one_each : tensor<4x64xf32>) {
  ^bb0(%q: i64, %o: f32):
    %is = arith.cmpi eq, %q, %none : i64
    %t = arith.select %is, %few, %zero : f32
    linalg.yield %t : f32
  } -> tensor<4x64xf32>"""


def test_a_number_that_hid_is_not_to_blame() -> None:
    """A maximum over all tokens reads padding; that a mask hides it elsewhere is no reason."""
    text = HIDDEN.replace("MASKED", "0.0").replace("func.func", "#i = affine_map<(b, s) -> (b, s)>\nfunc.func")
    text = text.replace("\n  return", SHIFT + POOLED).replace("[#e, #r]", "[#e, #m, #r]")
    text = text.replace("ins(%z : tensor<4x64x8xf32>)", "ins(%y, %mask : tensor<4x64x8xf32>, tensor<4x64xi64>)")
    text = text.replace("(%p: f32, %o: f32)", "(%p: f32, %q: i64, %o: f32)")
    text = text.replace("cmpf olt, %p, %few : f32", "cmpi ne, %q, %none : i64").replace("%one, %zero", "%p, %zero")
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        tokens = Tokens(block, (4, 64))
        readers = Readers(tokens, block.arguments[1], packed_steps(tokens)[1])
        with pytest.raises(Unproved, match="a loop over places reads it"):
            readers.prove(block)
        assert readers.hidden


MOST_OF = """
  %low = arith.constant -3.0e38 : f32
  %start = linalg.fill ins(%few : f32) outs(%g : tensor<4x8xf32>) -> tensor<4x8xf32>
  %most = linalg.generic {indexing_maps = [#e, #m, #r], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%y, %mask : tensor<4x64x8xf32>, tensor<4x64xi64>) outs(%start : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: i64, %o: f32):
    %is = arith.cmpi ne, %q, %none : i64
    %z = arith.select %is, %p, %low : f32
    %t = arith.maximumf %z, %o : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %d = tensor.empty() : tensor<4x4x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%d : tensor<4x4x8xf32>) -> tensor<4x4x8xf32>
  %s = linalg.generic {indexing_maps = [#be, #bm, #of, #br],
      iterator_types = ["parallel", "parallel", "reduction", "parallel"]}
      ins(%y, %mask, %most : tensor<4x64x8xf32>, tensor<4x64xi64>, tensor<4x8xf32>) outs(%k : tensor<4x4x8xf32>) {
  ^bb0(%p: f32, %q: i64, %a: f32, %o: f32):
    %is = arith.cmpi ne, %q, %none : i64
    %z = arith.select %is, %p, %low : f32
    %far = arith.subf %z, %a : f32
    %held = math.exp %far : f32
    %t = arith.addf %o, %held : f32
    linalg.yield %t : f32
  } -> tensor<4x4x8xf32>
  return %s : tensor<4x4x8xf32>
}
"""
PAIRS = """
#be = affine_map<(b, c, s, n) -> (b, s, n)>
#bm = affine_map<(b, c, s, n) -> (b, s)>
#of = affine_map<(b, c, s, n) -> (OF, n)>
#br = affine_map<(b, c, s, n) -> (b, c, n)>
func.func"""


BOTH = """  %both = linalg.generic {indexing_maps = [#u, #v, #full],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%most, %most : tensor<4x8xf32>, tensor<4x8xf32>) outs(%d : tensor<4x4x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.minimumf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<4x4x8xf32>
  %s = linalg"""
BOTH_OF = """
#u = affine_map<(b, c, n) -> (b, n)>
#v = affine_map<(b, c, n) -> (c, n)>
#full = affine_map<(b, c, n) -> (b, c, n)>
func.func"""


def sums_of_pairs(of: str) -> str:
    """A sum over the places of each sentence of exponentials less a maximum, once for each sentence `c`."""
    text = HIDDEN.replace("func.func", PAIRS.replace("OF", of))
    text = text[: text.index("  %z = linalg.generic")].replace("  %low = arith.constant MASKED : f32\n", "") + MOST_OF
    return text.replace("-> tensor<4x8xf32> {", "-> tensor<4x4x8xf32> {", 1)


def prove(text: str, batch: int) -> Readers:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        tokens = Tokens(block, (batch, 64))
        readers = Readers(tokens, block.arguments[1], packed_steps(tokens)[1])
        readers.prove(block)
        return readers


@pytest.mark.parametrize(("batch", "of", "holds"), [(4, "b", True), (4, "c", False), (1, "b", True), (1, "c", True)])
def test_bounds_of_a_sentence_are_its_own(batch: int, of: str, holds: bool) -> None:
    """The most of another sentence may be what masks it as a whole; a batch of one has no other."""
    text = sums_of_pairs(of).replace("4x4x", f"{batch}x{batch}x").replace("<4x", f"<{batch}x")
    if holds:
        assert prove(text, batch).hidden
    else:
        with pytest.raises(Unproved, match="a loop over places reads it"):
            prove(text, batch)


def test_bounds_of_two_sentences_are_of_neither() -> None:
    """The lesser of both maxima may be that of the other one, which has no token."""
    text = sums_of_pairs("b, c").replace("func.func", BOTH_OF).replace("  %s = linalg", BOTH)
    text = text.replace("tensor<4x64xi64>, tensor<4x8xf32>", "tensor<4x64xi64>, tensor<4x4x8xf32>")
    with pytest.raises(Unproved, match="a loop over places reads it"):
        prove(text.replace("ins(%y, %mask, %most :", "ins(%y, %mask, %both :"), 4)
