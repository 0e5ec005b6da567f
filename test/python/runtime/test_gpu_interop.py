# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors on a (fake) GPU that other libraries made, and results that they read: addresses, streams, lifetimes."""

import gc
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime import dlpack
from tilewright.runtime.gpu import gpu_interop
from tilewright.runtime.gpu.gpu_interop import GpuArray
from tilewright.runtime.gpu.gpu_memory import Memory, View


def _array(gpu, values):
    memory = Memory.allocate(gpu, values.nbytes)
    gpu.upload(memory.address, memoryview(values.reshape(-1).view(np.uint8)))
    return GpuArray(gpu, View.contiguous(memory, gpu_interop.from_numpy(values.dtype), values.shape))


class Interface:
    """An array of a library with the CUDA array interface alone."""

    def __init__(self, **told):
        self.__cuda_array_interface__ = {"version": 3, **told}


def _fake_torch(monkeypatch, number=0):
    """A module of torch's name with what is used of it."""
    torch = types.ModuleType("torch")

    class Tensor:
        is_cuda = True
        device = types.SimpleNamespace(type="cuda", index=number)

        def __init__(self, shape, dtype, strides=None, address=4096):
            self.shape, self.dtype, self._strides, self._address = shape, dtype, strides, address

        def data_ptr(self):
            return self._address

        def stride(self):
            return self._strides or gpu_interop.row_major(self.shape)

    Tensor.__module__ = "torch"
    torch.Tensor = Tensor
    torch.bfloat16, torch.bool = "torch.bfloat16", "torch.bool"
    torch.empty = lambda shape, dtype, device: Tensor(shape, dtype)
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=77))
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_results_are_read_through_dlpack(gpu, fake):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    result = _array(gpu, values)
    assert result.__dlpack_device__() == (dlpack.CUDA, 0)
    assert gpu_interop.is_on_gpu(result)
    tensor = gpu_interop.read(result, "x", gpu)
    assert (tensor.view.sizes, tensor.view.dtype) == ((3, 4), "f32")
    assert not fake.log("wait"), "the same stream needs no event"
    np.testing.assert_array_equal(result.numpy(), values)
    np.testing.assert_array_equal(np.asarray(result), values)
    address = tensor.view.address
    del result
    gc.collect()
    again = np.empty_like(values)
    gpu.download(address, memoryview(again.reshape(-1).view(np.uint8)))
    np.testing.assert_array_equal(again, values, "the reader keeps the memory")
    del tensor
    gc.collect()
    assert "blocks" not in fake.live


def test_readers_on_other_streams_wait(gpu, fake):
    result = _array(gpu, np.ones(4, np.float32))
    fake.clear()
    del_me = result.__dlpack__(stream=2, max_version=(1, 0))
    assert fake.log("record") == ["record on (nil)"] and fake.log("wait") == ["wait on 0x2"]
    del del_me
    del result
    gc.collect()
    assert fake.log("cuCtxSynchronize"), "the reader's stream may still read the memory"
    result = _array(gpu, np.ones(4, np.float32))
    fake.clear()
    assert result.__dlpack__(stream=-1) is not None
    assert not fake.log("wait")
    with pytest.raises(BufferError):
        result.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        result.__dlpack__(dl_device=(1, 0))
    with pytest.raises(UserError, match="stream 0"):
        result.__dlpack__(stream=0)


def test_results_have_the_cuda_array_interface(gpu):
    result = _array(gpu, np.ones((2, 3), np.float16))
    told = result.__cuda_array_interface__
    assert told["typestr"] == "<f2" and told["shape"] == (2, 3) and told["stream"] == 1 and told["version"] == 3
    assert not hasattr(_array(gpu, np.ones(3, ml_dtypes.bfloat16)), "__cuda_array_interface__")
    assert _array(gpu, np.ones((2, 0), np.int8)).__cuda_array_interface__["data"] == (0, False)
    assert "f16[2, 3] on GPU 0" in repr(result)


def test_the_cuda_array_interface_is_read(gpu, fake):
    tensor = gpu_interop.read(Interface(shape=(4, 2), typestr="<i8", data=(4096, True), stream=None), "x", gpu)
    assert (tensor.view.address, tensor.view.dtype, tensor.view.strides, tensor.read_only) == (
        4096,
        "i64",
        (2, 1),
        True,
    )
    fake.clear()
    gpu_interop.read(Interface(shape=(4,), typestr="<f4", data=(4096, False), strides=(4,), stream=5), "x", gpu)
    assert fake.log("record") == ["record on 0x5"] and fake.log("wait") == ["wait on (nil)"]
    with pytest.raises(UserError, match="input x of sizes .* contiguous copy"):
        gpu_interop.read(Interface(shape=(4,), typestr="<f4", data=(4096, False), strides=(8,)), "x", gpu)
    with pytest.raises(UnsupportedError, match="masked"):
        gpu_interop.read(Interface(shape=(4,), typestr="<f4", data=(4096, False), mask=1), "x", gpu)


def test_torch_tensors(gpu, monkeypatch):
    torch = _fake_torch(monkeypatch)
    value = torch.Tensor((2, 3), "torch.bfloat16")
    assert gpu_interop.is_on_gpu(value)
    tensor = gpu_interop.read(value, "x", gpu)
    assert (tensor.view.dtype, tensor.view.sizes, tensor.view.address) == ("bf16", (2, 3), 4096)
    for own, name in (("torch.float32", "f32"), ("torch.bool", "i1"), ("torch.float8_e4m3fn", "f8e4m3fn")):
        assert gpu_interop.read(torch.Tensor((1,), own), "x", gpu).view.dtype == name
    with pytest.raises(UnsupportedError, match="torch.quint8"):
        gpu_interop.read(torch.Tensor((1,), "torch.quint8"), "x", gpu)
    with pytest.raises(UserError, match="contiguous"):
        gpu_interop.read(torch.Tensor((2, 3), "torch.float32", (1, 2)), "x", gpu)
    assert gpu_interop.torch_empty(value)("bf16", (7,)).shape == (7,)
    assert gpu_interop.current_stream(value) == 77
    other = _fake_torch(monkeypatch, 1).Tensor((1,), "torch.float32")
    with pytest.raises(UserError, match="input y lies on GPU 1, the model on GPU 0"):
        gpu_interop.read(other, "y", gpu)


def test_what_is_not_on_a_gpu():
    assert not any(map(gpu_interop.is_on_gpu, (np.ones(3), np.float32(1), 1.0, [1, 2], "text")))
