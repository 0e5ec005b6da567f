# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operators have an ONNX form. Skipped where torch or its exporter is missing."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from tilewright.frontend.torch.forms import without_form  # noqa: E402


def in_place(x: Any) -> Any:
    return torch.ops.aten.frac_(x + 1)


@pytest.mark.slow
def test_operators_with_and_without_a_form() -> None:
    def function(x: Any) -> Any:
        most = torch.cummax(x, 0)[0] + x.frac()  # frac is made of others
        dropout = torch.ops.aten.native_dropout
        return dropout(most, 0.5, True)[0] + dropout(x, 0.5, False)[0]

    graph = make_fx(function, tracing_mode="fake")(torch.randn(3, 2)).graph
    reasons = {str(node.target): reason for node, reason in without_form(graph).items()}
    assert reasons.pop("aten.cummax.default") == "torch's exporter has no ONNX form of aten.cummax.default"
    assert len(reasons) == 1 and "draws random numbers" in next(iter(reasons.values())), reasons
    changed = make_fx(in_place, tracing_mode="fake")(torch.randn(3)).graph
    assert list(without_form(changed).values()) == ["torch's exporter has no ONNX form of aten.frac_.default"]
