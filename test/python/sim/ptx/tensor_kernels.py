# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole kernels on the emulator: PTX as LLVM made it, operands, launch, and what must come out.

The PTX files in ptx/ were made from MLIR by LLVM 22: an Ampere GEMM (cp.async, ldmatrix, mma.sync), Hopper GEMMs (TMA,
mbarriers, wgmma, warp specialization; one with clusters and multicast) and attention forward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from tilewright.sim import ptx as emulate
from tilewright.sim.ptx.memory.tensor_map import TensorMap

FOLDER = Path(__file__).parent / "ptx"
BF16 = np.dtype(ml_dtypes.bfloat16)


@dataclass
class Case:
    """One kernel, ready to run.

    Attributes:
        file: name of its PTX file, without suffix.
        kernel: its name in the file.
        run: runs a module's kernel with options and returns (result, expected, tolerance).
    """

    file: str
    kernel: str
    run: Callable[[emulate.LoadedModule, emulate.Options | None], tuple[np.ndarray, np.ndarray, float]]

    def ptx(self) -> str:
        """The PTX text."""
        return (FOLDER / f"{self.file}.ptx").read_text()

    def check(self, module: emulate.LoadedModule, options: emulate.Options | None = None) -> None:
        """Run, and raise AssertionError where the result is wrong."""
        result, expected, tolerance = self.run(module, options)
        error = np.abs(result.astype(np.float64) - expected).max()
        assert error <= tolerance, f"{self.file}: the largest error is {error}, more than {tolerance}"


class Memory:
    """Global memory with arrays in it."""

    def __init__(self) -> None:
        self.memory = emulate.GlobalMemory()

    def put(self, array: np.ndarray) -> int:
        """Address of a copy of an array."""
        address = self.memory.alloc(array.nbytes)
        self.memory.write(address, np.ascontiguousarray(array).view(np.uint8))
        return address

    def empty(self, nbytes: int) -> int:
        """Address of memory with nothing in it."""
        return self.memory.alloc(nbytes)

    def get(self, address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An array from memory."""
        return self.memory.read(address, int(np.prod(shape)) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)


def pointer(address: int) -> bytes:
    """A pointer parameter."""
    return address.to_bytes(8, "little")


def i32(value: int) -> bytes:
    """An integer parameter."""
    return value.to_bytes(4, "little", signed=True)


def rows_map(address: int, rows: int, columns: int, box: tuple[int, int]) -> bytes:
    """A tensor map of a row-major bf16 matrix; box = (columns, rows), swizzled over 128 bytes."""
    return TensorMap("bf16", address, (columns, rows), (2 * columns,), box, 128).encode()


def hopper_gemm(file: str, columns: int, cluster: int = 1, m: int = 128, n: int | None = None, k: int = 640) -> Case:
    """C = A B^T in bf16 by 128 x `columns` tiles, 4 stages."""
    n = n or columns

    def run(module, options):
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal(shape).astype(BF16) for shape in ((m, k), (n, k)))
        memory = Memory()
        c = memory.empty(2 * m * n)
        maps = [
            rows_map(memory.put(a), m, k, (64, 128)),
            rows_map(memory.put(b), n, k, (64, columns)),
            rows_map(c, m, n, (64, 64)),
        ]
        emulate.launch(
            module.kernel(file),
            (m // 128, n // columns),
            [*maps, i32(k // 64)],
            memory=memory.memory,
            shared_bytes=4 * (16384 + columns * 128),
            options=options,
        )
        expected = a.astype(np.float64) @ b.astype(np.float64).T
        return memory.get(c, (m, n), BF16), expected, float(np.abs(expected).max()) * 2**-8

    return Case(file, file, run)


def cluster_gemm() -> Case:
    """The same by clusters of two CTAs, which load half of B's tile each and multicast it."""
    case = hopper_gemm("gemm_128x128x64_cl2_dyn", 128, m=256)

    def run(module, options):
        rng = np.random.default_rng(0)
        m, n, k = 256, 128, 640
        a, b = (rng.standard_normal(shape).astype(BF16) for shape in ((m, k), (n, k)))
        memory = Memory()
        c = memory.empty(2 * m * n)
        maps = [
            rows_map(memory.put(a), m, k, (64, 128)),
            rows_map(memory.put(b), n, k, (64, 64)),
            rows_map(c, m, n, (64, 64)),
        ]
        emulate.launch(
            module.kernel(case.kernel),
            (2, 1),
            [*maps, i32(k // 64)],
            memory=memory.memory,
            shared_bytes=4 * (16384 + 128 * 128),
            options=options,
        )
        expected = a.astype(np.float64) @ b.astype(np.float64).T
        return memory.get(c, (m, n), BF16), expected, float(np.abs(expected).max()) * 2**-8

    return Case(case.file, case.kernel, run)


def ampere_gemm(m: int = 128, n: int = 128, k: int = 192) -> Case:
    """C = A B^T, bf16 to f32, by 128 x 128 x 32 tiles with three stages of cp.async."""

    def run(module, options):
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal(shape).astype(BF16) for shape in ((m, k), (n, k)))
        memory = Memory()
        c = memory.empty(4 * m * n)
        params = [pointer(memory.put(a)), pointer(memory.put(b)), pointer(c), i32(n), i32(k)]
        emulate.launch(
            module.kernel("gemm_sm80"),
            (m // 128, n // 128),
            params,
            memory=memory.memory,
            shared_bytes=3 * 16384,
            options=options,
        )
        expected = a.astype(np.float64) @ b.astype(np.float64).T
        return memory.get(c, (m, n), np.float32), expected, 1e-3

    return Case("gemm_sm80", "gemm_sm80", run)


def attention(rows: int = 64, keys: int = 384) -> Case:
    """softmax(Q K^T / sqrt(d)) V, d = 128: 64 queries per CTA, key blocks of 128 in a ring of two."""

    def run(module, options):
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((count, 128)).astype(BF16) for count in (rows, keys, keys))
        memory = Memory()
        out = memory.empty(4 * rows * 128)
        maps = [rows_map(memory.put(array), len(array), 128, (64, box)) for array, box in ((q, 64), (k, 128), (v, 128))]
        scale = np.float32(np.log2(np.e) / np.sqrt(128))
        emulate.launch(
            module.kernel("fa"),
            rows // 64,
            [*maps, pointer(out), i32(keys // 128), scale.tobytes()],
            memory=memory.memory,
            shared_bytes=16384 + 2 * 65536,
            options=options,
        )
        s = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(128)
        p = np.exp(s - s.max(1, keepdims=True))
        expected = p @ v.astype(np.float64) / p.sum(1, keepdims=True)
        return memory.get(out, (rows, 128), np.float32), expected, 2e-3

    return Case("fa", "fa", run)


def cases() -> dict[str, Case]:
    """All kernels by name."""
    return {
        "ampere_gemm": ampere_gemm(),
        "hopper_gemm": hopper_gemm("gemm_128x64x64_dyn", 64),
        "cluster_gemm": cluster_gemm(),
        "attention": attention(),
    }
