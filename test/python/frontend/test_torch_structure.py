# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of results that hold classes of PyTorch's pytree. Skipped where torch is missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright.frontend.torch.structure import Form  # noqa: E402
from tilewright.runtime.structure import build  # noqa: E402


class Cache:
    """Keys and values of layers, whose names are a part of its context, as of `transformers.DynamicCache`."""

    def __init__(self, keys: list[Any], values: list[Any]) -> None:
        self.keys, self.values = keys, values


torch.utils._pytree.register_pytree_node(
    Cache,
    lambda cache: ([cache.keys, cache.values], [["key_cache", "value_cache"], [None] * len(cache.keys)]),
    lambda parts, context: Cache(*parts),
    serialized_type_name="tilewright.tests.Cache",
)


def test_parts_of_a_class_have_its_names() -> None:
    first, second, third = (torch.full((2,), float(value)) for value in range(3))
    form = Form()
    tensors = form.take({"logits": first, "past": Cache([second], [third])})
    assert form.names == ["logits", "past.key_cache.0", "past.value_cache.0"]
    made = build(json.loads(form.text), tensors)
    assert type(made["past"]) is Cache and made["past"].keys == [second] and made["past"].values == [third]
    elsewhere = json.loads(form.text.replace(f'"module": "{Cache.__module__}"', '"module": "not_installed"'))
    assert build(elsewhere, tensors)["past"] == {"key_cache": [second], "value_cache": [third]}
