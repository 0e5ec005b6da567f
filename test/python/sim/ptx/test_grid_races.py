# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CTAs of one launch that meet in global memory."""

import ml_dtypes
import numpy as np
import pytest
from ptx_text import kernel, rule, run

from tilewright.sim import ptx as emulate
from tilewright.sim.ptx.memory.tensor_map import TensorMap

IN_PLACE = """
  mov.u32 %r0, %ctaid.x;
  mad.lo.u32 %r1, %r0, {rows}, %t;
  mad.wide.u32 %rd10, %r1, {size}, %rd0;
  ld.global{nc}.{kind} %r2, [%rd10+{offset}];
  add.u32 %r2, %r2, 1;
  {sync}
  st.global.{kind} [%rd10], %r2;
"""


def _in_place(size=4, kind="u32", rows=32, offset=0, nc="", sync="", lanes=8192, seed=None):
    body = IN_PLACE.format(rows=rows, size=size, kind=kind, offset=offset, nc=nc, sync=sync)
    options = emulate.Options(lanes=lanes, seed=seed)
    return run(kernel(body), [np.arange(1024, dtype=np.uint8), np.zeros(1)], grid=4, options=options)[0]


@pytest.mark.parametrize("size, kind", [(1, "u8"), (2, "u16"), (4, "u32")])
@pytest.mark.parametrize("lanes", [32, 8192])
def test_each_in_its_own_place(size, kind, lanes):
    out = _in_place(size, kind, lanes=lanes)
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32}[size]
    expected = np.arange(1024, dtype=np.uint8).view(bits).copy()
    expected[:128] += 1
    np.testing.assert_array_equal(out.view(bits), expected)


@pytest.mark.parametrize("lanes", [32, 8192])
@pytest.mark.parametrize(
    "changes", [{"offset": 4}, {"offset": 128}, {"rows": 31}, {"size": 1, "kind": "u8", "offset": 1}]
)
def test_overlapping_tiles(changes, lanes):
    """One CTA reads what its neighbour writes: whichever comes first decides."""
    with pytest.raises(emulate.EmulationError, match="nothing orders CTAs") as excinfo:
        _in_place(**changes, lanes=lanes)
    assert rule(excinfo) == "race" and excinfo.value.line


def test_a_fence_alone_orders_nothing():
    with pytest.raises(emulate.EmulationError, match="has not acquired") as excinfo:
        _in_place(offset=4, sync="fence.acq_rel.gpu;")
    assert rule(excinfo) == "race"


def test_the_same_value_twice_is_no_race():
    body = "  mov.u32 %r2, {value};\n  st.global.u32 [%rd0], %r2;\n"
    run(kernel(body.format(value=7)), [np.zeros(4), np.zeros(1)], grid=3)
    for lanes in (32, 8192):
        with pytest.raises(emulate.EmulationError) as excinfo:
            options = emulate.Options(lanes=lanes)
            run(kernel(body.format(value="%ctaid.x")), [np.zeros(4), np.zeros(1)], grid=3, options=options)
        assert rule(excinfo) == "race"


def test_the_non_coherent_path_must_not_read_what_the_launch_writes():
    body = "  st.global.u32 [%rd0], %t;\n  bar.sync 0;\n  ld.global.nc.u32 %r1, [%rd0];\n"
    with pytest.raises(emulate.EmulationError, match=".nc") as excinfo:
        run(kernel(body.replace("%t;", "5;")), [np.zeros(4), np.zeros(1)])
    assert rule(excinfo) == "race"
    _in_place(nc=".nc")  # reading before the write, of one's own place


def test_launches_follow_each_other():
    memory = emulate.GlobalMemory()
    address = memory.alloc(1024)
    memory.write(address, bytes(1024))
    program = emulate.load(kernel(IN_PLACE.format(rows=32, size=4, kind="u32", offset=0, nc="", sync=""))).kernel("k")
    other = emulate.load(kernel(IN_PLACE.format(rows=64, size=4, kind="u32", offset=0, nc="", sync=""))).kernel("k")
    params = [address.to_bytes(8, "little"), bytes(8)]
    emulate.launch(program, 4, params, memory=memory)
    emulate.launch(other, 4, params, memory=memory)


@pytest.mark.parametrize("columns, overlap", [(64, False), (48, True)])
def test_boxes_of_tensors(columns, overlap):
    """CTA i stores a box of 64 x 4 elements at column columns * i."""
    body = f"""
  mov.u32 %r0, sh;
  mad.lo.u32 %r1, %t, 16, %r0;
  mov.u32 %r2, %ctaid.x;
  st.shared.v4.b32 [%r1], {{%r2, %r2, %r2, %r2}};
  fence.proxy.async.shared::cta;
  bar.warp.sync -1;
  setp.eq.u32 %p0, %t, 0;
  @!%p0 bra END;
  mul.lo.u32 %r3, %r2, {columns};
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rm0, {{%r3, 0}}], [sh];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
END:"""
    make = lambda a, *_: TensorMap("bf16", a, (256, 4), (512,), (64, 4), 0)  # noqa: E731
    data = [np.zeros((4, 256), ml_dtypes.bfloat16), np.zeros(1)]
    for lanes in (32, 8192):
        options = emulate.Options(lanes=lanes)
        if not overlap:
            run(kernel(body, shared=512, maps=1), data, grid=3, maps=(make,), options=options)
            continue
        with pytest.raises(emulate.EmulationError) as excinfo:
            run(kernel(body, shared=512, maps=1), data, grid=3, maps=(make,), options=options)
        assert rule(excinfo) == "race"
