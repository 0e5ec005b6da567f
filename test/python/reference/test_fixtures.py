# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The hand-written kernels of test/fixtures: parsed, verified, interpreted, compared with plain NumPy.

Those for a CPU are compiled and run on this machine too, as the text stands there.
"""

from __future__ import annotations

from pathlib import Path

import native
import numpy as np
import pytest

from tilewright import reference
from tilewright.mlir import ir

FOLDER = Path(__file__).parents[2] / "fixtures"
SEEDS = [None, 0, 1, 2]
WAYS = [None, "native"]


def run(name: str, kernel: str, args: list, grid: list[int], seed=None) -> None:
    """Interpret a kernel of a fixture; with the seed "native", compile it and run that."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse((FOLDER / f"{name}.mlir").read_text())
        assert module.operation.verify()
        if seed != "native":
            reference.run_kernel(module, kernel, args, grid, seed=seed)
            return
        text = next(str(op) for op in module.body.operations if op.operation.attributes["sym_name"].value == kernel)
    native.Kernel(text, kernel)(*(np.asarray(arg) for arg in args), grid=grid)


def normal(rng, *shape, dtype=np.float32):
    """Normally distributed values."""
    return rng.standard_normal(shape).astype(dtype)


def blank(*shape, dtype=np.float32):
    """An output: NaN, so that an element that nobody writes shows."""
    return np.full(shape, np.nan, dtype)


def softmax(x):
    """Along the last dimension."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v):
    """softmax(q k^T / sqrt(channels)) v in float64."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])) @ v


def test_every_fixture_is_tested():
    text = Path(__file__).read_text()
    assert [path.stem for path in FOLDER.glob("*.mlir") if f'"{path.stem}"' not in text] == []


@pytest.mark.parametrize("seed", WAYS)
def test_gemm_cpu(rng, seed):
    a, b, c = normal(rng, 37, 70), normal(rng, 70, 50), blank(37, 50)
    packed = np.pad(b, ((0, 0), (0, 14))).reshape(70, 2, 32).transpose(1, 0, 2).copy()
    run("gemm_cpu", "gemm", [a, packed, c], [2, 5], seed)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_gemm_sm90a(rng, seed):
    a, b, c = normal(rng, 128, 192, dtype=np.float16), normal(rng, 192, 128, dtype=np.float16), blank(128, 128)
    run("gemm_sm90a", "gemm", [a, b, c], [2, 2], seed)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_gemm_mesh(rng, seed):
    a, b, c = normal(rng, 32, 64), normal(rng, 64, 48), blank(32, 48)
    run("gemm_mesh", "gemm", [a, b, c], [4, 4], seed)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def ways(*case):
    """The case in every way that it can be run: interpreted in several orders, and native for a CPU form."""
    return [(*case, seed) for seed in (WAYS if case[0].endswith("_cpu") else SEEDS)]


SOFTMAX = [
    *ways("softmax_cpu", (13, 77), [4]),
    *ways("softmax_sm90a", (16, 512), [2, 2]),
    *ways("softmax_mesh", (8, 64), [4]),
]


@pytest.mark.parametrize(("name", "shape", "grid", "seed"), SOFTMAX)
def test_softmax(rng, name, shape, grid, seed):
    x, y = 3 * normal(rng, *shape), blank(*shape)
    run(name, "softmax", [x, y], grid, seed)
    np.testing.assert_allclose(y, softmax(x.astype(np.float64)), rtol=1e-5)


ATTENTION = [
    *ways("attention_cpu", (2, 19, 16), (2, 21, 16), [2, 3], np.float32, 1e-5),
    *ways("attention_sm90a", (3, 128, 64), (3, 160, 64), [3, 2], np.float16, 2e-3),
    *ways("attention_mesh", (32, 16), (40, 16), [4], np.float32, 1e-5),
]


@pytest.mark.parametrize(("name", "queries", "keys", "grid", "dtype", "tolerance", "seed"), ATTENTION)
def test_attention(rng, name, queries, keys, grid, dtype, tolerance, seed):
    q, k, v = (2 * normal(rng, *shape, dtype=dtype) for shape in (queries, keys, keys))
    out = blank(*queries, dtype=dtype)
    run(name, "attention", [q, k, v, out], grid, seed)
    np.testing.assert_allclose(out, attention(q, k, v), rtol=tolerance, atol=tolerance)


def sparse_two_of_four(rng, rows: int, depth: int, share: int = 1):
    """Dense [rows, depth] with 2 of each 4 kept, and the kept positions [rows / share, depth / 2] within groups."""
    order = np.argsort(rng.random((rows // share, depth // 4, 4)), axis=-1)[..., :2]
    position = np.sort(order, axis=-1).reshape(rows // share, depth // 2)
    columns = position + np.arange(depth // 2) // 2 * 4
    values = normal(rng, rows, depth // 2)
    dense = np.zeros((rows, depth), np.float32)
    np.put_along_axis(dense, np.repeat(columns, share, axis=0), values, axis=1)
    return dense, values, position, columns


def test_sparse_gemm_with_metadata(rng):
    dense, values, position, _ = sparse_two_of_four(rng, 32, 32)
    dense = dense.astype(np.float16).astype(np.float32)
    b, c = normal(rng, 32, 24, dtype=np.float16), blank(32, 24)
    run("sparse_gemm_nm", "sparse_gemm", [values.astype(np.float16), position.astype(np.int8), b, c], [2])
    np.testing.assert_allclose(c, dense @ b.astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", WAYS)
def test_sparse_gemm_with_shared_pattern(rng, seed):
    dense, values, _, columns = sparse_two_of_four(rng, 32, 32, share=8)
    b, c = normal(rng, 32, 24), blank(32, 24)
    blocks = values.reshape(4, 8, 16).transpose(0, 2, 1).copy()
    run("sparse_gemm_nm", "sparse_gemm_cpu", [blocks, columns.astype(np.int32), b, c], [4], seed)
    np.testing.assert_allclose(c, dense @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", WAYS)
@pytest.mark.parametrize("count", [0, 1, 4, 11, 64])
def test_gathered_gemm(rng, count, seed):
    a, b, out = normal(rng, 64, 24), normal(rng, 24, 32), blank(64, 32)
    rows = rng.permutation(64).astype(np.int32)
    live = rows[:count].copy()
    rows[count:] = -1  # must not be looked at
    run("gathered_gemm", "gathered_gemm", [a, rows, b, np.int64(count), out], [-(-count // 4)], seed)
    np.testing.assert_allclose(out[live], a[live] @ b, rtol=1e-4, atol=1e-4)
    assert np.isnan(np.delete(out, live, axis=0)).all()


@pytest.mark.parametrize("seed", WAYS)
def test_lstm_wavefront(rng, seed):
    x, y = normal(rng, 7, 6, 16), blank(7, 6, 16)
    w, bias = 0.5 * normal(rng, 3, 32, 64), normal(rng, 3, 64)
    run("lstm_wavefront", "lstm", [x, w, bias, y], [2], seed)
    sequence = x.astype(np.float64)
    for layer in range(3):
        h, c, outputs = np.zeros((6, 16)), np.zeros((6, 16)), []
        for step in sequence:
            gates = np.concatenate([step, h], 1) @ w[layer] + bias[layer]
            i, f, g, o = np.split(gates, 4, axis=1)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            outputs.append(h)
        sequence = np.stack(outputs)
    np.testing.assert_allclose(y, sequence, rtol=1e-4, atol=1e-5)
