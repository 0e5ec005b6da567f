# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights in huge pages: the same numbers, aligned, counted; mapped where the system has none, or nothing is gained."""

from __future__ import annotations

import os
from pathlib import Path

import fake_model
import numpy as np
import pytest

from tilewright.cli import doctor
from tilewright.core import config
from tilewright.runtime.cpu import memory
from tilewright.targets.loading import load as load_model

HUGE = 2 << 20


@pytest.fixture(params=["always [madvise] never", "always madvise [never]", None])
def system(request, tmp_path, monkeypatch):
    """What Linux says of huge pages; None: no such file."""
    state = tmp_path / "enabled"
    if request.param is not None:
        state.write_text(request.param + "\n")
    monkeypatch.setattr(memory, "_STATE", state)
    return request.param


def arrays() -> list[np.ndarray]:
    """Several dtypes and odd sizes, an empty one, a number, one that is not contiguous; more than a huge page."""
    draw = np.random.default_rng(3)
    return [
        draw.integers(0, 255, 7, np.uint8),
        np.empty((0, 5), np.float32),
        np.array(1.5),
        draw.random((1021, 257)),
        draw.random((31, 19), np.float32).T,
        draw.random((13, 1)) < 0.5,
    ]


def test_copies_are_the_same_numbers_at_cache_lines(system):
    given = arrays()
    copies = memory.in_huge_pages(given)
    if system is None or "[madvise]" not in system:
        assert copies is None
        return
    assert copies is not None
    assert copies[0].ctypes.data % HUGE == 0
    for copy, array in zip(copies, given, strict=True):
        assert copy.ctypes.data % 64 == 0 and copy.dtype == array.dtype
        np.testing.assert_array_equal(copy, array)
        with pytest.raises(ValueError, match="read-only"):
            copy[...] = 0


def test_less_than_a_huge_page_stays_mapped():
    assert memory.in_huge_pages([]) is None
    assert memory.in_huge_pages([np.zeros(HUGE - 64, np.uint8)]) is None


def test_no_memory_stays_mapped(monkeypatch):
    def refuse(size):
        raise MemoryError(size)

    monkeypatch.setattr(memory, "allocate", refuse)
    monkeypatch.setattr(memory, "huge_pages", lambda: "always")
    assert memory.in_huge_pages([np.zeros(HUGE, np.uint8)]) is None


def test_large_memory_is_in_huge_pages():
    """Of an arena as of weights: the kernel says for each mapping how much of it lies in huge pages."""
    if memory.huge_pages() not in ("always", "madvise"):
        pytest.skip("this system gives no huge pages")
    block = memory.allocate(16 * HUGE)
    block[:] = 1
    address = block.ctypes.data
    if not _advised(address):
        pytest.fail("the mapping is not marked for huge pages, or shared: Linux gives it none")


def _advised(address: int) -> bool:
    """Whether the mapping at an address is private, and its owner asked for huge pages."""
    inside, private = False, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(part, 16) for part in first.split("-"))
            inside, private = low <= address < high, "p" in line.split()[1]
        elif inside and first == "VmFlags:":
            return private and "hg" in line.split()
    return False


def test_a_child_does_not_write_to_its_parents_arena():
    block = memory.allocate(4096)
    child = os.fork()
    if child == 0:
        block[0] = 1
        os._exit(0)
    os.waitpid(child, 0)
    assert block[0] == 0


def test_a_model_counts_its_copy(artifact, monkeypatch):
    """The made-up model's weight is smaller than a huge page: the least is lowered for it."""
    x, ids = fake_model.inputs()
    assert "copied" not in load_model(artifact).held_bytes
    monkeypatch.setattr(memory, "_HUGE", 64)
    monkeypatch.setattr(memory, "huge_pages", lambda: "madvise")
    with config.huge_weights.override(True):
        model = load_model(artifact)
    assert model.held_bytes == {"weights": 64, "arena": 64, "copied": 64}
    np.testing.assert_array_equal(model(x, ids)[0], x * fake_model.WEIGHT)


def test_doctor_tells_the_state(system):
    with config.huge_weights.override(True):
        state, text = doctor._huge_pages()
    good = system is not None and "[madvise]" in system
    assert state == ("ok" if good else "note")
    assert ("stay mapped in spite of" in text) is not good
