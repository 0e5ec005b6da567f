# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a suite runs: a GPU, or the emulator on this processor with PyTorch's CPU tensors as the reference."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from bench.gpu.far.state import state
from tilewright.core.errors import UnsupportedError
from tilewright.runtime.gpu import cuda_errors
from tilewright.runtime.gpu.gpu_device import CapturingDevice, Device
from tilewright.runtime.gpu.gpu_memory import Memory, View, row_major


class Gpu:
    """An NVIDIA GPU, on PyTorch's current stream."""

    place = "cuda"
    timed = True
    graphs = True

    def __init__(self) -> None:
        from tilewright.runtime.gpu.cuda import CudaDevice

        torch.zeros(1, device="cuda")  # PyTorch's context is there first: both share it
        self.device: Device = CudaDevice(torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def views(self, tensors: Sequence[torch.Tensor], names: Sequence[str]) -> list[View]:
        """The tensors' memory itself."""
        return [
            View(Memory(None, t.data_ptr()), name, 0, tuple(t.shape), row_major(tuple(t.shape)))
            for t, name in zip(tensors, names, strict=True)
        ]

    @property
    def l2_bytes(self) -> int:
        """Size of the L2 cache."""
        return torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size

    @property
    def uuid(self) -> str | None:
        """By which NVML knows the GPU; None where PyTorch does not tell."""
        found = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
        return None if found is None else f"GPU-{found}"

    @property
    def is_lost(self) -> bool:
        """Whether no call succeeds any more."""
        return cuda_errors.is_lost(self.device.driver.status("cuCtxSynchronize"))  # type: ignore[attr-defined]

    def put(self, views: Sequence[View], tensors: Sequence[torch.Tensor]) -> None:
        """The tensors are the memory."""

    def fetch(self, views: Sequence[View], tensors: Sequence[torch.Tensor]) -> None:
        """Results lie in the tensors already."""

    def record(self, call: Callable[[], Any]) -> Callable[[], None]:
        """A function that repeats PyTorch's work in `call`, as one graph: `capture` for peers."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        return graph.replay

    def capture(self, call: Callable[[], Any]) -> Callable[[], None]:
        """A function that repeats what `call` does on the GPU, as one graph."""
        device = self.device
        assert isinstance(device, CapturingDevice)
        device.begin_capture()
        try:
            call()
        finally:
            graph = device.end_capture()
        return lambda: device.replay(graph)

    def seconds(self, call: Callable[[], Any], burst: float) -> float:
        """Time of one call in a burst of about that many seconds, by the GPU's clock."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        count, took = 1, 0.0
        while True:
            start.record()
            for _ in range(count):
                call()
            end.record()
            end.synchronize()
            took = start.elapsed_time(end) * 1e-3
            if took >= burst or count >= 4096:
                return took / count
            count = min(4096, max(2 * count, round(1.2 * burst * count / max(took, 1e-6))))

    def state(self) -> dict[str, Any]:
        """Clocks, power, temperature (state.py)."""
        return state(self.uuid)

    def limits(self) -> dict[str, float]:
        """Rates at best: copies of 1 GiB (read + write) in GB/s, products of bf16 by cuBLAS in TFLOP/s."""
        copies, products = self._copies(1 << 30), self._products(8192)
        return {
            "copy_gb_s": 2 * (1 << 30) * 1e-9 / statistics.median(copies),
            "cublas_bf16_tflop_s": 2e-12 * 8192**3 / statistics.median(products),
        }

    def _copies(self, nbytes: int) -> list[float]:
        source = torch.empty(nbytes, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        return [self.seconds(lambda: target.copy_(source), 0.02) for _ in range(5)]

    def _products(self, size: int) -> list[float]:
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        return [self.seconds(lambda: torch.mm(a, b), 0.02) for _ in range(5)]

    def describe(self) -> dict[str, Any]:
        """What the figures depend on."""
        found = {**_software(), "gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
        found["driver"] = ".".join(map(str, self.device.driver_version))  # type: ignore[attr-defined]
        found |= {"arch": self.device.limits.arch, "l2_bytes": self.l2_bytes, "uuid": self.uuid}
        try:
            import triton

            found["triton"] = triton.__version__
        except ImportError:
            found["triton"] = None
        return found


class Emulator:
    """The emulator: the same code and checks, without times."""

    place = "cpu"
    timed = False
    graphs = False
    l2_bytes = 0

    def __init__(self, arch: str, seed: int | None = None) -> None:
        from tilewright.sim import ptx as emulate

        self.device: Device = emulate.Device(arch=arch, seed=seed)

    def views(self, tensors: Sequence[torch.Tensor], names: Sequence[str]) -> list[View]:
        """Copies in the emulator's memory."""
        found = []
        for tensor, name in zip(tensors, names, strict=True):
            nbytes = tensor.numel() * tensor.element_size()
            found.append(View.contiguous(Memory.allocate(self.device, nbytes), name, tuple(tensor.shape)))
        self.put(found, tensors)
        return found

    @property
    def is_lost(self) -> bool:
        """Never: an error of a kernel is an exception."""
        return False

    def put(self, views: Sequence[View], tensors: Sequence[torch.Tensor]) -> None:
        """Copy tensors into the emulator's memory."""
        for view, tensor in zip(views, tensors, strict=True):
            data = _bytes(tensor)
            if data.nbytes:
                self.device.upload(view.address, memoryview(data))

    def capture(self, call: Callable[[], Any]) -> Callable[[], None]:
        """There are no graphs."""
        raise UnsupportedError("the emulator has no graphs")

    record = capture

    def state(self) -> dict[str, Any]:
        """Nothing is measured."""
        return {"source": "not available"}

    def fetch(self, views: Sequence[View], tensors: Sequence[torch.Tensor]) -> None:
        """Copy results into tensors."""
        for view, tensor in zip(views, tensors, strict=True):
            data = _bytes(tensor)
            if data.nbytes:
                self.device.download(view.address, memoryview(data))

    def seconds(self, call: Callable[[], Any], burst: float) -> float:
        """Time on this processor, which says nothing about a GPU."""
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    def limits(self) -> dict[str, float]:
        """None."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Software."""
        return {**_software(), "gpu": f"emulator of {self.device.limits.arch}"}


def _bytes(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a contiguous CPU tensor."""
    return tensor.reshape(-1).view(torch.uint8).numpy()


def _software() -> dict[str, Any]:
    return {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
