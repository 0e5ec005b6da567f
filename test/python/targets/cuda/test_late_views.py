# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the views of a host program are made: a temporary begins right before what first touches it."""

from __future__ import annotations

from typing import Any

from tilewright.runtime.gpu.host_steps import Frame, steps_of
from tilewright.targets.cuda.host_program import _late_views

ARENA, NUMBER, KEPT, LATER, FLAT = range(5)


def view(result: int, shift: int) -> dict[str, Any]:
    """Four bytes of the arena."""
    return {"op": "view", "source": ARENA, "shift": shift, "sizes": [], "result": result}


def launch(*args: int) -> dict[str, Any]:
    return {"op": "launch", "kernel": "k", "grid": [], "args": list(args)}


def made(body: list[dict[str, Any]]) -> list[Any]:
    """Ops in order: views as their register, and whether they begin."""
    return [(op["result"], op.get("begins", True)) if op["op"] == "view" else op["op"] for op in body]


def test_right_before_the_first_use() -> None:
    body = [view(NUMBER, 0), view(KEPT, 8), launch(KEPT), launch(NUMBER)]
    assert made(_late_views(body, [])) == [(KEPT, True), "launch", (NUMBER, True), "launch"]


def test_views_of_views_come_with_them() -> None:
    body = [view(KEPT, 0), {"op": "collapse", "source": KEPT, "groups": [], "result": FLAT}, launch(FLAT)]
    assert made(_late_views(body, [])) == [(KEPT, True), "collapse", "launch"]


def test_the_arena_as_a_whole() -> None:
    """What is read behind a launch that takes all of the arena exists before it; bytes that it reads stay."""
    body = [view(NUMBER, 0), {"op": "store", "value": 9, "target": NUMBER, "indices": []}]
    body += [view(KEPT, 0), launch(ARENA), launch(KEPT), view(LATER, 8), launch(LATER)]
    assert made(_late_views(body, [])) == [
        (NUMBER, True), "store", (KEPT, False), "launch", "launch", (LATER, True), "launch",
    ]  # fmt: skip


def test_what_is_given_exists() -> None:
    assert made(_late_views([view(KEPT, 0)], [KEPT])) == [(KEPT, True)]


class _Program:
    """Notes which views begin."""

    device = None  # nothing is read or written

    def __init__(self) -> None:
        self.began: list[int] = []

    def begin(self, found: Any) -> None:
        self.began.append(found.address)


def test_a_view_that_begins_nothing_forgets_nothing() -> None:
    from tilewright.runtime.gpu.gpu_memory import Memory, View

    kind = {"dtype": "i8", "shape": [4]}
    ops = [{**view(1, 3), "type": kind}, {**view(2, 3), "type": kind, "begins": False}]
    program: Any = _Program()
    frame = Frame(program, [View.contiguous(Memory(None, 64), "i8", [16]), None, None, 8])
    for step in steps_of(ops):
        step(frame)
    assert program.began == [frame.registers[1].address] == [72]
    assert frame.registers[2].address == 72
