# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A GPU through the driver's interface, with a driver that is a small library of our own (fake_cuda.c)."""

import ctypes
import gc
import struct
import threading

import fake_cuda
import numpy as np
import pytest

from tilewright.core import config
from tilewright.core.errors import InternalError, UnsupportedError, UserError
from tilewright.runtime.gpu import cuda, cuda_launch
from tilewright.runtime.gpu.cuda import CudaDevice
from tilewright.runtime.gpu.gpu_device import CapturingDevice, Device

ONE = (1, 1, 1)


def _pointer(address):
    return struct.pack("<Q", address)


def _add(gpu, count=64):
    """Upload two vectors; return kernel, parameters, address of the result, the expected sum."""
    x, y = (np.arange(count, dtype=np.float32) * step for step in (1, 0.5))
    addresses = [gpu.alloc(4 * count) for _ in range(3)]
    gpu.upload(addresses[1], memoryview(x))
    gpu.upload(addresses[2], memoryview(y))
    kernel = gpu.function(gpu.load(fake_cuda.PTX), "add")
    return kernel, [*map(_pointer, addresses), struct.pack("<i", count)], addresses[0], x + y


def _read(gpu, address, count=64):
    result = np.empty(count, np.float32)
    gpu.download(address, memoryview(result))
    return result


def test_it_is_a_device(gpu):
    assert isinstance(gpu, Device) and isinstance(gpu, CapturingDevice)
    assert gpu.limits.arch == "sm_90a" and gpu.limits.shared_bytes == 232448 and gpu.limits.cluster == 8
    assert gpu.limits.multiprocessors == 132
    assert (gpu.name, gpu.driver_version) == ("Fake GPU 0", (13, 0))


def test_a_kernel_computes(gpu):
    kernel, params, out, expected = _add(gpu)
    gpu.launch(kernel, (4, 1, 1), (128, 1, 1), ONE, 0, params)
    np.testing.assert_array_equal(_read(gpu, out), expected)
    assert (kernel.info.registers, kernel.info.local_bytes, kernel.info.shared_bytes) == (32, 8, 1024)
    assert kernel.module.log == "ptxas info: fine"
    assert gpu.function(kernel.module, "add") is kernel


def test_launches_reach_the_driver_byte_by_byte(gpu, fake):
    kernel = gpu.function(gpu.load(fake_cuda.PTX), "show")
    descriptor = bytes(range(128))
    params = [_pointer(0x1122334455667788), struct.pack("<i", -2), descriptor, b"\x01"]
    gpu.launch(kernel, (8, 2, 1), (64, 4, 1), (4, 1, 1), 200000, params)
    assert fake.log("launch") == [
        "launch show grid 8 2 1 block 64 4 1 shared 200000 cluster 4 1 1 params "
        f"8877665544332211 feffffff {descriptor.hex()} 01"
    ]
    assert fake.log("cuFuncSetAttribute") == ["cuFuncSetAttribute show 8 200000"]
    gpu.launch(kernel, ONE, (32, 1, 1), ONE, 1000, params)
    assert " shared 1000 cluster 0 0 0 " in fake.log("launch")[1], "no attribute without a cluster"
    assert len(fake.log("cuFuncSetAttribute")) == 1


def test_ctas_that_wait_for_each_other(gpu, fake):
    """The driver is asked how many are resident, once, and refuses a grid of more (CU_LAUNCH_ATTRIBUTE_COOPERATIVE)."""
    kernel = gpu.function(gpu.load(fake_cuda.PTX), "show")
    params = [_pointer(0), struct.pack("<i", -2), bytes(128), b"\x01"]
    assert [gpu.resident(kernel, 256, 60000) for _ in range(3)] == [4] * 3
    assert fake.log("occupancy") == ["occupancy show 256 60000"]
    gpu.launch(kernel, (8, 1, 1), (256, 1, 1), ONE, 60000, params, together=True)
    gpu.launch(kernel, (8, 1, 1), (256, 1, 1), (2, 1, 1), 60000, params, together=True)
    first, second = fake.log("launch")
    assert " cluster 0 0 0 together " in first and " cluster 2 1 1 together " in second
    fake.fail("cuLaunchKernelEx", 720)
    with pytest.raises(UserError, match="all CTAs at the same time"):
        gpu.launch(kernel, (800, 1, 1), (256, 1, 1), ONE, 60000, params, together=True)


