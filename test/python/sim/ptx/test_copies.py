# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async, bulk copies, TMA: what arrives where, at the edges too; and what is not waited for is found."""

import ml_dtypes
import numpy as np
import pytest
from ptx_text import assembles, kernel, rule, run

from tilewright.sim import ptx as emulate
from tilewright.sim.ptx.memory.tensor_map import TensorMap

BF16 = np.dtype(ml_dtypes.bfloat16)

WAIT_ALL = """
W{n}:
  mbarrier.try_wait.parity.shared.b64 %p9, [bar], {phase};
  @!%p9 bra W{n};
"""
BAR = ".shared .align 8 .b64 bar;\n"


def _with_barrier(ptx):
    return ptx.replace(".visible .entry", BAR + ".visible .entry", 1)


# ---- cp.async ----------------------------------------------------------------

STAGED = """
  mov.u32 %r0, sh;
  mad.lo.u32 %r1, %t, 16, %r0;
  mad.wide.u32 %rd10, %t, 16, %rd0;
  {copy}
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.warp.sync -1;
  ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r1];
  mad.wide.u32 %rd11, %t, 16, %rd1;
  st.global.v4.b32 [%rd11], {{%r4, %r5, %r6, %r7}};
"""


@pytest.mark.parametrize("completion", ["late", "early"])
@pytest.mark.parametrize(
    "copy, kept",
    [
        ("cp.async.cg.shared.global [%r1], [%rd10], 16;", 16),
        ("cp.async.ca.shared.global.L2::128B [%r1], [%rd10], 16;", 16),
        ("cp.async.cg.shared.global [%r1], [%rd10], 16, 0;", 0),
        ("mov.u32 %r2, 10; cp.async.ca.shared.global [%r1], [%rd10], 16, %r2;", 10),
        ("setp.eq.u32 %p1, 0, 0; cp.async.cg.shared.global [%r1], [%rd10], 16, %p1;", 0),
        ("cp.async.ca.shared.global [%r1], [%rd10], 8; cp.async.ca.shared.global [%r1+8], [%rd10+8], 8;", 16),
        ("".join(f"cp.async.ca.shared.global [%r1+{i}], [%rd10+{i}], 4;" for i in (0, 4, 8, 12)), 16),
    ],
)
def test_cp_async(copy, kept, completion, tmp_path):
    data = np.random.default_rng(0).integers(0, 256, (32, 16), np.uint8)
    ptx = kernel(STAGED.format(copy=copy), shared=512)
    out = run(ptx, [data, np.zeros_like(data)], options=emulate.Options(completion=completion))[1]
    expected = data.copy()
    expected[:, kept:] = 0
    np.testing.assert_array_equal(out, expected)
    assembles(ptx, tmp_path)


def test_lanes_that_copy_nothing_read_nothing():
    """src-size 0 at an address that is no memory: the zero-fill of ragged edges."""
    copy = "mov.u32 %r2, 0; mov.b64 %rd10, 64; cp.async.cg.shared.global [%r1], [%rd10], 16, %r2;"
    out = run(kernel(STAGED.format(copy=copy), shared=512), [np.zeros(1), np.ones((32, 16), np.uint8)])[1]
    assert not out.any()


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("cp.async.wait_group 0;", "cp.async.wait_group 1;", "race"),
        ("cp.async.commit_group;\n", "", "race"),
        ("cp.async.cg.shared.global [%r1],", "cp.async.cg.shared.global [%r1+8],", "misaligned"),
        ("[%rd10], 16;", "[%rd10+16], 16;", "out-of-bounds"),
        ("mad.lo.u32 %r1, %t, 16, %r0;", "mad.lo.u32 %r1, %t, 32, %r0;", "out-of-bounds"),
    ],
)
def test_cp_async_rules(old, new, expected):
    ptx = kernel(STAGED.format(copy="cp.async.cg.shared.global [%r1], [%rd10], 16;"), shared=512)
    assert old in ptx
    with pytest.raises(emulate.EmulationError) as excinfo:
        run(ptx.replace(old, new), [np.zeros((32, 16), np.uint8), np.zeros((32, 16), np.uint8)])
    assert rule(excinfo) == expected and excinfo.value.line


