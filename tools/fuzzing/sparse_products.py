# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Campaigns `sparse`, `mesh-sparse`: random products by a constant with random zeros, against the reference."""

from __future__ import annotations

import json
import os
import random
import re
from typing import TYPE_CHECKING, Any

from .campaign import Campaign, describe

if TYPE_CHECKING:
    import numpy as np

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 31, 32, 33, 48, 64, 65, 96, 100, 127, 128, 130)
_WIDTHS = {"f16": ("f16", "f32"), "bf16": ("bf16", "f32"), "f32": ("f32",), "f64": ("f64",)}
_PARTS_KEPT = (0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 1.0)
_WINDOWS = ((1, 2), (2, 4), (1, 4), (3, 8), (4, 4), (1, 16), (8, 32))
#: Machines of the cases; the second has no AVX-512 and runs wherever the first does.
TARGETS = ("cpu", "cpu", "cpu:x86-64-v3")
#: How the cores of a mesh are to multiply, whatever is the fastest; empty: as it is planned.
ALGORITHMS = ("", "condensed", "condensed_meshgemm")


class SparseProducts(Campaign):
    """`sparse_tile.matmul` on a packed constant: all patterns on either side, ragged sizes, float types, sums or not.

    A case is the text of a module behind a line that says how it is run.
    """

    name = "sparse"
    suffix = ".mlir"
    seconds = 60

    def prepare(self) -> None:
        """No case comes twice: a cache would only grow."""
        os.environ.setdefault("TILEWRIGHT_CACHE", "0")

    targets = TARGETS

    def case(self, choose: random.Random) -> bytes:
        """A product."""
        return text_of(choose, self.targets).encode()

    def execute(self, case: bytes) -> str | None:
        """Compile and interpret; compare."""
        return compared(case.decode())


class OnMesh(SparseProducts):
    """The same products on a simulated mesh, whose cores hold the constant in any way."""

    name = "mesh-sparse"
    seconds = 300
    targets = tuple(f"mesh:toy8x8 {algorithm}".strip() for algorithm in ALGORITHMS)


def text_of(choose: random.Random, targets: tuple[str, ...] = TARGETS) -> str:
    """A module whose @main multiplies its input with a pruned constant."""
    import numpy as np

    rng = np.random.default_rng(choose.randrange(1 << 32))
    left, element = choose.random() < 0.5, choose.choice(("f32", "f32", "f32", "f16", "bf16", "f64"))
    sums = choose.choice(_WIDTHS[element])
    m, k, n = (choose.choice(SIZES) for _ in range(3))
    shape = (m, k) if left else (k, n)
    pattern, kept = _pattern(choose, rng, shape)
    weight = np.where(kept, rng.integers(1, 9, shape) * rng.choice((-0.25, 0.25), shape), 0.0)
    dense = ("x", (k, n) if left else (m, k), element)
    inputs = [dense, *([("c", (m, n), sums)] if choose.random() < 0.3 else [])]
    text = _module(pattern, shape, left, element, sums, (m, k, n), inputs)
    of_weights = {"w": (weight, element)}
    return with_head(choose, text, [(size, kind) for _, size, kind in inputs], of_weights, targets)


def with_head(
    choose: random.Random,
    text: str,
    inputs: list[tuple[tuple[int, ...], str]],
    weights: dict[str, tuple[Any, str]],
    targets: tuple[str, ...] = TARGETS,
) -> str:
    """A module behind a line that says how it is run: kinds of its inputs, elements of its weights, the target."""
    head = {
        "seed": choose.randrange(1 << 32),
        "inputs": [[list(size), kind] for size, kind in inputs],
        "weights": {name: [list(array.shape), array.ravel().tolist(), kind] for name, (array, kind) in weights.items()},
        "target": choose.choice(targets),
    }
    return f"// {json.dumps(head)}\n{text}"


def _module(
    pattern: str, shape: tuple[int, int], left: bool, element: str, sums: str, sizes: tuple[int, int, int], inputs: list
) -> str:
    m, k, n = sizes
    kind, held = _type(shape, element), _type(shape, element, ", #w")
    result, other = _type((m, n), sums), _type(inputs[0][1], element)
    operands = "%p, %x" if left else "%x, %p"
    kinds = f"{held}, {other}" if left else f"{other}, {held}"
    arguments = ", ".join(f"%{name}: {_type(shape, of)}" for name, shape, of in inputs)
    zero = f"""%zero = arith.constant 0.0 : {sums}
  %e = tensor.empty() : {result}
  %c = linalg.fill ins(%zero : {sums}) outs(%e : {result}) -> {result}"""
    return f"""#w = #sparse_tile.tesa<{pattern}>
ml_program.global private @w(#ml_program.extern : {kind}) : {kind}
func.func @main({arguments}) -> {result} {{
  %w = ml_program.global_load_const @w : {kind}
  %p = sparse_tile.pack %w : {kind} to {held}
  {zero if len(inputs) == 1 else ""}
  %y = sparse_tile.matmul {operands}, %c : {kinds}, {result}
  return %y : {result}
}}
"""