def test_clusters_that_fit(gpu, fake):
    kernel = gpu.function(gpu.load(fake_cuda.PTX), "show")
    fit = [cuda_launch.resident_clusters(gpu.driver, kernel, (384, 1, 1), (size, 1, 1), 200000) for size in (2, 8, 16)]
    assert fit == [64, 16, 0]
    assert fake.log("clusters")[0] == "clusters show 384 2"
    assert fake.log("cuFuncSetAttribute") == ["cuFuncSetAttribute show 8 200000"], "allowed before it is asked"


def test_descriptors(gpu):
    raw = gpu.tensor_map("bf16", 0x1_0000_1000, (512, 100, 7), (1024, 102400), (64, 128, 1), 128, "nan")
    words = struct.unpack("<32I", raw)
    assert words[:8] == (9, 3, 0x1000, 1, 0, 3, 2, 1)
    assert (words[8:11], words[13:15], words[17:20], words[22:25]) == (
        (512, 100, 7),
        (1024, 102400),
        (64, 128, 1),
        (1, 1, 1),
    )
    with pytest.raises(UserError, match="span of 128"):
        gpu.tensor_map("bf16", 0, (512, 100), (1024,), (128, 128), 128, "zero")


def test_memory(gpu, fake):
    address = gpu.alloc(1000)
    assert address % 256 == 0
    gpu.fill(address, 7, 1000)
    other = gpu.alloc(1000)
    gpu.copy(other, address, 1000)
    data = np.zeros(1000, np.uint8)
    gpu.download(other, memoryview(data))
    assert (data == 7).all()
    assert gpu.memory == (2000, 1 << 24)
    gpu.free(address)
    with pytest.raises(UserError, match="freed before"):
        gpu.free(address)
    gpu.free(gpu.alloc(0))
    gpu.trim()
    assert fake.log("cuMemPoolTrimTo") == ["cuMemPoolTrimTo 0"]
    assert fake.live["blocks"] == 1


def test_read_only_and_empty_host_memory(gpu):
    address = gpu.alloc(4)
    gpu.upload(address, memoryview(b"abcd"))
    data = bytearray(4)
    gpu.download(address, memoryview(data))
    assert data == b"abcd"
    gpu.upload(address, memoryview(b""))
    gpu.download(address, memoryview(bytearray()))
    with pytest.raises(UserError, match="writeable"):
        gpu.download(address, memoryview(b"abcd"))
    with pytest.raises(UserError, match="contiguous"):
        gpu.upload(address, memoryview(bytearray(8))[::2])


def test_full_memory_is_told_in_figures(gpu, fake):
    gpu.alloc(10 << 20)
    with pytest.raises(UserError, match=r"memory is full(.|\n)*asked for 10\.5 MB; 6 of 17 MB are free, .* use 10 MB"):
        gpu.alloc(10 << 20)
    assert fake.log("cuMemPoolTrimTo"), "the pool gives back what it does not use first"


