# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hand-written tile kernels through the GPU lowering, run on the emulator."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lib.Conversion.native import emit
from tilewright import devices
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.pipeline import Phase
from tilewright.passes.registry import load_builtin_passes
from tilewright.pipelines.cuda_lower import LOWER
from tilewright.sim import ptx as emulate
from tilewright.targets.cuda.emit import plain

ARCHS = ("sm_80", "sm_90a")
#: Multiprocessors that persistent kernels are launched for: few, so that blocks run several tasks.
_UNITS = 2


@functools.lru_cache(maxsize=64)
def compile_kernels(text: str, arch: str, fast: bool = False) -> tuple[bytes, dict[str, dict[str, Any]]]:
    """PTX of a module of kernels, and each kernel's ABI attributes."""
    with ir.Context() as context:
        load_builtin_passes()
        module = ir.Module.parse(f"module {{\n{text}\n}}", context)
        annotate(module, devices.get(f"cuda:{arch}"), {"accuracy": "fast" if fast else "exact"})
        run_pipeline(module.operation, str(Phase("lower", LOWER)))
        device = next(op for op in module.body.operations if op.operation.name == "gpu.module")
        abi = {}
        for op in device.regions[0].blocks[0].operations:
            attributes = op.operation.attributes
            if op.operation.name == "llvm.func" and "tile.params" in attributes:
                names = [attributes[i].name for i in range(len(attributes))]
                abi[ir.StringAttr(attributes["sym_name"]).value] = {
                    name: plain(attributes[name])
                    for name in names
                    if name
                    in (
                        "tile.params",
                        "tile.threads",
                        "tile.shared_bytes",
                        "tile.persistent",
                        "tile.cluster",
                        "tile.rounded",
                    )
                }
        return emit("ptx", str(module), arch, "+ptx90"), abi


def _bytes(param: dict[str, Any], args: Sequence[Any], addresses: Sequence[int], grid: Sequence[int]) -> bytes:
    kind = param["kind"]
    if kind == "bound":
        return int(grid[param["dim"]]).to_bytes(4, "little")
    value = args[param["arg"]]
    if kind == "pointer":
        return addresses[param["arg"]].to_bytes(8, "little")
    if kind == "size":
        return int(value.shape[param["dim"]]).to_bytes(8, "little")
    if kind == "stride":
        return int(value.strides[param["dim"]] // value.itemsize).to_bytes(8, "little", signed=True)
    return np.asarray(value).tobytes()


def _tensor_map(device: Any, param: dict[str, Any], args: Sequence[Any], addresses: Sequence[int]) -> bytes:
    """The descriptor of a whole array; innermost dimensions first, the box too."""
    array = args[param["arg"]]
    plain_name = f"{array.dtype.kind}{array.itemsize * 8}"
    element = {"float8_e4m3fn": "f8e4m3fn", "bfloat16": "bf16"}.get(array.dtype.name, plain_name)
    return device.tensor_map(
        element,
        addresses[param["arg"]],
        array.shape[::-1],
        list(array.strides[-2::-1]),
        list(param["box"])[::-1],
        param["swizzle"],
        param["fill"],
        list(param.get("steps", ()))[::-1],
    )


def run(
    text: str,
    name: str,
    args: Sequence[Any],
    grid: Sequence[int] = (),
    arch: str = "sm_80",
    seed: int = 0,
    fast: bool = False,
    change: Callable[[str], str] | None = None,
) -> None:
    """Run a kernel on arrays (written in place) and NumPy scalars; `change` gives another text for its PTX."""
    ptx, abi = compile_kernels(text, arch, fast)
    if change is not None:
        ptx = change(ptx.decode()).encode()
    info = abi[name]
    device = emulate.Device(arch, seed=seed)
    addresses = []
    for arg in args:
        isarray = isinstance(arg, np.ndarray)
        addresses.append(device.alloc(max(arg.nbytes, 1)) if isarray else 0)
        if isarray:
            device.upload(addresses[-1], memoryview(np.ascontiguousarray(arg).view(np.uint8).reshape(-1)))
    handle = device.function(device.load(ptx), name)
    params = [
        _tensor_map(device, param, args, addresses)
        if param["kind"] == "tensor_map"
        else _bytes(param, args, addresses, grid)
        for param in info["tile.params"]
    ]
    cluster = tuple(info.get("tile.cluster", (1, 1, 1)))
    rounded = info.get("tile.rounded", [1] * len(grid))
    tasks = int(np.prod([-(-n // m) * m for n, m in zip(grid, rounded, strict=True)], dtype=np.int64)) if grid else 1
    blocks = min(tasks, _UNITS * info["tile.persistent"]) if "tile.persistent" in info else tasks
    device.launch(handle, (blocks, 1, 1), (info["tile.threads"], 1, 1), cluster, info["tile.shared_bytes"], params)
    device.synchronize()
    for arg, address in zip(args, addresses, strict=True):
        if isinstance(arg, np.ndarray):
            data = np.empty(arg.nbytes, np.uint8)
            device.download(address, memoryview(data))
            arg[...] = data.view(arg.dtype).reshape(arg.shape)


def assemble(text: str, arch: str) -> str:
    """What ptxas says; "" where it is not installed."""
    if not shutil.which("ptxas"):
        return ""
    ptx, _ = compile_kernels(text, arch)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_bytes(ptx)
        command = ["ptxas", f"-arch={arch}", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
        result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stderr