BY_MBARRIER = """
  mov.u32 %r0, sh;
  mad.lo.u32 %r1, %t, 16, %r0;
  mad.wide.u32 %rd10, %t, 16, %rd0;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [bar], {count};
  bar.sync 0;
  setp.lt.u32 %p1, %t, 32;
  @!%p1 bra READ;
  cp.async.cg.shared.global [%r1], [%rd10], 16;
  cp.async.mbarrier.arrive{form}.shared.b64 [bar];
  {arrive}
  bra END;
READ:
  {wait}
  ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r1+-512];
  mad.wide.u32 %rd11, %t, 16, %rd1;
  st.global.v4.b32 [%rd11+-512], {{%r4, %r5, %r6, %r7}};
END:
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(
    "form, count, arrive", [(".noinc", 32, ""), ("", 32, "mbarrier.arrive.shared.b64 %rd12, [bar];")]
)
def test_cp_async_that_arrives_on_an_mbarrier(form, count, arrive, seed, tmp_path):
    """One warp copies, the other waits for the mbarrier only."""
    data = np.random.default_rng(0).integers(0, 256, (32, 16), np.uint8)
    body = BY_MBARRIER.format(form=form, count=count, arrive=arrive, wait=WAIT_ALL.format(n=0, phase=0))
    ptx = _with_barrier(kernel(body, shared=512, threads=64))
    out = run(ptx, [data, np.zeros_like(data)], options=emulate.Options(seed=seed))[1]
    np.testing.assert_array_equal(out, data)
    assembles(ptx, tmp_path)


def test_arrival_without_the_copies_is_a_race():
    body = BY_MBARRIER.format(form=".noinc", count=32, arrive="", wait=WAIT_ALL.format(n=0, phase=0))
    body = body.replace("cp.async.mbarrier.arrive.noinc.shared.b64 [bar];", "mbarrier.arrive.shared.b64 %rd12, [bar];")
    with pytest.raises(emulate.EmulationError) as excinfo:
        data = np.zeros((32, 16), np.uint8)
        run(
            _with_barrier(kernel(body, shared=512, threads=64)),
            [data, data],
            options=emulate.Options(completion="early"),
        )
    assert rule(excinfo) == "race"


# ---- bulk copies ---------------------------------------------------------------

LOAD = """
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [bar], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @!%p0 bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 %rd12, [bar], {nbytes};
  {copy}
WAIT:
  {wait}
"""
DUMP = """
  mov.u32 %r0, sh;
  mov.u32 %r1, %t;
DUMP:
  shl.b32 %r2, %r1, 4;
  add.u32 %r3, %r2, %r0;
  ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r3];
  cvt.u64.u32 %rd11, %r2;
  add.s64 %rd11, %rd11, %rd1;
  st.global.v4.b32 [%rd11], {{%r4, %r5, %r6, %r7}};
  add.u32 %r1, %r1, 32;
  setp.lt.u32 %p2, %r1, {chunks};
  @%p2 bra DUMP;