def test_graphs(gpu, fake):
    kernel, params, out, expected = _add(gpu)
    gpu.begin_capture()
    gpu.launch(kernel, (4, 1, 1), (128, 1, 1), ONE, 0, params)
    gpu.copy(out, out + 128, 128)
    for call in (lambda: gpu.alloc(1), lambda: gpu.synchronize(), lambda: gpu.record(), lambda: gpu.begin_capture()):
        with pytest.raises(UserError, match="during the capture"):
            call()
    graph = gpu.end_capture()
    assert not fake.log("launch"), "recorded, not run"
    del kernel
    gc.collect()
    for _ in range(2):
        gpu.fill(out, 0, 256)
        gpu.replay(graph)
        np.testing.assert_array_equal(_read(gpu, out), np.concatenate([expected[32:], expected[32:]]))
    del graph
    gc.collect()
    assert not {"graphs", "executables", "streams", "modules"} & set(fake.live)


def test_a_failed_capture_leaves_nothing(gpu, fake):
    with pytest.raises(UserError, match="without begin_capture"):
        gpu.end_capture()
    fake.fail("cuStreamBeginCapture_v2", 1)
    with pytest.raises(InternalError):
        gpu.begin_capture()
    gpu.begin_capture()
    fake.fail("cuStreamEndCapture", 901)
    with pytest.raises(UserError, match="see that one"):
        gpu.end_capture()
    gpu.synchronize()
    assert "streams" not in fake.live


def test_time(gpu, fake):
    start = gpu.record()
    end = gpu.record()
    assert gpu.elapsed(start, end) == pytest.approx(1e-3)
    del start, end
    gc.collect()
    assert "events" not in fake.live


def test_streams(gpu, fake):
    with gpu.on_stream(0):
        gpu.wait_for(0)
        assert not fake.log("wait")
    gpu.wait_for(0)
    gpu.stream = 0
    gpu.synchronize()
    assert fake.log("synchronize")[-1] == "synchronize (nil)"


def _stream(gpu):
    """The handle of a new stream, which lives as long as the test."""
    stream = ctypes.c_void_p()
    gpu.driver.cuStreamCreate(ctypes.byref(stream), 1)
    return stream.value


def test_work_on_one_stream_waits_for_that_on_another(gpu, fake):
    one, other = _stream(gpu), _stream(gpu)
    address = gpu.alloc(64)
    fake.clear()
    with gpu.on_stream(one):
        gpu.fill(address, 1, 64)
        gpu.fill(address, 2, 64)
    assert fake.log("record") == ["record on (nil)", f"record on {one:#x}"]
    assert fake.log("wait") == [f"wait on {one:#x}"], "the allocation was on the default stream"
    fake.clear()
    with gpu.on_stream(other):
        gpu.fill(address, 3, 64)
    gpu.free(address)
    assert fake.log("wait") == [f"wait on {other:#x}", "wait on (nil)"], "memory is free after its last use"
    fake.clear()
    with gpu.on_stream(one):
        pass
    gpu.synchronize()
    assert not fake.log("wait"), "no work, nothing to wait for"
    for stream in (one, other):
        gpu.driver.cuStreamDestroy_v2(stream)


def test_threads_take_turns(gpu):
    inside, seen = threading.Event(), []

    def work():
        inside.wait()
        gpu.synchronize()
        seen.append(gpu.stream)

    thread = threading.Thread(target=work)
    thread.start()
    stream = _stream(gpu)
    with gpu.on_stream(stream):
        inside.set()
        thread.join(0.05)
        assert not seen, "another thread's work would go to this stream"
    thread.join()
    assert seen == [0]
    gpu.driver.cuStreamDestroy_v2(stream)


def test_any_thread_may_call(gpu):
    kernel, params, out, expected = _add(gpu)
    problems = []

    def work():
        try:
            gpu.launch(kernel, ONE, (32, 1, 1), ONE, 0, params)
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not problems
    np.testing.assert_array_equal(_read(gpu, out), expected)


def test_code_goes_before_its_context(fake):
    device = CudaDevice()
    kernel = device.function(device.load(fake_cuda.PTX), "add")
    event, held = device.record(), [kernel]
    del kernel
    thread = threading.Thread(target=held.clear)  # which has no context of its own
    thread.start()
    thread.join()
    assert "modules" not in fake.live, "unloaded with the last kernel, without the garbage collector"
    module = device.load(fake_cuda.PTX)
    del device
    assert fake.live["contexts"] == 1, "code and events keep the device"
    del event, module
    assert fake.live == {}


