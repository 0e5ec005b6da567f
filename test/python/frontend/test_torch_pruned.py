# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruned torch modules: weights of sparse layouts and masks. Skipped where torch or onnxscript is missing."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
from onnx import numpy_helper  # noqa: E402
from torch.nn.utils import parametrize, prune  # noqa: E402

import tilewright as tw  # noqa: E402
from tilewright.core.errors import UserError  # noqa: E402
from tilewright.frontend.torch.export import export  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 16)).astype(np.float32))


def linear() -> torch.nn.Sequential:
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(16, 8)).eval()
    layers[0].weight.data[layers[0].weight.abs() < 0.1] = 0
    return layers


def compare(module: torch.nn.Module, weight: torch.Tensor, bias: torch.Tensor) -> None:
    found = tw.compile(module, "reference", example_inputs=(X,))(X)[0]
    torch.testing.assert_close(torch.as_tensor(found), (X @ weight.T + bias).detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_sparse_layouts_become_zeros(layout: str) -> None:
    module = linear()
    weight = module[0].weight.detach().clone()
    options = {"blocksize": (4, 8)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    kept = torch.nn.Parameter(weight.to_sparse(layout=getattr(torch, layout), **options))
    module[0].weight = kept
    compare(module, weight, module[0].bias)
    assert module[0].weight is kept, "the module is as it was"
    held = {t.name: numpy_helper.to_array(t) for t in export(module, (X,))[0].graph.initializer}
    np.testing.assert_array_equal(held["0.weight"], weight.numpy())


def test_masks_of_prune() -> None:
    module = linear()
    prune.l1_unstructured(module[0], "weight", 0.75)
    assert (module[0].weight == 0).sum() >= 96
    compare(module, module[0].weight, module[0].bias)


def test_masks_of_parametrizations() -> None:
    class Masked(torch.nn.Module):
        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return torch.where(weight > 0.1, weight, 0)

    module = linear()
    parametrize.register_parametrization(module[0], "weight", Masked())
    compare(module, module[0].weight, module[0].bias)


@pytest.mark.parametrize("strange", [float("nan"), float("inf")])
def test_a_mask_over_what_is_not_finite_is_told(strange: float) -> None:
    module = linear()
    prune.l1_unstructured(module[0], "weight", 0.75)
    place = (module[0].weight_mask == 0).nonzero()[0]
    module[0].weight_orig.data[tuple(place)] = strange
    with pytest.raises(UserError, match=r"0.weight is pruned at \[\d+, \d+\], where weight_orig holds a number that"):
        tw.compile(module, "reference", example_inputs=(X,))


def test_indices_that_are_not_sound_are_told() -> None:
    module = linear()
    broken = torch.sparse_csr_tensor(
        torch.arange(9), torch.full((8,), 99), torch.ones(8), (8, 16), check_invariants=False
    )
    module[0].weight = torch.nn.Parameter(broken)
    with pytest.raises(UserError, match="torch.sparse_csr and shape .8, 16. is not sound") as caught:
        tw.compile(module, "reference", example_inputs=(X,))
    assert caught.value.location == "0.weight"
