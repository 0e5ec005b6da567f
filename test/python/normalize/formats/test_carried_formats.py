# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tile-carry-formats: random chains of moves give the same codes as before; rules of groups by brute force."""

import itertools
from math import prod

import numpy as np
import pytest

from tilewright import reference
from tilewright.dialects.sparse_tile import Dense, Format, Tesa
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.normalize.formats.grouping import collapsed, cut, expanded
from tilewright.passes.run import run_pipeline

GROUPS = (None, 1, 2, 3, 4)


def numbered(group, shape):
    """Which group each element is in."""
    format = Format("i8", "f32", None, group)
    sizes = format.scale_shape(shape)
    return format.spread(np.arange(prod(sizes)).reshape(sizes), shape)


def says(group, shape, numbers):
    """Whether groups of a shape share what `numbers` [shape] says, scales in row-major order of the groups."""
    seen = list(dict.fromkeys(numbers.reshape(-1).tolist()))
    return np.array_equal(numbered(group, shape), np.vectorize(seen.index)(numbers))


@pytest.mark.parametrize("shape", [(4, 6), (12, 2), (1, 12), (5, 4)])
def test_reshapes_of_groups(shape):
    """Whatever a rule says of a reshape holds element by element; where a group says it, most are found."""
    found = 0
    for group in itertools.product(GROUPS, repeat=2):
        joined = collapsed(group, [[0, 1]], shape)
        whole = numbered(group, shape)
        if joined is not None:
            assert says(joined, (prod(shape),), whole.reshape(-1))
            found += 1
        for inner in (2, 4):
            if shape[0] % inner:
                continue
            split = (shape[0] // inner, inner, shape[1])
            opened = expanded(group, [[0, 1], [2]], split)
            if opened is not None:
                assert says(opened, split, whole.reshape(split))
    assert found


def test_cuts_of_groups():
    whole = numbered((4, 1), (12, 5))
    assert cut((4, 1), [2, 0], [4, 5], [1, 1]) is None, "it begins within a group"
    assert cut((4, 1), [4, 0], [4, 5], [2, 1]) is None
    offsets, sizes, strides = cut((4, 1), [4, 1], [8, 2], [1, 2])
    assert (offsets, sizes, strides) == ([1, 1], [2, 2], [1, 2])
    assert says((4, 1), (8, 2), whole[4:12, 1:5:2])


class Chain:
    """Text of a random chain of moves, from codes on."""

    def __init__(self, rng):
        self.rng, self.shape, self.lines = rng, [4, 6, 8], []
        self.value = "%x"

    def step(self):
        kind = self.rng.choice(["collapse", "expand", "slice", "turn"])
        before, old = self.value, list(self.shape)
        if kind == "collapse" and len(old) > 1:
            d = int(self.rng.integers(len(old) - 1))
            dims = [[i] for i in range(d)] + [[d, d + 1]] + [[i] for i in range(d + 2, len(old))]
            self.shape[d : d + 2] = [old[d] * old[d + 1]]
            self._add(f"tensor.collapse_shape {before} {dims} : {self._kind(old)} into {self._kind(self.shape)}")
        elif kind == "expand":
            d = int(self.rng.integers(len(old)))
            inner = int(self.rng.choice([n for n in (1, 2, 3, 4) if old[d] % n == 0]))
            dims = [[i] for i in range(d)] + [[d, d + 1]] + [[i + 1] for i in range(d + 1, len(old))]
            self.shape[d : d + 1] = [old[d] // inner, inner]
            shape = ", ".join(map(str, self.shape))
            kinds = f"{self._kind(old)} into {self._kind(self.shape)}"
            self._add(f"tensor.expand_shape {before} {dims} output_shape [{shape}] : {kinds}")
        elif kind == "slice":
            starts = [int(self.rng.integers(0, 3)) if n > 4 else 0 for n in old]
            self.shape = [n - 2 * s if s else n for n, s in zip(old, starts, strict=True)]
            numbers = f"{starts} {self.shape} {[1] * len(old)}"
            self._add(f"tensor.extract_slice {before}{numbers} : {self._kind(old)} to {self._kind(self.shape)}")
        elif kind == "turn":
            order = self.rng.permutation(len(old)).tolist()
            self.shape = [old[d] for d in order]
            self._turn(before, old, order)

    def _turn(self, before, old, order):
        loops = [f"d{d}" for d in range(len(old))]
        read = ", ".join(loops[order.index(d)] for d in range(len(old)))
        names, kind, count = ", ".join(loops), self._kind(self.shape), len(self.lines)
        self.lines.append(f"%e{count} = tensor.empty() : {kind}")
        self._add(f"""linalg.generic {{
              indexing_maps = [affine_map<({names}) -> ({read})>, affine_map<({names}) -> ({names})>],
              iterator_types = [{", ".join(['"parallel"'] * len(old))}]}}
              ins({before} : {self._kind(old)}) outs(%e{count} : {kind}) {{
            ^bb0(%p: f32, %o: f32):
              linalg.yield %p : f32
            }} -> {kind}""")

    def _add(self, text):
        self.value = f"%v{len(self.lines)}"
        self.lines.append(f"{self.value} = {text}")

    @staticmethod
    def _kind(shape):
        return f"tensor<{'x'.join(map(str, shape))}xf32>"


@pytest.mark.parametrize("seed", range(12))
def test_chains(seed):
    rng = np.random.default_rng(seed)
    chain = Chain(rng)
    for _ in range(4):
        chain.step()
    group = tuple((None, 1, 2)[i] for i in rng.integers(0, 3, 3))
    format = Format("i8", "f32", "i8", group)
    sizes = format.scale_shape((4, 6, 8))
    codes = rng.integers(-128, 128, (4, 6, 8)).astype(np.int8)
    scales, zero = rng.uniform(0.5, 2, sizes).astype(np.float32), rng.integers(-9, 9, sizes).astype(np.int8)
    with ir.Context(), ir.Location.unknown():
        f32, i8 = ir.F32Type.get(), ir.IntegerType.get_signless(8)
        kind = Tesa.one(Dense(), format).type((4, 6, 8), f32)
        last = Tesa.one(Dense(), Format("u8", "f32")).type(chain.shape, f32)
        s, z = ir.RankedTensorType.get(sizes, f32), ir.RankedTensorType.get(sizes, i8)
        ones, result = ir.RankedTensorType.get([1] * len(chain.shape), f32), ir.RankedTensorType.get(chain.shape, i8)
        newline = "\n"
        program = ir.Module.parse(f"""
          func.func @f(%c: tensor<4x6x8xi8>, %s: {s}, %z: {z}, %t: {ones}) -> {result} {{
            %a = sparse_tile.assemble %c, %s, %z : tensor<4x6x8xi8>, {s}, {z} to {kind}
            %x = sparse_tile.dequantize %a : {kind} to tensor<4x6x8xf32>
            {newline.join(chain.lines)}
            %q = sparse_tile.quantize {chain.value} scales %t : {chain._kind(chain.shape)}, {ones} to {last}
            %r, %u = sparse_tile.parts %q : {last} to {result}, {ones}
            return %r : {result}
          }}""")
        inputs = [codes, scales, zero, np.full([1] * len(chain.shape), 1.5, np.float32)]
        (want,) = reference.run(program, "f", inputs)
        run_pipeline(program.operation, "builtin.module(tile-carry-formats)")
        (found,) = reference.run(program, "f", inputs)
        (rounding,) = walk(program.operation, "sparse_tile.quantize")
        carried = rounding.operands[0].owner.name == "sparse_tile.dequantize"
    np.testing.assert_array_equal(found, want)
    assert carried or any(group), "one scale for all goes anywhere"


def test_the_same_format_again():
    """What is quantized as it was is left out, with equal constants; with others it is not."""
    text = """
      #q = #sparse_tile.tesa<dense : format<i8, unsigned, scales = f32, zero_points = i8>>
      func.func @f(%c: tensor<256xi8>) -> tensor<256xi8> {{
        %s = arith.constant dense<{0}> : tensor<1xf32>
        %z = arith.constant dense<7> : tensor<1xi8>
        %a = sparse_tile.assemble %c, %s, %z : tensor<256xi8>, tensor<1xf32>, tensor<1xi8> to tensor<256xf32, #q>
        %x = sparse_tile.dequantize %a : tensor<256xf32, #q> to tensor<256xf32>
        %t = arith.constant dense<{1}> : tensor<1xf32>
        %y = arith.constant dense<7> : tensor<1xi8>
        %b = sparse_tile.quantize %x scales %t zero_points %y
            : tensor<256xf32>, tensor<1xf32>, tensor<1xi8> to tensor<256xf32, #q>
        %d, %u, %v = sparse_tile.parts %b : tensor<256xf32, #q> to tensor<256xi8>, tensor<1xf32>, tensor<1xi8>
        return %d : tensor<256xi8>
      }}"""
    codes = np.arange(256, dtype=np.uint8).view(np.int8)
    for scales, dropped in [(("0.1", "0.1"), True), (("1.0e-38", "1.0e-38"), True), (("0.1", "0.2"), False)]:
        with ir.Context(), ir.Location.unknown():
            program = ir.Module.parse(text.format(*scales))
            (want,) = reference.run(program, "f", [codes])
            run_pipeline(program.operation, "builtin.module(tile-carry-formats)")
            assert ("sparse_tile.quantize" not in str(program)) == dropped
            (found,) = reference.run(program, "f", [codes])
        np.testing.assert_array_equal(found, want)
        assert np.array_equal(found, codes) == dropped