def test_close_frees_all(fake):
    device = CudaDevice()
    address = device.alloc(100)
    module, event = device.load(fake_cuda.PTX), device.record()
    stream = _stream(device)
    with device.on_stream(stream):
        device.fill(address, 0, 100)
    device.close()
    device.close()
    device.driver.cuStreamDestroy_v2(stream)
    assert fake.live == {}, "handles of a context that is gone are no handles"
    device.free(address)
    del module, event
    gc.collect()
    assert fake.live == {}
    with pytest.raises(UserError, match="closed"):
        device.alloc(1)


@pytest.mark.parametrize(
    ("image", "kind", "words"),
    [(b".rubbish", InternalError, r"CUDA_ERROR_INVALID_PTX \(218\)(.|\n)*line 1, no .version")],
)
def test_code_that_does_not_load(gpu, image, kind, words):
    with pytest.raises(kind, match=words):
        gpu.load(image)


def test_errors_are_decoded(gpu, fake):
    with pytest.raises(UserError, match="no kernel 'none'"):
        gpu.function(gpu.load(fake_cuda.PTX), "none")
    fake.fail("cuStreamSynchronize", 700)
    with pytest.raises(
        InternalError, match=r"ILLEGAL_ADDRESS \(700\): a kernel accessed memory outside .* emulate=True"
    ):
        gpu.synchronize()
    fake.fail("cuStreamSynchronize", 12345)
    with pytest.raises(InternalError, match=r"code 12345 \(12345\)"):
        gpu.synchronize()
    kernel, params, *_ = _add(gpu)
    fake.fail("cuLaunchKernelEx", 701)
    with pytest.raises(InternalError, match=r"more registers(.|\n)*kernel add, grid \(1, 1, 1\)"):
        gpu.launch(kernel, ONE, (32, 1, 1), ONE, 0, params)
    with pytest.raises(UserError, match="leave room for 256"):
        gpu.launch(kernel, ONE, (512, 1, 1), ONE, 0, params)
    with pytest.raises(UserError, match="has at most 232448"):
        gpu.launch(kernel, ONE, (32, 1, 1), ONE, 232448, params)


def test_which_gpus(fake):
    assert cuda.unavailable() is None and cuda.arch() == "sm_90a"
    fake.reset(fake_cuda.AMPERE)
    assert cuda.arch() == "sm_80"
    with CudaDevice() as device:
        assert device.limits.cluster == 1
        with pytest.raises(UnsupportedError, match="no TMA"):
            device.tensor_map("f32", 0, (64,), (), (32,), 0, "zero")
    fake.reset(fake_cuda.AMPERE | {75: 7})
    with pytest.raises(UnsupportedError, match="sm_80 .* or newer"):
        CudaDevice()
    fake.reset(fake_cuda.AMPERE | {115: 0})
    with pytest.raises(UnsupportedError, match="memory pools"):
        CudaDevice()
    assert "contexts" not in fake.live
    fake.reset({})
    assert "sees no GPU" in cuda.unavailable()
    with pytest.raises(UserError, match="no GPU is visible"):
        CudaDevice()


def test_no_driver(tmp_path):
    with config.libcuda.override(str(tmp_path / "none.so")):
        assert "TILEWRIGHT_LIBCUDA" in cuda.unavailable()
    empty = tmp_path / "libempty.so"
    import subprocess

    source = tmp_path / "empty.c"
    source.write_text("int cuInit(unsigned f) { return (int)f; }\n")
    subprocess.run([fake_cuda.COMPILER, "-shared", "-fPIC", "-o", str(empty), str(source)], check=True)
    with config.libcuda.override(str(empty)):
        assert "driver 535" in cuda.unavailable()
