# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One program by hand on every device that is there: the emulator, and a GPU where a driver sees one."""

import struct

import numpy as np
import pytest

from tilewright.core.errors import TilewrightError, UserError
from tilewright.runtime.gpu import cuda
from tilewright.runtime.gpu.gpu_device import CapturingDevice, Device
from tilewright.sim import ptx as emulate

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 out, .param .u64 x, .param .u64 y, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [x];
  ld.param.u64 %rd3, [y];
  mul.wide.s32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd6];
  ld.global.f32 %f2, [%rd7];
  add.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd5], %f3;
DONE:
  ret;
}
"""
COUNT, ONE = 300, (1, 1, 1)


@pytest.fixture(params=["emulator", "gpu"])
def device(request):
    if request.param == "emulator":
        yield emulate.Device(arch="sm_80")
        return
    reason = cuda.unavailable()
    if reason:
        pytest.skip(reason)
    with cuda.CudaDevice() as gpu:
        yield gpu


@pytest.fixture
def addition(device):
    """Kernel, parameters, address of the result, the expected sum."""
    x, y = (np.arange(COUNT, dtype=np.float32) * step for step in (1, 0.25))
    places = [device.alloc(4 * COUNT) for _ in range(3)]
    for place, values in zip(places[1:], (x, y), strict=True):
        device.upload(place, memoryview(values.view(np.uint8)))
    device.fill(places[0], 0, 4 * COUNT)
    kernel = device.function(device.load(PTX), "add")
    return kernel, [*(struct.pack("<Q", place) for place in places), struct.pack("<I", COUNT)], places[0], x + y


def _read(device, address):
    values = np.empty(COUNT, np.float32)
    device.download(address, memoryview(values.view(np.uint8)))
    return values


def test_a_kernel_runs(device, addition):
    kernel, params, out, expected = addition
    assert isinstance(device, Device)
    device.launch(kernel, (3, 1, 1), (128, 1, 1), ONE, 0, params)
    np.testing.assert_array_equal(_read(device, out), expected)
    copy = device.alloc(4 * COUNT)
    device.copy(copy, out, 4 * COUNT)
    np.testing.assert_array_equal(_read(device, copy), expected)
    device.free(copy)
    device.synchronize()


def test_what_no_device_takes(device, addition):
    kernel, params, *_ = addition
    with pytest.raises(UserError, match="takes 1 to 1024"):
        device.launch(kernel, ONE, (2048, 1, 1), ONE, 0, params)
    with pytest.raises(UserError, match="no kernel|has no|none"):
        device.function(device.load(PTX), "none")
    with pytest.raises(TilewrightError):
        device.load(b".version 8.0\n.target sm_80\n.visible .entry f() { nonsense; }")


def test_graphs_and_time(device, addition):
    if not isinstance(device, CapturingDevice):
        pytest.skip("the emulator has neither")
    kernel, params, out, expected = addition
    device.begin_capture()
    device.launch(kernel, (3, 1, 1), (128, 1, 1), ONE, 0, params)
    graph = device.end_capture()
    np.testing.assert_array_equal(_read(device, out), 0)
    start = device.record()
    device.replay(graph)
    assert device.elapsed(start, device.record()) > 0
    np.testing.assert_array_equal(_read(device, out), expected)