"""


def _loaded(copy, nbytes, arrays, maps=(), shared=None, options=None, edit=None, tmp_path=None):
    """Issue a load of `nbytes` bytes into `sh`, wait, and return the bytes there."""
    body = LOAD.format(nbytes=nbytes, copy=copy, wait=WAIT_ALL.format(n=0, phase=0)) + DUMP.format(chunks=nbytes // 16)
    ptx = _with_barrier(kernel(body, shared=shared or nbytes, maps=len(maps)))
    for old, new in edit or ():
        assert old in ptx
        ptx = ptx.replace(old, new)
    out = run(ptx, [*arrays, np.zeros(nbytes, np.uint8)], maps=maps, options=options)[1]
    if tmp_path:
        assembles(ptx, tmp_path)
    return out


BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sh], [%rd0], {nbytes}, [bar];"


@pytest.mark.parametrize("completion", ["late", "early"])
def test_bulk_load(completion, tmp_path):
    data = np.random.default_rng(0).integers(0, 256, 4096, np.uint8)
    options = emulate.Options(completion=completion)
    out = _loaded(BULK.format(nbytes=4096), 4096, [data], options=options, tmp_path=tmp_path)
    np.testing.assert_array_equal(out, data)


@pytest.mark.parametrize(
    "edit, expected",
    [
        ([("[bar], 4096;", "[bar], 4112;")], "dead-lock"),
        ([("  @%p0 fence.mbarrier_init.release.cluster;", "")], "race"),
        ([("[sh], [%rd0], 4096", "[sh], [%rd0], 4104")], "misaligned"),
        ([("[sh], [%rd0], 4096", "[sh+16], [%rd0], 4096")], "out-of-bounds"),
        ([("[sh], [%rd0], 4096", "[sh], [%rd0+16], 4096")], "out-of-bounds"),
    ],
)
def test_bulk_load_rules(edit, expected):
    with pytest.raises(emulate.EmulationError) as excinfo:
        _loaded(BULK.format(nbytes=4096), 4096, [np.zeros(4096, np.uint8)], edit=edit)
    assert rule(excinfo) == expected


def test_try_wait_may_give_up_before_the_phase_is_over():
    """A wait without its loop: under some order the time limit strikes first, and the data is read too early."""
    found = set()
    for seed in range(8):
        try:
            edit = [("  @!%p9 bra W0;", "")]
            options = emulate.Options(seed=seed)
            _loaded(BULK.format(nbytes=4096), 4096, [np.zeros(4096, np.uint8)], edit=edit, options=options)
        except emulate.EmulationError as error:
            found.add(error.rule)
    assert found <= {"race", "uninitialised"} and found


STORE = """
  mov.u32 %r0, sh;
  mad.lo.u32 %r1, %t, 16, %r0;
  mad.wide.u32 %rd10, %t, 16, %rd0;
  ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd10];
  st.shared.v4.b32 [%r1], {{%r4, %r5, %r6, %r7}};
  fence.proxy.async.shared::cta;
  bar.warp.sync -1;
  setp.eq.u32 %p0, %t, 0;
  @!%p0 bra END;
  {copy}
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
END:
"""


@pytest.mark.parametrize(
    "op, dtype, combine",
    [
        ("cp.async.bulk.global.shared::cta.bulk_group", np.uint32, lambda old, new: new),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32", np.float32, np.add),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16", BF16, np.add),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32", np.int32, np.minimum),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b64", np.uint64, np.bitwise_xor),
    ],
)
def test_bulk_store_and_reduction(op, dtype, combine, tmp_path):
    rng = np.random.default_rng(0)
    new, old = (rng.integers(-40, 40, 512 // np.dtype(dtype).itemsize).astype(dtype) for _ in range(2))
    ptx = kernel(STORE.format(copy=f"{op} [%rd1], [sh], 512;"), shared=512)
    out = run(ptx, [new, old.copy()])[1]
    np.testing.assert_array_equal(out, combine(old, new))
    assembles(ptx, tmp_path)


@pytest.mark.parametrize(
    "old, new, expected",
    [
        ("cp.async.bulk.wait_group.read 0;", "", "asynchronous"),
        ("fence.proxy.async.shared::cta;", "", "race"),
        ("bar.warp.sync -1;", "", "race"),
        ("cp.async.bulk.wait_group.read 0;", "st.shared.b32 [sh], %r1; cp.async.bulk.wait_group.read 0;", "race"),
    ],
)
def test_bulk_store_rules(old, new, expected):
    copy = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [sh], 512;"
    ptx = kernel(STORE.format(copy=copy), shared=512).replace(old, new)
    with pytest.raises(emulate.EmulationError) as excinfo:
        run(ptx, [np.zeros(512, np.uint8), np.zeros(512, np.uint8)])
    assert rule(excinfo) == expected


# ---- tensors -------------------------------------------------------------------


def _swizzled(box, mode):
    """A box's bytes as TMA lays them out: 16-byte chunks exchanged within rows of `mode` bytes."""
    flat = np.ascontiguousarray(box).view(np.uint8).reshape(-1, 16)
    out = np.empty_like(flat)
    for chunk in range(len(flat)):
        at = 16 * chunk
        out[(at ^ (at // 128 % (mode // 16) * 16 if mode else 0)) // 16] = flat[chunk]
    return out.ravel()


@pytest.mark.parametrize("mode, columns", [(0, 24), (32, 16), (64, 32), (128, 64)])
@pytest.mark.parametrize("at", [(0, 0), (8, 5), (-4, -3), (56, 60), (500, 0)])
def test_tensor_load_2d(mode, columns, at, tmp_path):
    matrix = np.random.default_rng(1).standard_normal((64, 72)).astype(BF16)
    make = lambda a, *_: TensorMap("bf16", a, (72, 64), (144,), (columns, 16), mode)  # noqa: E731
    copy = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
    copy += f"[sh], [%rm0, {{{at[0]}, {at[1]}}}], [bar];"
    nbytes = 16 * columns * 2
    out = _loaded(copy, nbytes, [matrix], (make,), tmp_path=tmp_path if at == (0, 0) else None)
    padded = np.zeros((64 + 1100, 72 + 1100), BF16)
    padded[500:564, 500:572] = matrix
    box = padded[500 + at[1] : 516 + at[1], 500 + at[0] : 500 + at[0] + columns]
    np.testing.assert_array_equal(out, _swizzled(box, mode))


def test_tensor_load_of_more_dimensions_with_a_stride_and_nan():
    array = np.random.default_rng(2).standard_normal((3, 5, 6, 12)).astype(np.float32)
    make = lambda a, *_: TensorMap(  # noqa: E731
        "f32", a, (8, 6, 5, 3), (48, 288, 1440), (8, 2, 4, 2), 0, "nan"
    )
    copy = "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
    copy += "[sh], [%rm0, {4, 5, 1, 2}], [bar];"
    out = _loaded(copy, 512, [array], (make,)).view(np.float32).reshape(2, 4, 2, 8)
    expected = np.full((2, 4, 2, 8), np.nan, np.float32)
    expected[0, :, 0, :4] = array[2, 1:5, 5, 4:8]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("at", [(0, 0, 0), (8, 3, 1), (0, -3, -1), (4, 11, 6), (0, -2, -8)])
def test_tensor_load_in_steps(at):
    """Every second column and every third row of a box; what lies outside is zero, wherever the steps begin."""
    array = np.random.default_rng(4).standard_normal((8, 13, 16)).astype(np.float32)
    make = lambda a, *_: TensorMap("f32", a, (16, 13, 8), (64, 832), (8, 16, 6), 0, "zero", (1, 2, 3))  # noqa: E731
    copy = "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
    copy += f"[sh], [%rm0, {{{', '.join(map(str, at))}}}], [bar];"
    out = _loaded(copy, 512, [array], (make,)).view(np.float32).reshape(2, 8, 8)
    whole = np.zeros((8 + 40, 13 + 40, 16 + 40), np.float32)
    whole[20:28, 20:33, 20:36] = array
    x, y, z = (20 + c for c in at)
    np.testing.assert_array_equal(out, whole[z : z + 6 : 3, y : y + 16 : 2, x : x + 8])


@pytest.mark.parametrize("at, mode", [((0, 0), 128), ((40, 12), 128), ((-8, -2), 128), ((0, 3), 0)])
@pytest.mark.parametrize("reduction", ["", "add"])
def test_tensor_store_and_reduction(at, mode, reduction, tmp_path):
    """64 x 4 elements from shared memory into a tensor of 72 x 14, dropped where out of bounds."""
    rng = np.random.default_rng(3)
    box, matrix = rng.integers(-9, 9, (4, 64)).astype(BF16), rng.integers(-9, 9, (14, 72)).astype(BF16)
    make = lambda _, b: TensorMap("bf16", b, (72, 14), (144,), (64, 4), mode)  # noqa: E731
    op = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group" if reduction else ""
    op = op or "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
    copy = f"{op} [%rm0, {{{at[0]}, {at[1]}}}], [sh];"
    ptx = kernel(STORE.format(copy=copy), shared=512, maps=1)
    out = run(ptx, [_swizzled(box, mode), matrix.copy()], maps=(make,))[1]
    padded = np.zeros((14 + 200, 72 + 200), BF16)
    padded[100:114, 100:172] = matrix
    part = padded[100 + at[1] : 104 + at[1], 100 + at[0] : 164 + at[0]]
    part[...] = part + box if reduction else box
    np.testing.assert_array_equal(out, padded[100:114, 100:172])
    assembles(ptx, tmp_path)


@pytest.mark.parametrize(
    "edit, expected",
    [
        ([("[sh], [%rm0", "[sh+16], [%rm0")], "misaligned"),
        ([("2d", "1d"), ("{0, 0}", "{0}")], "misaligned"),
        ([("  mov.b64 %rm0, m0;", "  mov.b64 %rm0, p0;")], "misaligned"),
    ],
)
def test_tensor_load_rules(edit, expected):
    make = lambda a, *_: TensorMap("bf16", a, (64, 16), (128,), (64, 16), 128)  # noqa: E731
    copy = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [sh], [%rm0, {0, 0}], [bar];"
    with pytest.raises(emulate.EmulationError) as excinfo:
        _loaded(copy, 2048, [np.zeros((16, 64), BF16)], (make,), shared=4096, edit=edit)
    assert rule(excinfo) == expected


def test_tensor_map_that_points_beyond_its_memory():
    make = lambda a, *_: TensorMap("bf16", a, (64, 17), (128,), (64, 16), 128)  # noqa: E731
    copy = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [sh], [%rm0, {0, 1}], [bar];"
    with pytest.raises(emulate.EmulationError, match="copy of 2048 bytes") as excinfo:
        _loaded(copy, 2048, [np.zeros((16, 64), BF16)], (make,))
    assert rule(excinfo) == "out-of-bounds"
