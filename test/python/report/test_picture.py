# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The picture of the fused groups, predictions, and the order of the kernels."""

from __future__ import annotations

import re
import xml.etree.ElementTree
from typing import Any

import pytest

import models
import tilewright as tw
from tilewright.report.picture import picture
from tilewright.report.roofline import predicted_seconds

DEVICE = {
    "units": {"count": 2, "peak": {"f32": 1e9}},
    "levels": [
        {"name": "register", "kind": "register", "bytes": 1, "bandwidth": 0.0},
        {"name": "l1", "kind": "cache", "bytes": 1000, "bandwidth": 1e9},
        {"name": "memory", "kind": "addressable", "bytes": 1 << 30, "bandwidth": 1e8},
    ],
}


def group(name: str, sources: list[int], ops: int = 2) -> dict[str, Any]:
    nested = {"op": "tile.group", "depth": 0, "location": "", "decisions": "level = register"}
    members = [{"op": "linalg.generic", "depth": 1, "location": f"/m/Op_{i}", "decisions": ""} for i in range(ops)]
    return {"name": name, "kernel": name, "from": sources, "ops": [nested, *members]}


def test_the_picture_has_a_box_per_group_and_an_edge_per_tensor() -> None:
    groups = [group("a", []), group("b<c>", [0], ops=20), group("d", [0, 1])]
    shown = picture(groups, {"a": "#123456"}, {"a": 0.001})
    assert shown is not None
    root = xml.etree.ElementTree.fromstring(shown.text)
    assert (len(root.findall(".//g")), len(root.findall(".//path"))) == (3, 3)
    tops = [float(box.attrib["y"]) for box in root.findall(".//rect")]
    assert tops == sorted(tops) and len(set(tops)) == 3
    texts = [text.text for text in root.findall(".//text")]
    assert "b<c>" in texts and "… 13 more" in texts and "in register:" in texts


def test_no_picture_where_there_is_nothing_to_see() -> None:
    assert picture([], {}, {}) is None
    assert picture([{"name": "old", "ops": []}], {}, {}) is None
    assert picture([group(str(i), []) for i in range(1000)], {}, {}) is None


@pytest.mark.parametrize(
    ("details", "threads", "expected"),
    [
        ({"predicted": {"ns": 500, "all_cores_ns": 300}}, 1, 5e-7),
        ({"predicted": {"ns": 500, "all_cores_ns": 300}}, 2, 3e-7),
        ({"flops": 10, "bytes": 5000, "moved": {"l1": 8000, "memory": 5000}}, 1, 5e-5),
        ({"flops": 10, "bytes": 500, "moved": {"l1": 8000, "memory": 500}}, 1, 8e-6),  # memory is not reached again
        ({"flops": 10**6, "bytes": 500, "moved": {"l1": 8000}}, 2, 5e-4),
        ({"flops": 10}, 1, None),
    ],
)
def test_predicted_time(details: dict[str, Any], threads: int, expected: float | None) -> None:
    found = predicted_seconds(details, DEVICE, threads)
    assert found == (None if expected is None else pytest.approx(expected))


def test_the_page_shows_what_is_lost_where() -> None:
    model = tw.compile(str(models.path("mlp_tiny")), threads=1)
    page = model.explain()
    assert "of roofline" in page and "<svg" in page and "l1 " in re.sub("<[^>]*>", " ", page)
    assert all(kernel.details["moved"]["l1"] > 0 for kernel in model.kernels)
