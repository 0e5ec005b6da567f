# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks and single elements in one kernel of the family `rows_in_lanes`: whole numbers, so that sums are exact."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from listed_products import product, scattered

import tilewright as tw
from tilewright.core.errors import UserError

DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
TARGETS = ("cpu", "cpu:x86-64-v3")


def blocks(rows: int, depth: int, edges: tuple[int, int], density: float, seed: int = 0) -> np.ndarray:
    """[rows, depth] small integers in some blocks, zeros between; ragged blocks at both ends."""
    rng = np.random.default_rng(seed)
    kept = rng.random((-(-rows // edges[0]), -(-depth // edges[1]))) < density
    live = kept.repeat(edges[0], 0).repeat(edges[1], 1)[:rows, :depth]
    return (live * rng.integers(1, 5, live.shape)).astype(np.float32)


def mixture(
    shape: tuple[int, int], columns: int, edges: tuple[int, int], left: bool, kinds: tuple[str, str], adds: bool
) -> str:
    """`y = B @ x (+ c) + S @ x`, or with the operands changed: the text of one product, and a second one behind it."""
    pattern = edges if left else edges[::-1]
    text = product(
        shape,
        columns,
        f"block<[{pattern[0]}, {pattern[1]}]>",
        left=left,
        kinds=kinds,
        adds=adds,
        kernel="rows_in_lanes",
    )
    plain, encoding = f"tensor<{shape[0]}x{shape[1]}x{kinds[0]}>", "#sparse_tile.tesa<mask>"
    encoded = f"{plain[:-1]}, {encoding}>"
    head, _, end = text.rpartition("return")
    line = next(one for one in head.splitlines() if "sparse_tile.matmul" in one)
    second = line.replace("%y =", "%t =").replace("%p", "%q").replace("%c", "%y")
    first = line[line.index(" : ") :].replace(f"block<[{pattern[0]}, {pattern[1]}]>", "mask")
    second = second[: second.index(" : ")] + first
    more = f"""
      %v = ml_program.global_load_const @s : {plain}
      %q = sparse_tile.pack %v : {plain} to {encoded}
{second}
      return"""
    return (
        f"ml_program.global private @s(#ml_program.extern<{plain}>) : {plain}\n" + head + more + end.replace("%y", "%t")
    )


def check(b: np.ndarray, s: np.ndarray, columns: int, edges: tuple[int, int], target: str, **more: object) -> list[int]:
    """Compile and run both orientations, with and without a sum; how many kernels multiply in each."""
    kinds = more.get("kinds", ("f32", "f32"))
    assert isinstance(kinds, tuple)
    given, result = (DTYPES[kind] for kind in kinds)
    rng = np.random.default_rng(columns)
    x = rng.integers(-4, 5, (b.shape[1], columns)).astype(given)
    c = rng.integers(-4, 5, (b.shape[0], columns)).astype(result)
    want, counts = (b + s).astype(np.float64) @ x.astype(np.float64), []
    for left, adds in ((True, False), (False, True)):
        wb, ws = (np.ascontiguousarray(w if left else w.T).astype(given) for w in (b, s))
        text = mixture(wb.shape, -1 if more.get("open_size") else columns, edges, left, kinds, adds)
        model = tw.compile(text, target=target, weights={"w": wb, "s": ws})
        (y,) = model(*[np.ascontiguousarray(one if left else one.T) for one in ([x, c] if adds else [x])])
        total = want + c.astype(np.float64) if adds else want
        np.testing.assert_array_equal(np.asarray(y).astype(np.float64), total if left else total.T)
        names = [kernel.name for kernel in getattr(model, "kernels", ())]
        counts.append(sum(not name.startswith("sparse_lanes") for name in names))
    return counts


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "edges"),
    [(33, 70, 45, (8, 16)), (1, 1, 1, (4, 4)), (131, 257, 70, (32, 7))],
)
def test_one_kernel(rows: int, depth: int, columns: int, edges: tuple[int, int], target: str) -> None:
    """Ragged blocks, panels and lanes; one row, one column; runs along the depth that are prime."""
    s = scattered(rows, depth, 0.04, np.random.default_rng(1))
    s[-1, -1] = 3
    assert check(blocks(rows, depth, edges, 0.4), s, columns, edges, target) == [1, 1]


def test_two_kernels_where_lists_do_not_go_together() -> None:
    """Many single elements have lists of a block of the depth each: then blocks are summed before."""
    s = scattered(24, 400, 0.3, np.random.default_rng(1))
    assert check(blocks(24, 400, (8, 8), 0.2), s, 37, (8, 8), "cpu") == [2, 2]


@pytest.mark.parametrize("empty", ["blocks", "single"])
def test_one_region_is_empty(empty: str) -> None:
    b, s = blocks(40, 64, (8, 8), 0.3), scattered(40, 64, 0.05, np.random.default_rng(1))
    check(b * (empty != "blocks"), s * (empty != "single"), 21, (8, 8), "cpu")


@pytest.mark.parametrize("kinds", [("f64", "f64"), ("bf16", "bf16")])
def test_types(kinds: tuple[str, str]) -> None:
    """Small floats are summed in f32 and rounded once."""
    b, s = np.minimum(blocks(17, 24, (4, 4), 0.2), 1), np.minimum(scattered(17, 24, 0.05, np.random.default_rng(1)), 1)
    check(b, s, 19, (4, 4), "cpu", kinds=kinds)


def test_open_columns() -> None:
    """Sizes that a run brings."""
    s = scattered(40, 64, 0.05, np.random.default_rng(1))
    assert check(blocks(40, 64, (8, 8), 0.3), s, 40, (8, 8), "cpu", open_size=True) == [1, 1]


def test_interpreted() -> None:
    """The reference interpreter runs the kernel as it stands."""
    check(blocks(9, 22, (4, 4), 0.4), scattered(9, 22, 0.05, np.random.default_rng(1)), 18, (4, 4), "reference")


@pytest.mark.parametrize("target", TARGETS)
def test_blocks_alone(target: str) -> None:
    """Asked for by name, the family takes blocks that nothing follows."""
    b = blocks(33, 50, (8, 8), 0.3)
    text = product(b.shape, 21, "block<[8, 8]>", kernel="rows_in_lanes")
    x = np.random.default_rng(0).integers(-4, 5, (50, 21)).astype(np.float32)
    np.testing.assert_array_equal(tw.compile(text, target, weights={"w": b})(x)[0], b @ x)


def test_blocks_of_few_rows_are_refused() -> None:
    b = blocks(33, 50, (3, 8), 0.3)
    with pytest.raises(UserError, match="blocks are no multiple of 4 rows"):
        tw.compile(product(b.shape, 21, "block<[3, 8]>", kernel="rows_in_lanes"), "cpu:x86-64-v4", weights={"w": b})


def test_an_assembled_mask_behind_blocks_is_refused_as_alone() -> None:
    """Elements that only a run knows have no lists: not in a mixture either."""
    b, text = blocks(64, 64, (8, 8), 0.3), mixture((64, 64), 32, (8, 8), False, ("f32", "f32"), False)
    made = "%q = sparse_tile.assemble %values, %at, %starts : tensor<?xf32>, tensor<?xi32>, tensor<65xi32> to "
    lines = [
        made + line.partition(" to ")[2] if "%q = sparse_tile.pack" in line else line for line in text.splitlines()
    ]
    text = "\n".join(line for line in lines if "%v = ml_program" not in line and "private @s" not in line)
    text = text.replace("func.func @main(", "func.func @main(%values: tensor<?xf32>, %at: tensor<?xi32>, ", 1)
    text = text.replace("%at: tensor<?xi32>, ", "%at: tensor<?xi32>, %starts: tensor<65xi32>, ", 1)
    with pytest.raises(UserError, match="it is not known which elements are kept"):
        tw.compile(text, "cpu", weights={"w": b})
