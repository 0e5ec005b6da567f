# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the ops of `sparse_tile` mean, against plain NumPy: pack, unpack, parts, assemble, quantize, dequantize, ..."""

import ml_dtypes
import numpy as np
import pytest

from tilewright import reference
from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile import NM, Block, Dense, Dynamic, Encoded, Format, Mask, Tesa
from tilewright.mlir import ir
from tilewright.reference import InterpreterError

PATTERNS = {
    "nm_rows": NM(2, 4, 0),
    "nm_columns": NM(3, 8, 1),
    "nm_vector": NM(2, 4, 0, (1, 32)),
    "nm_block": NM(1, 2, 1, (4, 4)),
    "nm_wide": NM(8, 300, 0),
    "block": Block((8, 16)),
    "mask": Mask(),
    "dense": Dense(),
    "dynamic": Dynamic((1, 8)),
}


def pruned(pattern, shape, rng, dtype=np.float32):
    """A random tensor that fits a pattern: what stands at random positions, those of the pattern itself."""
    x = rng.integers(1, 9, shape).astype(dtype) * rng.choice([-1, 1], shape).astype(dtype)
    if isinstance(pattern, Block | Mask):
        shape_of_unit = getattr(pattern, "shape", (1, 1))
        grid = [-(-size // step) for size, step in zip(shape, shape_of_unit, strict=True)]
        live = np.kron(rng.random(grid) < 0.4, np.ones(shape_of_unit, bool))
        return x * live[: shape[0], : shape[1]].astype(dtype)
    if not isinstance(pattern, NM):
        return x
    result = np.zeros_like(x)
    unit = pattern.unit or (1,) * x.ndim
    step = [u * (pattern.m if d == pattern.axis else 1) for d, u in enumerate(unit)]
    for corner in np.ndindex(*[-(-size // s) for size, s in zip(shape, step, strict=True)]):
        for kept in rng.permutation(pattern.m)[: rng.integers(0, pattern.n + 1)]:
            start = [
                c * s + (kept * u if d == pattern.axis else 0)
                for d, (c, s, u) in enumerate(zip(corner, step, unit, strict=True))
            ]
            where = tuple(slice(at, at + u) for at, u in zip(start, unit, strict=True))
            result[where] = x[where]
    return result


def module(text):
    return ir.Module.parse(text)


@pytest.mark.parametrize("shape", [(32, 64), (37, 70), (1, 5)])
@pytest.mark.parametrize("name", PATTERNS)
def test_pack_and_unpack(name, shape):
    pattern, rng = PATTERNS[name], np.random.default_rng(3)
    x = pruned(pattern, shape, rng)
    with ir.Context():
        encoded = Tesa.one(pattern).type(shape, ir.F32Type.get())
        plain = f"tensor<{shape[0]}x{shape[1]}xf32>"
        program = module(f"""
          func.func @f(%x: {plain}) -> ({encoded}, {plain}) {{
            %p = sparse_tile.pack %x : {plain} to {encoded}
            %u = sparse_tile.unpack %p : {encoded} to {plain}
            return %p, %u : {encoded}, {plain}
          }}""")
        p, u = reference.run(program, "f", [x])
    np.testing.assert_array_equal(u, x)
    kept = p.kept()
    assert kept[x != 0].all()
    if isinstance(pattern, NM) and shape[pattern.axis] % (pattern.m * (pattern.unit or (1, 1))[pattern.axis]) == 0:
        assert kept.mean() == pytest.approx(pattern.n / pattern.m)


@pytest.mark.parametrize("name", PATTERNS)
def test_parts_and_assemble(name):
    pattern, rng = PATTERNS[name], np.random.default_rng(4)
    x = pruned(pattern, (37, 70), rng)
    value = Encoded.pack(x, Tesa.one(pattern))
    with ir.Context():
        encoded = Tesa.one(pattern).type(x.shape, ir.F32Type.get())
        from tilewright.mlir.dialects.sparse_tile import part_types

        kinds = [str(part) for part in part_types(encoded)]
        program = module(f"""
          func.func @f(%x: {encoded}) -> {encoded} {{
            %p:{len(kinds)} = sparse_tile.parts %x : {encoded} to {", ".join(kinds)}
            %r = sparse_tile.assemble {", ".join(f"%p#{i}" for i in range(len(kinds)))}
                : {", ".join(kinds)} to {encoded}
            return %r : {encoded}
          }}""")
        (result,) = reference.run(program, "f", [value])
        for part, kind in zip(value.parts, part_types(encoded), strict=True):
            sizes = ir.RankedTensorType(kind).shape
            assert all(s in (ir.ShapedType.get_dynamic_size(), n) for s, n in zip(sizes, part.shape, strict=True))
    np.testing.assert_array_equal(result.dense(), x)


@pytest.mark.parametrize(
    ("pattern", "shape", "broken", "message"),
    [
        (NM(2, 4, 0), (8, 2), lambda v, i: (v, i + np.int8(3)), "each must be at least 0 and below 4"),
        (NM(2, 4, 0), (8, 2), lambda v, i: (v, i * np.int8(0)), "do not ascend"),
        (Mask(), (4, 4), lambda v, i, p: (v, i + np.int32(9), p), "has an entry in column"),
        (Mask(), (4, 4), lambda v, i, p: (v, i * 0, p), "do not ascend"),
        (Mask(), (4, 4), lambda v, i, p: (v, i, p[::-1].copy()), "from 0 to the"),
        (Mask(), (4, 4), lambda v, i, p: (v[1:], i, p), "and as many indices"),
        (Block((2, 2)), (4, 4), lambda v, i, p: (v, i - np.int32(1), p), "in column -1 of 2"),
    ],
)
def test_unsound_parts_are_told(pattern, shape, broken, message):
    value = Encoded.pack(pruned(NM(2, 4, 0), shape, np.random.default_rng(5)), Tesa.one(pattern))
    bad = Encoded(value.tesa, shape, value.dtype, tuple(broken(*value.parts)))
    with pytest.raises(UserError, match=message):
        bad.dense()


def test_unsound_parts_are_errors_of_the_program():
    with ir.Context():
        program = module("""
          func.func @f(%v: tensor<4x2xf32>, %i: tensor<4x2xi8>) -> tensor<8x2xf32> {
            %p = sparse_tile.assemble %v, %i : tensor<4x2xf32>, tensor<4x2xi8>
                to tensor<8x2xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>
            %u = sparse_tile.unpack %p : tensor<8x2xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>> to tensor<8x2xf32>
            return %u : tensor<8x2xf32>
          }""")
        with pytest.raises(InterpreterError, match=r"sparse_tile.assemble: positions of window 0 do not ascend"):
            reference.run(program, "f", [np.ones((4, 2), np.float32), np.ones((4, 2), np.int8)])


def test_what_does_not_fit_is_told():
    x = np.ones((8, 3), np.float32)
    with pytest.raises(
        ValueError, match=r"2:4 along axis 0: window 0 at \[0\] has 4 units other than zero \(6 windows"
    ):
        Encoded.pack(x, Tesa.one(NM(2, 4, 0)))


@pytest.mark.parametrize("storage", ["i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("group", [(), (1, None), (None, 1), (8, 16)])
def test_quantize_and_dequantize(storage, group):
    rng = np.random.default_rng(6)
    format = Format(storage, "f32", storage, group)
    x = rng.standard_normal((37, 70)).astype(np.float32)
    x[0, 0] = np.nan
    sizes = format.scale_shape(x.shape)
    scales = rng.uniform(0.05, 0.5, sizes).astype(np.float32)
    low, high = format.limits
    dtype = {"i2": ml_dtypes.int2, "u2": ml_dtypes.uint2, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4}
    zero = rng.integers(low, high + 1, sizes).astype(dtype.get(storage, f"{'u' * (storage[0] == 'u')}int8"))
    value = Encoded.pack(x, Tesa.one(Dense())).quantize(format, scales, zero)
    s, z = (format.spread(a.astype(np.float32), x.shape) for a in (scales, zero))
    codes = np.clip(np.rint(np.nan_to_num(x / s)) + z, low, high)
    codes[0, 0] = low  # what is no number
    np.testing.assert_array_equal(value.parts[0].astype(np.float32), codes)
    np.testing.assert_array_equal(value.dequantize().dense(), (codes - z) * s)


def test_integers_without_scales():
    """Bytes of the IR have no sign: the format says it."""
    format, rng = Format("u8", None, "u8", (1, None)), np.random.default_rng(10)
    codes, zero = rng.integers(0, 256, (5, 7)).astype(np.uint8), rng.integers(0, 256, (5, 1)).astype(np.uint8)
    with ir.Context():
        kind = Tesa.one(Dense(), format).type(codes.shape, ir.IntegerType.get_signless(32))
        assert Tesa.of(kind) == Tesa.one(Dense(), format)
        program = module(f"""
          func.func @f(%c: tensor<5x7xi8>, %z: tensor<5x1xi8>) -> tensor<5x7xi32> {{
            %q = sparse_tile.assemble %c, %z : tensor<5x7xi8>, tensor<5x1xi8> to {kind}
            %x = sparse_tile.dequantize %q : {kind} to tensor<5x7xi32>
            return %x : tensor<5x7xi32>
          }}""")
        (x,) = reference.run(program, "f", [codes.view(np.int8), zero.view(np.int8)])
    np.testing.assert_array_equal(x, codes.astype(np.int32) - zero.astype(np.int32))


@pytest.mark.parametrize("unsigned", ["", "unsigned "])
@pytest.mark.parametrize(
    ("zero", "scale", "result"), [("i8", "f32", "f32"), ("i32", "f16", "f16"), ("f32", "f32", "f32"), ("i8", "", "i32")]
)
def test_decode(unsigned, zero, scale, result):
    """Of each code, with its sign or without."""
    codes = np.arange(-128, 128, dtype=np.int8)
    scaled = f"scale %s : {scale}" if scale else ""
    with ir.Context():
        program = module(f"""
          func.func @f(%c: i8, %z: {zero}, %s: {scale or "f32"}) -> {result} {{
            %x = sparse_tile.decode {unsigned}%c zero_point %z : {zero} {scaled} : i8 to {result}
            return %x : {result}
          }}""")
        z, s = np.dtype({"i8": np.int8, "i32": np.int32, "f32": np.float32}[zero]).type(-3), np.float16(0.25)
        s = s.astype(np.float32) if scale == "f32" else s
        found = [reference.run(program, "f", [c, z, s])[0] for c in codes]
    plain = codes.view(np.uint8) if unsigned else codes
    point = 253 if unsigned and zero == "i8" else -3
    np.testing.assert_array_equal(found, (plain.astype(np.float32) - point) * (0.25 if scale else 1))


def test_quantized_zeros_stay_out():
    """What a pattern leaves out is zero, whatever a zero point would make of a code of zero."""
    x = pruned(NM(2, 4, 0), (16, 6), np.random.default_rng(7))
    format = Format("u8", "f32", "u8")
    value = Encoded.pack(x, Tesa.one(NM(2, 4, 0))).quantize(
        format, np.full((1, 1), 0.25, np.float32), np.full((1, 1), 128, np.uint8)
    )
    assert (value.dense()[~value.kept()] == 0).all()
    np.testing.assert_array_equal(value.dense(), x)


def test_float8_codes():
    x = np.array([0.1, 3.0, 1e6, -500.0], np.float32)
    format = Format("f8e4m3fn")
    value = Encoded.pack(x, Tesa.one(Dense())).quantize(format, np.ones(1, np.float32))
    expected = np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(value.dense(), expected)


@pytest.mark.parametrize("sparse", ["a", "b", "both"])
def test_matmul(sparse):
    rng = np.random.default_rng(8)
    a = pruned(NM(2, 4, 1), (5, 64), rng) if sparse != "b" else rng.integers(-4, 5, (5, 64)).astype(np.float32)
    b = pruned(Block((8, 16)), (64, 70), rng) if sparse != "a" else rng.integers(-4, 5, (64, 70)).astype(np.float32)
    c = rng.integers(-4, 5, (5, 70)).astype(np.float32)
    values = [
        Encoded.pack(a, Tesa.one(NM(2, 4, 1))) if sparse != "b" else a,
        Encoded.pack(b, Tesa.one(Block((8, 16)))) if sparse != "a" else b,
    ]
    with ir.Context():
        f32 = ir.F32Type.get()
        types = [
            v.tesa.type(v.shape, f32) if isinstance(v, Encoded) else f"tensor<{v.shape[0]}x{v.shape[1]}xf32>"
            for v in values
        ]
        program = module(f"""
          func.func @f(%a: {types[0]}, %b: {types[1]}, %c: tensor<5x70xf32>) -> tensor<5x70xf32> {{
            %d = sparse_tile.matmul %a, %b, %c : {types[0]}, {types[1]}, tensor<5x70xf32>
            return %d : tensor<5x70xf32>
          }}""")
        (d,) = reference.run(program, "f", [*values, c])
    np.testing.assert_array_equal(d, a @ b + c)


def test_infinities_meet_no_pruned_zero():
    a = np.array([[np.inf, 1.0]], np.float32)
    b = Encoded.pack(np.array([[0.0], [2.0]], np.float32), Tesa.one(Mask()))
    with ir.Context():
        kind = b.tesa.type(b.shape, ir.F32Type.get())
        program = module(f"""
          func.func @f(%a: tensor<1x2xf32>, %b: {kind}, %c: tensor<1x1xf32>) -> tensor<1x1xf32> {{
            %d = sparse_tile.matmul %a, %b, %c : tensor<1x2xf32>, {kind}, tensor<1x1xf32>
            return %d : tensor<1x1xf32>
          }}""")
        (d,) = reference.run(program, "f", [a, b, np.zeros((1, 1), np.float32)])
    assert d == 2.0


def test_index_gather_scatter():
    rng = np.random.default_rng(9)
    x = np.zeros((37, 20), np.float32)
    x[rng.permutation(37)[:9]] = rng.integers(1, 9, (9, 20))
    with ir.Context():
        program = module("""
          func.func @f(%x: tensor<37x20xf32>) -> (tensor<37x1xi32>, tensor<1x1xi32>, tensor<37x20xf32>) {
            %live, %count = sparse_tile.index %x unit [1, 20] axis 0
                : tensor<37x20xf32> to tensor<37x1xi32>, tensor<1x1xi32>
            %list = tensor.collapse_shape %live [[0, 1]] : tensor<37x1xi32> into tensor<37xi32>
            %g = sparse_tile.gather %x[%list] axis 0 : tensor<37x20xf32>, tensor<37xi32> to tensor<37x20xf32>
            %zero = arith.constant dense<0.0> : tensor<37x20xf32>
            %s = sparse_tile.scatter %g into %zero[%list] axis 0
                : tensor<37x20xf32>, tensor<37xi32>, tensor<37x20xf32>
            return %live, %count, %s : tensor<37x1xi32>, tensor<1x1xi32>, tensor<37x20xf32>
          }""")
        live, count, back = reference.run(program, "f", [x])
    rows = np.flatnonzero(x.any(axis=1))
    assert count == len(rows)
    np.testing.assert_array_equal(live[: len(rows), 0], rows)
    assert (live[len(rows) :] == -1).all()
    np.testing.assert_array_equal(back, x)


SCATTER = """
  func.func @f(%y: tensor<3x2xf32>, %i: tensor<3xi32>, %init: tensor<4x2xf32>) -> tensor<4x2xf32> {{
    %x = sparse_tile.scatter %y into %init[%i] axis 0 {} : tensor<3x2xf32>, tensor<3xi32>, tensor<4x2xf32>
    return %x : tensor<4x2xf32>
  }}"""


def test_scatter_adds_or_tells_twice():
    y, init = np.ones((3, 2), np.float32), np.full((4, 2), 10, np.float32)
    twice = np.array([1, 1, -1], np.int32)
    with ir.Context():
        (added,) = reference.run(module(SCATTER.format("accumulate")), "f", [y, twice, init])
        with pytest.raises(InterpreterError, match="index 1 occurs twice"):
            reference.run(module(SCATTER.format("")), "f", [y, twice, init])
        with pytest.raises(InterpreterError, match="index 4 at 0 is none of 4 slices"):
            reference.run(module(SCATTER.format("")), "f", [y, np.array([4, 0, 1], np.int32), init])
    np.testing.assert_array_equal(added[:, 0], [10, 12, 10, 10])
