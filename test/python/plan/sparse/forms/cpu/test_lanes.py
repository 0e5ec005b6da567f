# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dense operand is packed once: for all rows of the sparse one, and for all products that read it."""

from __future__ import annotations

import numpy as np
import pytest
from listed_products import product, scattered, windows

import tilewright as tw
from cpus import has_avx512

DEPTH, COLUMNS = 150, 37


def three(shape: str = "", other: str = "x") -> str:
    """Three products `x @ w + .. + ..` of one x, the second one's behind reshapes, the last one's of `other`."""
    w = f"tensor<{DEPTH}x260xf32>"
    encoded = f"tensor<{DEPTH}x260xf32, #sparse_tile.tesa<nm<2 : 4, axis = 0>>>"
    x, y = f"tensor<{COLUMNS}x{DEPTH}xf32>", f"tensor<{COLUMNS}x260xf32>"
    lines = []
    for number, operand in enumerate(("x", shape or "x", other)):
        lines.append(f"""
      %w{number} = ml_program.global_load_const @w{number} : {w}
      %p{number} = sparse_tile.pack %w{number} : {w} to {encoded}
      %y{number} = sparse_tile.matmul %{operand}, %p{number}, %c {{kernel = "rows_in_lanes"}} : {x}, {encoded}, {y}""")
    wide = f"tensor<1x{COLUMNS}x{DEPTH}xf32>"
    globals_ = "".join(f"\n    ml_program.global private @w{n}(#ml_program.extern<{w}>) : {w}" for n in range(3))
    return f"""{globals_}
    func.func @main(%x: {x} {{tile.name = "x"}}, %z: {x} {{tile.name = "z"}}) -> ({y}, {y}, {y}) {{
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : {y}
      %c = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
      %wide = tensor.expand_shape %x [[0, 1], [2]] output_shape [1, {COLUMNS}, {DEPTH}] : {x} into {wide}
      %again = tensor.collapse_shape %wide [[0, 1], [2]] : {wide} into {x}
      {"".join(lines)}
      return %y0, %y1, %y2 : {y}, {y}, {y}
    }}"""


def packs(model: tw.CompiledModel) -> int:
    """How many launches pack."""
    return sum(kernel.launches for kernel in model.kernels if kernel.name.startswith("sparse_lanes"))


@pytest.mark.parametrize(
    ("shape", "other", "count"), [("", "x", 1), ("again", "x", 1), ("", "z", 2), ("again", "z", 2)]
)
def test_products_share(shape: str, other: str, count: int) -> None:
    """One launch for each operand, also where a product sees it behind reshapes."""
    rng = np.random.default_rng(0)
    x, z = (rng.integers(-4, 5, (COLUMNS, DEPTH)).astype(np.float32) for _ in range(2))
    ws = [np.ascontiguousarray(windows(260, DEPTH, 2, 4, rng).T).astype(np.float32) for _ in range(3)]
    model = tw.compile(three(shape, other), target="cpu", weights={f"w{n}": w for n, w in enumerate(ws)})
    assert packs(model) == count
    for y, operand, w in zip(model(x, z), (x, x, z if other == "z" else x), ws, strict=True):
        np.testing.assert_array_equal(y, operand @ w)


def test_between_products_of_a_mixture() -> None:
    """A mixture is made where its last product stands: what it packs is not there yet for a product before."""
    rng = np.random.default_rng(2)
    x = rng.integers(-4, 5, (COLUMNS, DEPTH)).astype(np.float32)
    ws = [scattered(260, DEPTH, 0.05, rng).T for _ in range(3)]
    ws[0] = np.where(np.arange(260) < 32, rng.integers(-4, 5, (DEPTH, 260)), 0)
    text = three().replace("nm<2 : 4, axis = 0>", "mask")
    text = text.replace("%p0 = sparse_tile.pack", "%block = sparse_tile.pack")
    first, *others = text.split("%y0 = ")
    block = first.rpartition("to ")[2].strip()
    line, _, behind = others[0].partition("\n")
    of_blocks = block.replace("mask", "block<[32, 32]>")
    text = first.rpartition(block)[0] + of_blocks + "\n      %y0 = "
    text += line.replace("%p0", "%block").replace(block, of_blocks) + "\n" + behind
    text = text.replace("%x, %p2, %c ", "%x, %p2, %y0 ").replace("return %y0, %y1, %y2", "return %y1, %y1, %y2")
    held = {f"w{n}": np.ascontiguousarray(w).astype(np.float32) for n, w in enumerate(ws)}
    _, one, both = tw.compile(text, target="cpu", weights=held)(x, x)
    np.testing.assert_array_equal(one, x @ held["w1"])
    np.testing.assert_array_equal(both, x @ held["w0"] + x @ held["w2"])


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize(("rows", "columns", "packed"), [(300, 1, 0), (300, 131, 1), (20, 131, 0), (300, -1, 1)])
def test_few_columns(rows: int, columns: int, packed: int, left: bool, target: str) -> None:
    """Where rows are shared out, and what is read again is worth a launch; ragged columns and depths, open sizes."""
    rng = np.random.default_rng(1)
    w = windows(rows, 531, 2, 4, rng)
    x = rng.integers(-4, 5, (531, columns if columns >= 0 else 70)).astype(np.float32)
    held = np.ascontiguousarray(w if left else w.T).astype(np.float32)
    encoding = f"nm<2 : 4, axis = {int(left)}>"
    text = product(held.shape, columns, encoding, left=left, kernel="rows_in_lanes")
    model = tw.compile(text, target=target, weights={"w": held})
    if target == "cpu" and has_avx512():
        assert packs(model) == packed
    (y,) = model(np.ascontiguousarray(x if left else x.T))
    np.testing.assert_array_equal(y if left else np.asarray(y).T, w.astype(np.float32) @ x)
