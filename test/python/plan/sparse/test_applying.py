# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tile-apply-sparsity` makes of written covers has the meaning of the product, in each orientation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import devices, reference
from tilewright.core.errors import UserError
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.plan.sparse import probe
from tilewright.plan.sparse.forms.dense import DenseForm
from tilewright.plan.sparse.forms.form import Product

F32 = np.dtype(np.float32)
COVERS = (
    ("mask",),
    ("block<[8, 16]>",),
    ("nm<16 : 16, axis = 0>",),
    ("block<[16, 16]>", "mask"),
    ("nm<2 : 8, axis = 0>", "mask"),
    ("block<[16, 16]>", "block<[8, 32]>", "nm<3 : 8, axis = 0>", "mask"),
)


def program(x: str, y: str, maps: tuple[str, str, str], kinds: str, cover: tuple[str, ...], w: str = "70x37") -> str:
    """y += x * w, with the decision; x, y and w are sizes."""
    tesa = f"#sparse_tile.tesa<{', '.join(cover)}>"
    names = ", ".join(['"dense"'] * len(cover))
    iterators = ", ".join('"reduction"' if kind == "r" else '"parallel"' for kind in kinds)
    return f"""
#a = affine_map<{maps[0]}>
#b = affine_map<{maps[1]}>
#c = affine_map<{maps[2]}>
ml_program.global private @w(#ml_program.extern<tensor<{w}xf32>>) : tensor<{w}xf32>
func.func @main(%x: tensor<{x}xf32>, %i: tensor<{y}xf32>) -> tensor<{y}xf32> {{
  %w = ml_program.global_load_const @w : tensor<{w}xf32>
  %y = linalg.generic {{indexing_maps = [#a, #b, #c], iterator_types = [{iterators}]}}
      ins(%x, %w : tensor<{x}xf32>, tensor<{w}xf32>) outs(%i : tensor<{y}xf32>)
      attrs = {{tile.sparsity = {{cover = {tesa}, kernels = [{names}]}}}} {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  }} -> tensor<{y}xf32>
  return %y : tensor<{y}xf32>
}}
"""


FORMS = {
    "x w": ("7x70", "7x37", ("(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)", "(m, n, k) -> (m, n)"), "ppr", "mk,kn->mn"),
    "batch": (
        "3x5x70",
        "3x37x5",
        ("(b, m, n, k) -> (b, m, k)", "(b, m, n, k) -> (k, n)", "(b, m, n, k) -> (b, n, m)"),
        "pppr",
        "bmk,kn->bnm",
    ),
    "one row": ("70", "37", ("(n, k) -> (k)", "(n, k) -> (k, n)", "(n, k) -> (n)"), "pr", "k,kn->n"),
    "unit": (
        "1x70x6",
        "37x1x6",
        ("(m, n, k) -> (0, k, m)", "(m, n, k) -> (k, n)", "(m, n, k) -> (n, 0, m)"),
        "ppr",
        "akm,kn->nam",
    ),
}


def weight(seed: int = 0) -> np.ndarray:
    """Integers: elements here and there, and a block."""
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 4, (70, 37)) * (rng.random((70, 37)) < 0.2)
    w[16:32, :16] = rng.integers(1, 4, (16, 16))
    return w.astype(F32)


class Left(DenseForm):
    """Takes encoded operands on the left alone."""

    name = "dense"

    def reason_against(self, product: Product, device: Any) -> str | None:
        return None if product.left else "it is for the left"


def applied(text: str, weights: dict[str, np.ndarray], *inputs: np.ndarray, passes: str = "tile-apply-sparsity") -> Any:
    """The result by the interpreter, and the IR."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        annotate(module, devices.get("intel-granite-rapids"))
        run_pipeline(module, f"builtin.module({passes})", weights=weights, replay=False)
        return reference.run(module, "main", list(inputs), weights)[0], str(module)


@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
@pytest.mark.parametrize("cover", COVERS, ids=" ".join)
@pytest.mark.parametrize("form", FORMS)
def test_written_covers(form: str, cover: tuple[str, ...], left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact, in each orientation, added to what is there."""
    if left:
        monkeypatch.setattr(probe, "FORMS", (Left(),))
    x_size, y_size, maps, kinds, einsum = FORMS[form]
    rng = np.random.default_rng(1)
    x, i = (rng.integers(-3, 4, [int(n) for n in s.split("x")]).astype(F32) for s in (x_size, y_size))
    w = weight()
    result, text = applied(program(x_size, y_size, maps, kinds, cover), {"w": w}, x, i)
    np.testing.assert_array_equal(result, i + np.einsum(einsum, x, w))
    assert 1 <= text.count("sparse_tile.matmul") <= len(cover)  # regions without an element are left out


@pytest.mark.parametrize(
    ("cover", "message"),
    [
        (("nm<2 : 4, axis = 0>",), r"2:4 along axis 0 does not fit the weight: window \[\d+, \d+\] has \d units"),
        (("nm<2 : 4, axis = 2>",), "no tensor of shape"),
        (("mask", "block<[4, 4]>"), "a cover has its blocks first"),
    ],
)
def test_covers_that_do_not_fit(cover: tuple[str, ...], message: str) -> None:
    x, y, maps, kinds, _ = FORMS["x w"]
    with pytest.raises(UserError, match=message):
        applied(program(x, y, maps, kinds, cover), {"w": weight()})


def test_a_cover_for_what_is_no_constant() -> None:
    x, y, maps, kinds, _ = FORMS["x w"]
    text = program(x, y, maps, kinds, ("mask",)).replace(
        "%i: tensor<7x37xf32>)", "%i: tensor<7x37xf32>, %v: tensor<70x37xf32>)"
    )
    text = text.replace("ins(%x, %w", "ins(%x, %v")
    with pytest.raises(UserError, match="neither of its operands is a constant"):
        applied(text, {"w": weight()})
