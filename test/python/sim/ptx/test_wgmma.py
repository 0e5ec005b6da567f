# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wgmma against NumPy: every type, every swizzle, both orders in memory; and the rules of work in the background."""

import ml_dtypes
import numpy as np
import pytest
from ptx_text import assembles, kernel, rule, run

from tilewright.sim import ptx as emulate

NUMBERS = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "f32": np.dtype(np.float32),
    "s32": np.dtype(np.int32),
}
_CODES = {0: 0, 128: 1, 64: 2, 32: 3}
_B_AT = 16384  # where the right operand lies in shared memory


def _image(matrix, mode, mn_major):
    """Bytes of a (outer, k) operand in shared memory and (LBO, SBO), built as figures 156 to 163 of the PTX ISA show.

    A row of a swizzle atom has `mode` bytes; its 16-byte chunks are exchanged by the row's number.
    """
    rows = matrix.T if mn_major else matrix
    size = matrix.dtype.itemsize
    width = (mode or 16) // size
    count, length = rows.shape
    panels = length // width
    image = np.zeros(matrix.size * size, np.uint8)
    for panel in range(panels):
        for row in range(count):
            data = np.ascontiguousarray(rows[row, panel * width : (panel + 1) * width]).view(np.uint8)
            start = (panel * count + row) * (mode or 16)
            for chunk in range(len(data) // 16):
                at = start + 16 * chunk
                if mode:
                    at ^= (at // 128 % (mode // 16)) * 16
                image[at : at + 16] = data[16 * chunk : 16 * chunk + 16]
    next_eight, next_panel = 8 * (mode or 16), count * (mode or 16)
    if mn_major and not mode:
        return image, next_eight, next_panel  # LBO: the next 8 columns; SBO: the next rows
    return image, next_panel, next_eight


def _descriptor(offset, leading, stride, mode):
    return (0x400 + offset) >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | _CODES[mode] << 62


def _sums_of(lane, columns):
    i = np.arange(columns // 2)
    return 16 * (lane // 32) + lane % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lane % 4) + i % 2


COPY = """
  mov.u32 %r0, sh;
  mov.u32 %r1, 0;
LOOP:
  mad.lo.u32 %r2, %r1, 128, %t;
  mul.lo.u32 %r3, %r2, 16;
  cvt.u64.u32 %rd10, %r3;
  add.s64 %rd10, %rd10, %rd0;
  ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd10];
  add.u32 %r3, %r3, %r0;
  st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p0, %r1, 16;
  @%p0 bra LOOP;
  fence.proxy.async.shared::cta;
  bar.sync 0;
"""


LOAD_META = "  mad.wide.u32 %rd24, %t, 4, %rd2;\n  ld.global.b32 %r250, [%rd24];\n"
META = ", %r250, STEP"


def _body(op, count, sums, left, right, tail, prefix="%f", steps=2, middle=""):
    names = ", ".join(f"{prefix}{i + 32}" for i in range(count))
    text = COPY + "  wgmma.fence.sync.aligned;\n"
    for step in range(steps):
        ahead = 4 if ".sp." in op else 2
        text += f"  mov.b64 %rd20, {left + 2 * step};\n  mov.b64 %rd21, {right + ahead * step};\n"
        text += f"  setp.ne.b32 %p1, {step}, 0;\n"
        text += f"  {op} {{{names}}}, %rd20, %rd21{middle.replace('STEP', str(step))}, %p1{tail};\n"
    text += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n"
    text += f"  mad.wide.u32 %rd22, %t, {4 * count}, %rd1;\n"
    kind = "f32" if prefix == "%f" else "b32"
    return text + "".join(f"  st.global.{kind} [%rd22+{4 * i}], {prefix}{i + 32};\n" for i in range(count))


def _run(a, b, op, sums, tail, modes, majors=(False, False), steps=2, metadata=None):
    """Run `steps` products along k; a is (64, k), b is (n, k). Returns d (64, n) and the PTX.

    With metadata, a word of each lane, a is condensed, and step s takes its selector s.
    """
    images = [_image(matrix, mode, major) for matrix, mode, major in zip((a, b), modes, majors, strict=True)]
    memory = np.zeros(32768, np.uint8)
    starts = []
    for (image, leading, stride), at, mode in zip(images, (0, _B_AT), modes, strict=True):
        memory[at : at + image.size] = image
        starts.append(_descriptor(at, leading, stride, mode))
    columns = b.shape[0]
    count = columns // (4 if sums == "f16" else 2)
    body = _body(
        op, count, sums, *starts, tail, "%f" if sums == "f32" else "%r", steps, "" if metadata is None else META
    )
    inputs = [memory, np.zeros((128, count), np.uint32)]
    if metadata is not None:
        body = LOAD_META + body
        inputs.append(metadata)
    ptx = kernel(body, threads=128, shared=32768, params=len(inputs))
    out = run(ptx, inputs)[1]
    values = np.ascontiguousarray(out).view(NUMBERS[sums])
    d = np.zeros((64, columns), NUMBERS[sums])
    for lane in range(128):
        d[_sums_of(lane, columns)] = values[lane]
    return d, ptx


def _numbers(kind, shape, rng):
    if kind in ("s8", "u8"):
        return rng.integers(0 if kind == "u8" else -128, 128, shape).astype(NUMBERS[kind])
    values = rng.standard_normal(shape).astype(NUMBERS[kind])
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if kind == "tf32" else values


@pytest.mark.parametrize(
    "sums, left, right, columns",
    [
        ("f32", "f16", "f16", 8),
        ("f16", "f16", "f16", 64),
        ("f32", "bf16", "bf16", 256),
        ("f32", "tf32", "tf32", 24),
        ("f32", "e4m3", "e5m2", 40),
        ("f32", "e5m2", "e4m3", 16),
        ("s32", "s8", "u8", 48),
        ("s32", "u8", "s8", 24),
    ],
)
def test_types(sums, left, right, columns, tmp_path):
    depth = 64 // NUMBERS[left].itemsize
    rng = np.random.default_rng(columns)
    a, b = _numbers(left, (64, depth), rng), _numbers(right, (columns, depth), rng)
    tail = "" if sums == "s32" else ", 1, 1, 0, 0" if NUMBERS[left].itemsize == 2 else ", 1, 1"
    op = f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth // 2}.{sums}.{left}.{right}"
    d, ptx = _run(a, b, op, sums, tail, (64, 64))
    wide = np.int64 if sums == "s32" else np.float64
    tolerance = {"s32": 0, "f32": 1e-4, "f16": 2e-2}[sums]
    want = a.astype(wide) @ b.astype(wide).T
    if left in ("e4m3", "e5m2"):  # Hopper's short accumulator (test_short_sums.py has its numbers)
        errors = np.abs(d - want)
        assert 2**-14 < errors.max() < 2**-11 * np.abs(want).max(), "each term is cut behind 13 bits of fraction"
    else:
        np.testing.assert_allclose(d.astype(wide), want, rtol=tolerance, atol=tolerance)
    assembles(ptx, tmp_path)


@pytest.mark.parametrize("mode", [0, 32, 64, 128])
@pytest.mark.parametrize("a_transposed, b_transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_swizzles_and_orders(mode, a_transposed, b_transposed):
    """One step of k = 16, operands along k or along m and n."""
    rng = np.random.default_rng(mode)
    a, b = rng.standard_normal((64, 16)).astype(np.float16), rng.standard_normal((64, 16)).astype(np.float16)
    wide = [np.concatenate([x, np.zeros((64, 48), np.float16)], 1) for x in (a, b)]  # rows that fill an atom
    operands = [
        x if transposed else w for x, w, transposed in zip((a, b), wide, (a_transposed, b_transposed), strict=True)
    ]
    op = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    tail = f", 1, 1, {int(a_transposed)}, {int(b_transposed)}"
    d, _ = _run(*operands, op, "f32", tail, (mode, mode), (a_transposed, b_transposed), steps=1)
    np.testing.assert_allclose(d, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-4, atol=1e-4)


def test_negated_operands():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 32)).astype(np.float16), rng.standard_normal((8, 32)).astype(np.float16)
    op = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    d, _ = _run(a, b, op, "f32", ", -1, 1, 0, 0", (64, 64))
    np.testing.assert_allclose(d, -(a.astype(np.float64) @ b.astype(np.float64).T), rtol=1e-4, atol=1e-4)


def _edited(*changes, columns=8):
    """A good kernel with changes (old, new) in its text, run on zeros."""
    a, b = np.zeros((64, 32), np.float16), np.zeros((columns, 32), np.float16)
    op = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16"
    ptx = _run(a, b, op, "f32", ", 1, 1, 0, 0", (64, 64))[1]
    for old, new in changes:
        assert old in ptx
        ptx = ptx.replace(old, new, 1)
    run(ptx, [np.zeros(32768, np.uint8), np.zeros((128, columns // 2), np.uint32)])


@pytest.mark.parametrize(
    "changes, expected, text",
    [
        ([("wgmma.wait_group.sync.aligned 0;", "")], "asynchronous", "not waited for"),
        ([("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;")], "asynchronous", "not waited for"),
        ([("wgmma.commit_group.sync.aligned;", "")], "asynchronous", "not waited for"),
        ([("wgmma.fence.sync.aligned;", "")], "asynchronous", "wgmma.fence"),
        (
            [("  setp.ne.b32 %p1, 1, 0;", "  mov.f32 %f33, 0f00000000;  setp.ne.b32 %p1, 1, 0;")],
            "asynchronous",
            "not waited",
        ),
        (
            [("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned; mov.f32 %f33, 0f00000000;")],
            "asynchronous",
            "after the last",
        ),
        ([("fence.proxy.async.shared::cta;", "")], "race", "fence.proxy.async"),
        ([("  bar.sync 0;", "")], "race", "no barrier"),
        ([("setp.lt.u32 %p0, %r1, 16;", "setp.lt.u32 %p0, %r1, 2;")], "uninitialised", "never written"),
    ],
)
def test_rules(changes, expected, text):
    with pytest.raises(emulate.EmulationError, match=text) as excinfo:
        _edited(*changes)
    assert rule(excinfo) == expected
    assert excinfo.value.line


def test_descriptor_out_of_bounds():
    a, b = np.zeros((64, 32), np.float16), np.zeros((8, 32), np.float16)
    op = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    ptx = _run(a, b, op, "f32", ", 1, 1, 0, 0", (64, 64))[1]
    ptx = ptx.replace("[32768]", "[4096]").replace("%r1, 16;", "%r1, 2;")
    with pytest.raises(emulate.EmulationError) as excinfo:
        run(ptx, [np.zeros(32768, np.uint8), np.zeros((128, 4), np.uint32)])
    assert rule(excinfo) == "out-of-bounds"


def test_a_product_may_use_the_accumulator_of_the_one_before_without_waiting():
    _edited(("wgmma.commit_group.sync.aligned;", "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;"))


def _two_warpgroups(adds):
    """Two warpgroups multiply the same; `adds` sets %p1, whether ones are added. Returns (sums (2, 64, 8), product)."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((64, 16)).astype(np.float16), rng.standard_normal((8, 16)).astype(np.float16)
    memory, starts = np.zeros(32768, np.uint8), []
    for matrix, at in ((a, 0), (b, _B_AT)):
        image, leading, stride = _image(matrix, 32, False)
        memory[at : at + image.size] = image
        starts.append(_descriptor(at, leading, stride, 32))
    copy = COPY.replace("  bar.sync 0;", "MEET:\n  bar.sync 0;")
    body = f"  setp.ge.u32 %p5, %t, 128;\n  @%p5 bra MEET;\n{copy}{adds}"
    body += "".join(f"  mov.f32 %f{i}, 0f3F800000;\n" for i in range(32, 36)) + "  wgmma.fence.sync.aligned;\n"
    body += f"  mov.b64 %rd20, {starts[0]};\n  mov.b64 %rd21, {starts[1]};\n"
    body += (
        "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f32, %f33, %f34, %f35}, %rd20, %rd21, %p1, 1, 1, 0, 0;\n"
    )
    body += (
        "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n  mad.wide.u32 %rd22, %t, 16, %rd1;\n"
    )
    body += "".join(f"  st.global.f32 [%rd22+{4 * i}], %f{i + 32};\n" for i in range(4))
    out = run(kernel(body, threads=256, shared=32768), [memory, np.zeros((256, 4), np.uint32)])[1].view(np.float32)
    sums = np.zeros((2, 64, 8), np.float32)
    for thread in range(256):
        sums[thread // 128][_sums_of(thread % 128, 8)] = out[thread]
    return sums, a.astype(np.float64) @ b.astype(np.float64).T


def test_warpgroups_in_different_steps_of_a_loop_run_one_instruction():
    """The first step of a loop adds to nothing (scale-d), and another warpgroup may be a step ahead."""
    sums, product = _two_warpgroups("  setp.ge.u32 %p1, %t, 128;\n")
    np.testing.assert_allclose(sums, [product, product + 1], rtol=1e-4, atol=1e-4)


def test_the_lanes_of_a_warpgroup_agree_whether_they_add():
    with pytest.raises(emulate.EmulationError, match="scale-d differs between the lanes of a warpgroup") as excinfo:
        _two_warpgroups("  and.b32 %r9, %t, 1;\n  setp.eq.u32 %p1, %r9, 1;\n")
    assert rule(excinfo) == "convergence"


def _halved(dense, bits):
    """A 2:4 sparse (64, 64 bytes) operand condensed, and the words of 128 lanes for two steps of k."""
    rows, depth = dense.shape
    words = np.zeros(128, np.uint32)
    stored = np.zeros((rows, depth // 2), dense.dtype)
    for row in range(rows):
        for chunk in range(depth // 4):
            first, second = np.flatnonzero(dense[row, 4 * chunk : 4 * chunk + 4])
            stored[row, 2 * chunk : 2 * chunk + 2] = dense[row, 4 * chunk + first], dense[row, 4 * chunk + second]
            lane = 32 * (row // 16) + 4 * (row % 8)
            if bits == 16:
                lane, at = lane + chunk // 4, 16 * (row // 8 % 2) + 4 * (chunk % 4)
            else:
                lane, at = lane + row // 8 % 2 + 2 * (chunk // 8), 4 * (chunk % 8)
            words[lane] |= np.uint32((int(first) | int(second) << 2) << at)
    return stored, words


@pytest.mark.parametrize(("kind", "columns"), [("f16", 16), ("bf16", 64), ("s8", 32)])
@pytest.mark.parametrize("from_shared", [True, False])
def test_sparse(kind, columns, from_shared, tmp_path):
    """Selectors 0 and 1 of one word (16 bits), or one step (bytes); b 64 bytes deep a step, in order along k."""
    rng = np.random.default_rng(columns)
    bits = NUMBERS[kind].itemsize * 8
    steps = 2 if bits == 16 else 1
    depth = steps * 512 // bits
    order = np.argsort(rng.random((64, depth // 4, 4)), -1) < 2
    values = rng.integers(1, 5, (64, depth // 4, 4))
    dense = np.where(order, values, 0).reshape(64, depth).astype(NUMBERS[kind])
    stored, words = _halved(dense, bits)
    b = rng.integers(-4, 5, (columns, depth)).astype(NUMBERS[kind])
    sums, tail = ("s32", "") if kind == "s8" else ("f32", ", 1, 1, 0, 0")
    op = f"wgmma.mma_async.sp.sync.aligned.m64n{columns}k{512 // bits}.{sums}.{kind}.{kind}"
    mode = 32 * steps
    wide = np.int64
    if from_shared:
        d, ptx = _run(stored, b, op, sums, tail, (mode, 64 * steps), steps=steps, metadata=words)
        np.testing.assert_array_equal(d.astype(wide), dense.astype(wide) @ b.astype(wide).T)
        assembles(ptx, tmp_path)
        return
    words[5] = 0x44444400  # two equal positions, in the first step's lanes
    with pytest.raises(emulate.EmulationError, match="two equal positions") as excinfo:
        _run(stored, b, op, sums, tail, (mode, 64 * steps), steps=steps, metadata=words)
    assert rule(excinfo) == "metadata"
