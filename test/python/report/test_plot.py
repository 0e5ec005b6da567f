# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots and heat maps: points stand where their numbers say, cells are as strong as their values."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree
import zlib

import numpy as np
import pytest

from tilewright.core.errors import InternalError
from tilewright.report.heat_map import heat_map, shrink
from tilewright.report.plot import Series, plot, short


def circles(shown: str) -> list[tuple[float, float]]:
    root = xml.etree.ElementTree.fromstring(shown)
    return [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in root.findall(".//circle")]


def test_points_are_linear_on_their_axes():
    shown = plot([Series("a", ((0, 10), (5, 20), (10, 30)))], "x", "y")
    assert shown is not None
    (x0, y0), (x1, y1), (x2, y2) = circles(shown.text)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2) and x1 > x0
    assert y1 - y0 == pytest.approx(y2 - y1, abs=0.2) and y1 < y0


def test_equal_factors_are_equal_ways_on_logarithmic_axes():
    shown = plot([Series("a", ((1, 2), (10, 200), (100, 20000)))], "x", "y", log_x=True, log_y=True)
    assert shown is not None
    (x0, y0), (x1, y1), (x2, y2) = circles(shown.text)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)


def test_names_and_tips_are_escaped_and_in_the_legend():
    shown = plot([Series("a<b", ((1, 1),), tips=("p & q",)), Series("none", ())], "x < 1", "y", log_x=True)
    assert shown is not None
    root = xml.etree.ElementTree.fromstring(shown.text)
    assert [title.text for title in root.findall(".//title")] == ["p & q"]
    assert ["".join(span.itertext()) for span in root.findall(".//span")] == ["a<b"]


@pytest.mark.parametrize("values", [(3.0, 3.0), (0.0, 0.0), (1e-9, 4e-9), (7.0, 7e8), (-3.0, 5.0)])
def test_an_axis_has_marks_inside(values: tuple[float, float]):
    for log in (False, True):
        if log and min(values) <= 0:
            continue
        shown = plot([Series("a", ((1, values[0]), (2, values[1])))], "x", "y", log_y=log)
        assert shown is not None
        marks = re.findall(r'text-anchor="end">([^<]+)<', shown.text)
        assert 1 <= len(marks) <= 30 and len(set(marks)) == len(marks)
        assert all(0 <= y <= 380 for _, y in circles(shown.text))


def test_nothing_has_no_plot_and_no_logarithm():
    assert plot([Series("a", ())], "x", "y") is None
    with pytest.raises(InternalError, match="no place for 0"):
        plot([Series("a", ((0, 1),))], "x", "y", log_x=True)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1500, "1.5k"), (2e6, "2M"), (0.5, "0.5"), (3.2e-5, "32µ"), (1e12, "1T"), (1e6, "1M")]
)
def test_short(value: float, text: str):
    assert short(value) == text


def pixels(figure: str) -> tuple[int, int, np.ndarray]:
    data = base64.b64decode(re.findall(r"base64,([^\"]+)", figure)[0])
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    begin = data.index(b"IDAT") + 4
    size = int.from_bytes(data[begin - 8 : begin - 4], "big")
    rows = np.frombuffer(zlib.decompress(data[begin : begin + size]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return width, height, rows[:, 1:].reshape(height, width, 4)


def test_cells_are_as_strong_as_their_values():
    width, height, cells = pixels(heat_map(np.array([[0, 1, 2], [4, 8, 8]]), "t", "u", color="#102030").text)
    assert (width, height) == (3, 2)
    opaque = cells[:, :, 3].astype(int)
    assert opaque[0, 0] == 0 and opaque[1, 1] == opaque[1, 2] == 255
    assert 0 < opaque[0, 1] < opaque[0, 2] < opaque[1, 0] < 255
    assert cells[0, 1, :3].tolist() == [0x10, 0x20, 0x30]


def test_a_scale_that_is_given_holds():
    _, _, cells = pixels(heat_map(np.array([[5]]), "t", "u", most=10).text)
    assert 100 < cells[0, 0, 3] < 200
    _, _, cells = pixels(heat_map(np.zeros((2, 2)), "t", "u").text)
    assert not cells[:, :, 3].any()


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (251, 4), (1000, 997)])
def test_shrinking_keeps_the_largest(shape: tuple[int, int]):
    values = np.arange(shape[0] * shape[1]).reshape(shape)[::-1]
    cells, step = shrink(values)
    assert max(cells.shape) <= 250 and cells.shape == (-(-shape[0] // step), -(-shape[1] // step))
    for y, x in ((0, 0), (cells.shape[0] - 1, cells.shape[1] - 1)):
        assert cells[y, x] == values[y * step : (y + 1) * step, x * step : (x + 1) * step].max()
