# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mma.sync, mma.sp, ldmatrix, stmatrix, movmatrix against NumPy; fragments are dealt by the formulas of the PTX ISA."""

import ml_dtypes
import numpy as np
import pytest
from ptx_text import assembles, kernel, rule, run

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.sim import ptx as emulate

NUMBERS = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "f32": np.dtype(np.float32),
    "s32": np.dtype(np.int32),
}
BITS = {"s4": 4, "u4": 4, "b1": 1}
LANES = np.arange(32)
GROUP, MEMBER = LANES[:, None] >> 2, LANES[:, None] % 4


def _bits(name):
    return BITS.get(name) or 8 * NUMBERS[name].itemsize


def _pack(values, name):
    """Elements (32, n) of a type as the registers of 32 lanes."""
    if name in BITS:
        codes = values.astype(np.int64) & ((1 << BITS[name]) - 1)
        codes = codes.reshape(32, -1, 32 // BITS[name]) << (np.arange(32 // BITS[name]) * BITS[name])
        return codes.sum(-1).astype(np.uint32)
    return np.ascontiguousarray(values.astype(NUMBERS[name])).view(np.uint64 if name == "f64" else np.uint32)


def _deal_a(matrix, bits):
    rows, k = matrix.shape
    per, halves = max(1, 32 // bits), rows // 8
    i = np.arange(rows * k // 32)[None, :]
    register, e = i // per, i % per
    return matrix[GROUP + 8 * (register % halves), MEMBER * per + e + 4 * per * (register // halves)]


def _deal_b(matrix, bits):
    per, i = max(1, 32 // bits), np.arange(matrix.size // 32)[None, :]
    return matrix[MEMBER * per + i % per + 4 * per * (i // per), GROUP]


def _deal_c(matrix):
    i = np.arange(matrix.size // 32)[None, :]
    return matrix[GROUP + 8 * (i // 2), 2 * MEMBER + i % 2]


def _instruction(op, counts, wide_operands, wide_sums, extra=""):
    """A kernel that loads a, b, c of each lane, runs `op` and stores d."""
    body, lists = "", []
    for array, (count, wide) in enumerate(zip(counts, (wide_operands, wide_operands, wide_sums), strict=True)):
        size, prefix = (8, "%fd") if wide else (4, "%r")
        names = [f"{prefix}{(16 if wide else 60) * array + i}" for i in range(count)]
        body += f"  mad.wide.u32 %rd{20 + array}, %t, {count * size}, %rd{array};\n"
        kind = "f64" if wide else "b32"
        body += "".join(f"  ld.global.{kind} {n}, [%rd{20 + array}+{size * i}];\n" for i, n in enumerate(names))
        lists.append(", ".join(names))
    kind, size = ("f64", 8) if wide_sums else ("b32", 4)
    prefix = "%fd" if wide_sums else "%r"
    names = [f"{prefix}{(48 if wide_sums else 180) + i}" for i in range(counts[2])]
    body += f"  mad.wide.u32 %rd23, %t, {counts[2] * size}, %rd3;\n{extra}"
    meta = ", %r250, SELECTOR" if ".sp" in op else ""
    body += f"  {op} {{{', '.join(names)}}}, {{{lists[0]}}}, {{{lists[1]}}}, {{{lists[2]}}}{meta};\n"
    return body + "".join(f"  st.global.{kind} [%rd23+{size * i}], {n};\n" for i, n in enumerate(names))


def _random(name, shape, rng):
    if name == "b1":
        return rng.integers(0, 2, shape)
    if name in BITS or name in ("s8", "u8"):
        low = 0 if name[0] == "u" else -(1 << (_bits(name) - 1))
        return rng.integers(low, low + (1 << _bits(name)), shape)
    values = rng.standard_normal(shape).astype(NUMBERS[name])
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if name == "tf32" else values


DENSE = [
    ("m16n8k16", "f32", "f16", "f16"),
    ("m16n8k16", "f16", "f16", "f16"),
    ("m16n8k8", "f32", "f16", "f16"),
    ("m16n8k16", "f32", "bf16", "bf16"),
    ("m16n8k8", "f32", "bf16", "bf16"),
    ("m16n8k8", "f32", "tf32", "tf32"),
    ("m16n8k4", "f32", "tf32", "tf32"),
    ("m16n8k32", "f32", "e4m3", "e5m2"),
    ("m16n8k32", "f32", "e5m2", "e4m3"),
    ("m16n8k32", "s32", "s8", "u8"),
    ("m16n8k16", "s32", "u8", "s8"),
    ("m8n8k16", "s32", "s8", "s8"),
    ("m16n8k64", "s32", "s4", "u4"),
    ("m16n8k32", "s32", "u4", "s4"),
    ("m8n8k32", "s32", "s4", "s4"),
    ("m8n8k4", "f64", "f64", "f64"),
    ("m16n8k4", "f64", "f64", "f64"),
    ("m16n8k8", "f64", "f64", "f64"),
    ("m16n8k16", "f64", "f64", "f64"),
    ("m16n8k256", "s32", "b1", "b1"),
    ("m8n8k128", "s32", "b1", "b1"),
]


def _shape(text):
    rows, depth = text[1:].split("n8k")
    return int(rows), int(depth)


@pytest.mark.parametrize("shape, sums, left, right", DENSE)
def test_mma(shape, sums, left, right, tmp_path):
    rows, depth = _shape(shape)
    rng = np.random.default_rng(depth)
    a, b = _random(left, (rows, depth), rng), _random(right, (depth, 8), rng)
    c = rng.integers(-50, 50, (rows, 8)).astype(NUMBERS[sums])
    bitwise = ".and.popc" if left == "b1" else ""
    op = f"mma.sync.aligned.{shape}.row.col.{sums}.{left}.{right}.{sums}{bitwise}"
    fragments = [_pack(_deal_a(a, _bits(left)), left), _pack(_deal_b(b, _bits(right)), right), _pack(_deal_c(c), sums)]
    ptx = kernel(_instruction(op, [f.shape[1] for f in fragments], left == "f64", sums == "f64"), params=4)
    d = run(ptx, [*fragments, np.zeros_like(fragments[2])])[3].view(NUMBERS[sums])
    wide = np.int64 if sums == "s32" else np.float64
    expected = _deal_c(a.astype(wide) @ b.astype(wide) + c.astype(wide))
    tolerance = {"f16": 2e-2, "f32": 1e-4, "f64": 1e-12, "s32": 0}[sums]
    np.testing.assert_allclose(d.astype(wide), expected, rtol=tolerance, atol=tolerance)
    assembles(ptx, tmp_path)


def test_exclusive_or_of_bits_and_saturation():
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 2, (16, 128)), rng.integers(0, 2, (128, 8)), np.zeros((16, 8), np.int32)
    fragments = [_pack(_deal_a(a, 1), "b1"), _pack(_deal_b(b, 1), "b1"), _pack(_deal_c(c), "s32")]
    op = "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc"
    ptx = kernel(_instruction(op, [f.shape[1] for f in fragments], False, False), params=4)
    d = run(ptx, [*fragments, fragments[2].copy()])[3].view(np.int32)
    np.testing.assert_array_equal(d, _deal_c((a[:, :, None] ^ b[None]).sum(1)))

    a, b = np.full((16, 32), 127), np.full((32, 8), 127)
    for satfinite in ("", ".satfinite"):
        c = np.full((16, 8), 2**31 - 5, np.int32)
        fragments = [_pack(_deal_a(a, 8), "s8"), _pack(_deal_b(b, 8), "s8"), _pack(_deal_c(c), "s32")]
        op = f"mma.sync.aligned.m16n8k32.row.col{satfinite}.s32.s8.s8.s32"
        ptx = kernel(_instruction(op, [f.shape[1] for f in fragments], False, False), params=4)
        d = run(ptx, [*fragments, fragments[2].copy()])[3].view(np.int32)
        whole = 2**31 - 5 + 127 * 127 * 32
        assert (d == (2**31 - 1 if satfinite else whole - 2**32)).all()


@pytest.mark.parametrize(
    "shape, kind, selector",
    [
        ("m16n8k32", "f16", 1),
        ("m16n8k16", "bf16", 3),
        ("m16n8k64", "s8", 0),
        ("m16n8k32", "u8", 1),
        ("m16n8k64", "e4m3", 0),
    ],
)
def test_sparse_mma(shape, kind, selector, tmp_path):
    """Metadata is dealt lane by lane as figures 119, 122 and 127 to 129 of the ISA show."""
    _, depth = _shape(shape)
    bits, rng = _bits(kind), np.random.default_rng(depth)
    dense = np.zeros((16, depth), NUMBERS[kind])
    words = np.full((8, 4), 0x44444444, np.uint32)
    stored = np.zeros((16, depth // 2), NUMBERS[kind])
    lanes = max(1, depth // 16)
    words[:, selector * lanes : (selector + 1) * lanes] = 0
    for row in range(16):
        for chunk in range(depth // 4):
            where = np.sort(rng.choice(4, 2, replace=False))
            values = _random(kind, 2, rng)
            dense[row, 4 * chunk + where] = values
            stored[row, 2 * chunk : 2 * chunk + 2] = values
            code = int(where[0]) | int(where[1]) << 2
            if bits == 16:
                lane, shift = chunk // 4, 16 * (row // 8) + 4 * (chunk % 4)
            else:
                lane, shift = row // 8 + 2 * (chunk // 8), 4 * (chunk % 8)
            words[row % 8, selector * lanes + lane] |= np.uint32(code << shift)
    sums = "s32" if kind in ("s8", "u8") else "f32"
    b, c = _random(kind, (depth, 8), rng), np.ones((16, 8), NUMBERS[sums])
    fragments = [_pack(_deal_a(stored, bits), kind), _pack(_deal_b(b, bits), kind), _pack(_deal_c(c), sums)]
    op = f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.{sums}.{kind}.{kind}.{sums}"
    extra = "  mad.wide.u32 %rd24, %t, 4, %rd4;\n  ld.global.b32 %r250, [%rd24];\n"
    body = _instruction(op, [f.shape[1] for f in fragments], False, False, extra).replace("SELECTOR", str(selector))
    ptx = kernel(body, params=5)
    d = run(ptx, [*fragments, np.zeros_like(fragments[2]), words.ravel()])[3].view(NUMBERS[sums])
    wide = dense.astype(np.float64) @ b.astype(np.float64) + 1
    np.testing.assert_allclose(d.astype(np.float64), _deal_c(wide), rtol=1e-4, atol=1e-3)
    assembles(ptx, tmp_path)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", ["", ".trans"])
def test_matrices_through_shared_memory(count, transposed, tmp_path):
    """ldmatrix from rows in an odd order, stmatrix back to others, movmatrix between."""
    rng = np.random.default_rng(count)
    data = rng.integers(0, 1 << 16, (32, 8)).astype(np.uint16)
    names = ", ".join(f"%r{10 + i}" for i in range(count))
    moved = ", ".join(f"%r{20 + i}" for i in range(count))
    moves = "".join(f"  movmatrix.sync.aligned.m8n8.trans.b16 %r{20 + i}, %r{10 + i};\n" for i in range(count))
    body = f"""
  mad.wide.u32 %rd10, %t, 16, %rd0;
  ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%rd10];
  mov.u32 %r4, sh;
  mad.lo.u32 %r5, %t, 16, %r4;
  st.shared.v4.b32 [%r5], {{%r0, %r1, %r2, %r3}};
  bar.warp.sync -1;
  ldmatrix.sync.aligned.m8n8.x{count}{transposed}.shared.b16 {{{names}}}, [%r5];
{moves}
  stmatrix.sync.aligned.m8n8.x{count}.shared.b16 [%r5+512], {{{moved}}};
  bar.warp.sync -1;
  setp.ge.u32 %p0, %t, {8 * count};
  @%p0 bra DONE;
  ld.shared.v4.b32 {{%r0, %r1, %r2, %r3}}, [%r5+512];
  mad.wide.u32 %rd11, %t, 16, %rd1;
  st.global.v4.b32 [%rd11], {{%r0, %r1, %r2, %r3}};
DONE:"""
    ptx = kernel(body, shared=1024)
    out = run(ptx, [data, np.zeros((8 * count, 8), np.uint16)])[1]
    matrices = data.reshape(4, 8, 8)[:count]
    expected = matrices if transposed else matrices.swapaxes(1, 2)
    np.testing.assert_array_equal(out.reshape(count, 8, 8), expected)
    assembles(ptx, tmp_path)


def test_row_addresses_of_ldmatrix_are_checked():
    body = "  mov.u32 %r4, sh;\n  mad.lo.u32 %r5, %t, 8, %r4;\n"
    body += "  st.shared.b64 [%r5], %rd0;\n  bar.warp.sync -1;\n"
    body += "  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%r5];\n"
    with pytest.raises(emulate.EmulationError) as excinfo:
        run(kernel(body, shared=256), [np.zeros(1), np.zeros(1)])
    assert rule(excinfo) == "misaligned" and excinfo.value.line


@pytest.mark.parametrize(
    "op, error",
    [
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r0}, {%r1}, {%r2}, {%r3};", UnsupportedError),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0}, {%r1}, {%r2}, {%r3};", UnsupportedError),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r0}, {%r1}, {%r2}, {%r3};", UserError),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];", UnsupportedError),
        ("wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%f0}, %rd0, %rd1, 1, 1, 1, 0, 0;", UnsupportedError),
    ],
)
def test_forms_that_no_unit_has(op, error):
    with pytest.raises(error, match="PTX line"):
        emulate.load(kernel("  " + op))