def _type(shape: tuple[int, ...], element: str, encoding: str = "") -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}{encoding}>"


def _pattern(choose: random.Random, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[str, np.ndarray]:
    """A pattern, and which elements of a matrix differ from zero so that it fits."""
    import numpy as np

    part = choose.choice(_PARTS_KEPT)
    kind = choose.choice(("mask", "block", "nm", "nm"))
    if kind == "mask":
        kept = rng.random(shape) < part
        kept[rng.random(shape[0]) < 0.2] = False  # rows without an element
        return "mask", kept
    if kind == "block":
        block = (choose.choice((1, 2, 4, 8, 16, 32)), choose.choice((1, 3, 8, 16, 32)))
        grid = [-(-size // step) for size, step in zip(shape, block, strict=True)]
        return f"block<[{block[0]}, {block[1]}]>", _spread(rng.random(grid) < part, block, shape)
    (n, m), axis = choose.choice(_WINDOWS), choose.choice((0, 1))
    unit = [1, 1]
    unit[1 - axis] = choose.choice((1, 1, 4, 16, 32))
    if choose.random() < 0.2:
        unit[axis] = choose.choice((2, 4))
    grid = [-(-size // step) for size, step in zip(shape, unit, strict=True)]
    grid[axis] += -grid[axis] % m
    order = np.moveaxis(rng.random(grid), axis, -1)
    windows = order.reshape(*order.shape[:-1], -1, m)
    ranks = np.argsort(np.argsort(windows, axis=-1), axis=-1)
    kept = np.moveaxis((ranks < n).reshape(order.shape), -1, axis)
    return f"nm<{n} : {m}, axis = {axis}, unit = [{unit[0]}, {unit[1]}]>", _spread(kept, unit, shape)


def _spread(units: np.ndarray, unit: Any, shape: tuple[int, int]) -> np.ndarray:
    return units.repeat(unit[0], axis=0).repeat(unit[1], axis=1)[: shape[0], : shape[1]]


def compared(text: str) -> str | None:
    """Run a module by its first line, compiled and interpreted: None, or what is wrong."""
    import numpy as np

    import tilewright as tw
    from tilewright.core.dtypes import of_mlir

    from .programs import difference

    head = json.loads(text.splitlines()[0].removeprefix("// "))
    rng = np.random.default_rng(head["seed"])
    weights = {
        name: np.array(elements).reshape(size).astype(of_mlir(kind))
        for name, (size, elements, kind) in head["weights"].items()
    }
    inputs = [(rng.integers(-4, 5, size) * 0.5).astype(of_mlir(kind)) for size, kind in head["inputs"]]
    try:
        expected = tw.compile(text, target="reference", weights=weights)(*inputs)
        found = _compiled(text, head["target"], weights)(*inputs)
    except tw.UnsupportedError:
        return None
    except Exception as error:
        return describe(error)
    wrong = next(filter(None, map(difference, found, expected)), None)
    return f"results differ: {wrong}" if wrong else None


def _compiled(text: str, target: str, weights: dict[str, np.ndarray]) -> Any:
    """The module for a target, behind which an algorithm may stand that its product is to take."""
    import tilewright as tw

    target, _, algorithm = target.partition(" ")
    if not algorithm:
        return tw.compile(text, target=target, threads=2, weights=weights)
    from tilewright.targets.mesh.pipeline import PIPELINE

    planned = tw.compile(text, target=target, weights=weights, stop_after="plan")
    return tw.compile(_taking(planned, algorithm), target=target, weights=weights, pipeline=PIPELINE.after("plan"))


def _taking(planned: str, algorithm: str) -> str:
    """A plan whose condensed product takes the other algorithm: rows and the summed dimension change places along y."""

    def other(found: re.Match[str]) -> str:
        if found[1] == algorithm:
            return found[0]
        loops = [{"": "y", "y": ""}.get(axis, axis) for axis in json.loads(found[2])]
        return f'coremesh.algorithm = "{algorithm}", coremesh.loops = {json.dumps(loops)}'

    return re.sub(r'coremesh.algorithm = "(condensed\w*)", coremesh.loops = (\[.*?\])', other, planned)
