# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The exporter's table is read once, and each export has its own copy. Skipped where torch is missing."""

from __future__ import annotations

import pytest

registration = pytest.importorskip("torch.onnx._internal.exporter._registration")

from tilewright.frontend.torch import translations  # noqa: E402
from tilewright.frontend.torch.translations import read_once  # noqa: E402


def test_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, reads = registration.ONNXRegistry, []

    def read(cls: type, opset_version: int = 18) -> object:
        reads.append(opset_version)
        made = cls()
        made._opset_version = opset_version
        made.functions = {"aten::add": ["add"]}
        return made

    monkeypatch.setattr(translations, "_known", {})
    monkeypatch.setattr(registry, "from_torchlib", classmethod(read))
    before = registry.__dict__["from_torchlib"]
    with read_once():
        first = registry.from_torchlib(opset_version=1)
        first.functions["aten::add"].insert(0, "mine")
    with read_once():
        second, other = registry.from_torchlib(opset_version=1), registry.from_torchlib(opset_version=2)
    assert reads == [1, 2] and (second.opset_version, other.opset_version) == (1, 2)
    assert second.functions == {"aten::add": ["add"]}
    assert registry.__dict__["from_torchlib"] is before
