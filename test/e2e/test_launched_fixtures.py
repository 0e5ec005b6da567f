# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixtures' kernels for a CPU as models: launched on tensors by a @main, through every phase, on several threads.

`test/python/reference/test_fixtures.py` runs the bare kernels; here buffers, tasks and threads are the product's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw

FOLDER = Path(__file__).parents[1] / "fixtures"


def kernel(file: str, name: str) -> str:
    """One kernel of a fixture, as it stands there."""
    text = (FOLDER / f"{file}.mlir").read_text()
    start = text.index(f"tile.kernel @{name}(")
    return text[start : text.index("\n}\n", start) + 3]


def launch(name: str, grid: str, ins: dict[str, str], outs: str) -> str:
    """A @main that launches a kernel on its inputs and on a new tensor."""
    inputs = ", ".join(f'%{key}: {kind} {{tile.name = "{key}"}}' for key, kind in ins.items())
    names, kinds = ", ".join(f"%{key}" for key in ins), ", ".join(ins.values())
    sizes = "\n".join(f"  %g{i} = arith.constant {size} : index" for i, size in enumerate(grid.split("x")))
    ids = ", ".join(f"%g{i}" for i in range(len(grid.split("x"))))
    return f"""
func.func @main({inputs}) -> ({outs} {{tile.name = "out"}}) {{
{sizes}
  %e = tensor.empty() : {outs}
  %r = tile.launch @{name} grid({ids}) ins({names} : {kinds}) outs(%e : {outs}) -> ({outs})
  return %r : {outs}
}}
"""


def run(text: str, *inputs: np.ndarray) -> np.ndarray:
    """The result for 1, 2 and 3 threads, which must be the same to the bit."""
    model = tw.compile(text, target="cpu")
    results = []
    for model.threads in (1, 2, 3):
        results.append(np.copy(model(*inputs)["out"]))
    assert len({result.tobytes() for result in results}) == 1
    return results[0]


@pytest.fixture
def normal():
    """Normally distributed numbers of a shape."""
    generator = np.random.default_rng(11)
    return lambda *shape: generator.standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last dimension, in float64."""
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_gemm(normal) -> None:
    a, b = normal(37, 70), normal(70, 50)
    packed = np.pad(b, ((0, 0), (0, 14))).reshape(70, 2, 32).transpose(1, 0, 2).copy()
    main = launch("gemm", "2x5", {"a": "tensor<37x70xf32>", "b": "tensor<2x70x32xf32>"}, "tensor<37x50xf32>")
    np.testing.assert_allclose(run(kernel("gemm_cpu", "gemm") + main, a, packed), a @ b, rtol=1e-4, atol=1e-4)


def test_softmax(normal) -> None:
    x = 3 * normal(13, 77)
    main = launch("softmax", "4", {"x": "tensor<13x77xf32>"}, "tensor<13x77xf32>")
    np.testing.assert_allclose(run(kernel("softmax_cpu", "softmax") + main, x), softmax(x), rtol=1e-5)


def test_attention(normal) -> None:
    q, k, v = 2 * normal(2, 19, 16), 2 * normal(2, 21, 16), normal(2, 21, 16)
    kinds = {"q": "tensor<2x19x16xf32>", "k": "tensor<2x21x16xf32>", "v": "tensor<2x21x16xf32>"}
    ours = run(kernel("attention_cpu", "attention") + launch("attention", "2x3", kinds, "tensor<2x19x16xf32>"), q, k, v)
    np.testing.assert_allclose(ours, softmax(q @ k.swapaxes(1, 2) / 4) @ v, rtol=1e-4, atol=1e-5)


def test_sparse_gemm(normal) -> None:
    """2:4 sparsity whose pattern blocks of 8 rows share."""
    pattern = np.array([[0, 1], [1, 3], [0, 2], [2, 3]], np.int32)
    choice = np.arange(32).reshape(4, 8) * 5 % 4
    live = (pattern[choice] + np.arange(8, dtype=np.int32)[:, None] * 4).reshape(4, 16)
    kept, b = normal(4, 16, 8), normal(32, 24)
    dense = np.zeros((32, 32), np.float32)
    for block in range(4):
        dense[8 * block : 8 * block + 8, live[block]] = kept[block].T
    kinds = {"a": "tensor<4x16x8xf32>", "live": "tensor<4x16xi32>", "b": "tensor<32x24xf32>"}
    main = launch("sparse_gemm_cpu", "4", kinds, "tensor<32x24xf32>")
    ours = run(kernel("sparse_gemm_nm", "sparse_gemm_cpu") + main, kept, live.astype(np.int32), b)
    np.testing.assert_allclose(ours, dense @ b, rtol=1e-4, atol=1e-4)


GATHER = """
func.func @main(%a: tensor<64x24xf32>, %rows: tensor<64xi32>, %b: tensor<24x32xf32>, %count: tensor<1xi64>,
                %old: tensor<64x32xf32>) -> (tensor<64x32xf32> {tile.name = "out"}) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %number = tensor.extract %count[%c0] : tensor<1xi64>
  %live = arith.index_cast %number : i64 to index
  %tasks = arith.ceildivui %live, %c4 : index
  %r = tile.launch @gathered_gemm grid(%tasks)
      ins(%a, %rows, %b, %live : tensor<64x24xf32>, tensor<64xi32>, tensor<24x32xf32>, index)
      outs(%old : tensor<64x32xf32>) -> (tensor<64x32xf32>)
  return %r : tensor<64x32xf32>
}
"""


@pytest.mark.parametrize("count", [0, 1, 11, 64])
def test_gathered_gemm(normal, count: int) -> None:
    """Rows that a list names, as many as a number says that is known at run time only; the others stay."""
    a, b, old = normal(64, 24), normal(24, 32), normal(64, 32)
    rows = np.random.default_rng(3).permutation(64).astype(np.int32)
    ours = run(kernel("gathered_gemm", "gathered_gemm") + GATHER, a, rows, b, np.array([count]), old)
    expected = old.copy()
    expected[rows[:count]] = a[rows[:count]] @ b
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


def test_lstm_wavefront(normal) -> None:
    x, w, bias = normal(7, 6, 16), 0.5 * normal(3, 32, 64), normal(3, 64)
    kinds = {"x": "tensor<7x6x16xf32>", "w": "tensor<3x32x64xf32>", "bias": "tensor<3x64xf32>"}
    ours = run(kernel("lstm_wavefront", "lstm") + launch("lstm", "2", kinds, "tensor<7x6x16xf32>"), x, w, bias)
    sequence = x.astype(np.float64)
    for layer in range(3):
        h, c = np.zeros((6, 16)), np.zeros((6, 16))
        for t, step in enumerate(sequence.copy()):
            i, f, g, o = np.split(np.concatenate([step, h], 1) @ w[layer] + bias[layer], 4, axis=1)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            sequence[t] = h = np.tanh(c) / (1 + np.exp(-o))
    np.testing.assert_allclose(ours, sequence, rtol=1e-4, atol=1e-5)
