# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache is looked through when it may be full, not after every compilation."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.core import cache, config


def text(size: int) -> str:
    return f"func.func @main(%x: tensor<{size}xf32>) -> tensor<{size}xf32> {{\n  return %x : tensor<{size}xf32>\n}}\n"


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An own cache; what is appended for each look through it."""
    done: list[int] = []
    whole = cache._look_through
    monkeypatch.setattr(cache, "_look_through", lambda *limits: (done.append(1), whole(*limits))[1])
    with config.cache_dir.override(tmp_path):
        yield done


def test_one_look_for_many_compilations(looks: list[int]) -> None:
    for size in range(2, 6):
        tw.compile(text(size))
    assert len(looks) == 1
    estimate = int((cache.root() / "size").read_text())
    assert estimate >= sum(entry.size for entry in cache.entries())


def test_a_look_where_the_limit_may_be_exceeded_and_once_a_day(looks: list[int]) -> None:
    tw.compile(text(2))
    with config.cache_size.override(1):
        tw.compile(text(3))
    assert len(looks) == 2
    assert len([e for e in cache.entries() if e.kind == "compiled"]) == 1
    yesterday = time.time() - 25 * 3600
    os.utime(cache.root() / "looked", (yesterday, yesterday))
    tw.compile(text(4))
    assert len(looks) == 3


def test_a_full_cache_is_not_looked_through_by_every_compilation(looks: list[int]) -> None:
    tw.compile(text(2))
    size = sum(entry.size for entry in cache.entries())
    with config.cache_size.override(10 * size):
        for number in range(3, 20):
            tw.compile(text(number))
    assert 1 < len(looks) < 11, "the estimate counts an entry twice, and a quarter of the limit is free after a look"
    assert sum(entry.size for entry in cache.entries()) <= 10 * size
