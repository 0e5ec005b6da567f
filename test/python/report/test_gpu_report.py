# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page about a model for a GPU: what the plan predicts of each kernel, against the roofline of its device."""

from __future__ import annotations

import re
from types import SimpleNamespace

import onnx
import pytest
from onnx import TensorProto, helper

import tilewright
from tilewright import devices
from tilewright.report import render
from tilewright.report.gpu_kernels import predicted_on_gpu
from tilewright.report.measure import Launch, Measurement
from tilewright.report.page import page
from tilewright.report.roofline import bound_by, floor_seconds
from tilewright.runtime import KernelInfo, Manifest

DEVICE = devices.get("nvidia-h100").to_dict()
PRODUCT = {
    "ns": 20_000,
    "bound": "compute",
    "roofline_ns": 15_000,
    "l2_bytes": 90_000_000,
    "memory_bytes": 30_000_000,
    "operations": 17_000_000_000,
    "occupancy": 2,
    "shape": "128x256x64",
    "candidates": 40,
    "runner_up": "128x128x64",
    "runner_up_ns": 22_000,
}
NORM = {"ns": 50_000, "bound": "memory", "roofline_ns": 10_000, "memory_bytes": 1e8, "operations": 1e6, "occupancy": 8}


def model():
    manifest = Manifest(
        inputs=(),
        outputs=(),
        kernels=(
            KernelInfo("product", "product", 3, 256, 0, {"plan": PRODUCT, "registers": 168, "bytes": 1, "flops": 1}),
            KernelInfo("norm", "norm", 1, 64, 0, {"plan": NORM, "spilled_bytes": 64}),
            KernelInfo("byhand", "byhand", 1, 1, 0, {"bytes": 3.35e9, "flops": 1e6}),
        ),
        target="cuda:sm_90a",
        cpu="sm_90a",
        producer="tilewright test",
        compile={"model": "mini", "seconds": {"plan": 1.0}},
    )
    return SimpleNamespace(
        _manifest=manifest,
        kernels=manifest.kernels,
        inputs=(),
        outputs=(),
        target="cuda:sm_90a",
        threads=132,
        runs_on="on a GPU",
        path=SimpleNamespace(name="m.tw"),
        held_bytes={"weights": 1, "arena": 1},
    )


def rows(text):
    """The table of kernels as lists of texts."""
    table = text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]


def plain(cell):
    return re.sub(r"<[^>]+>", " ", cell).split()


def test_what_is_furthest_from_its_limit_comes_first():
    """By what is lost in all launches: 40 us, then 15 us; a kernel without a prediction last."""
    text = page(model(), {"device": DEVICE}, None)
    found = rows(text)
    assert [plain(row[0])[0] for row in found] == ["norm", "product", "byhand"]
    assert "Predicted in all: 110 µs" in text and "Nothing was measured" in text
    assert "<b>110 µs</b><span>predicted, all kernels" in text


def test_a_row_tells_time_bytes_tiles_occupancy_and_roofline():
    """Of three launches together."""
    cells = [plain(cell) for cell in rows(page(model(), {"device": DEVICE}, None))[1]]
    assert cells[1] == ["3", "256", "tasks"]
    assert cells[2] == ["51", "GFLOP", "850", "TFLOP/s"]
    assert cells[3] == ["90", "MB", "L2", "270", "MB"]
    assert cells[4] == ["60", "µs", "compute"]
    assert cells[5] == ["128x256x64", "next", "of", "40", "candidates:", "128x128x64,", "+10%"]
    assert cells[6] == ["2", "CTAs", "168", "registers"]
    assert cells[7:] == [["45", "µs"], ["75%"], ["15", "µs"]]


def heads(text):
    """The names of the columns of the table of kernels."""
    return re.findall(r"<th[^>]*>(.*?)</th>", text.partition("<tbody>")[0])


def test_only_what_was_measured_has_a_column_for_it():
    """Without a GPU the page is about predictions: an empty column would push the last one out of sight."""
    assert "measured" not in heads(page(model(), {"device": DEVICE}, None))
    launches = (Launch("norm", 64, 11e-6), Launch("product", 256, 90e-6))
    assert heads(page(model(), {"device": DEVICE}, Measurement(1.2e-4, 5, 132, launches)))[5] == "measured"


def test_the_strip_shows_predicted_launches_in_order():
    """As wide as the plan's time of one launch; none where groups and launches do not agree."""
    order = ["product", "norm", "product", "byhand", "product"]
    groups = [{"name": "g", "kernel": name, "ops": [], "level": "", "results": []} for name in order]
    found = re.findall(r'flex:([\d.]+)[^>]*title="(\w+):', page(model(), {"device": DEVICE, "groups": groups}, None))
    assert [name for _, name in found] == order
    assert [float(width) for width, _ in found] == [20.0, 50.0, 20.0, 0.0, 20.0]
    assert "flex:" not in page(model(), {"device": DEVICE, "groups": groups[1:]}, None)


def test_the_head_tells_whose_description_the_plan_is_made_for():
    assert "compiled for cuda:sm_90a, planned for nvidia-h100" in page(model(), {"device": DEVICE}, None)


def test_measured_times_take_the_place_of_predicted_ones():
    """Then the product is what loses most."""
    launches = (Launch("norm", 64, 11e-6), Launch("product", 256, 90e-6))
    text = page(model(), {"device": DEVICE}, Measurement(1.2e-4, 5, 132, launches))
    found = [[plain(cell) for cell in row] for row in rows(text)]
    assert [row[0][0] for row in found] == ["product", "norm", "byhand"]
    assert found[0][5] == ["90", "µs"] and found[0][9] == ["50%"]
    assert "measured: 101 µs" in text and "per call, on a GPU" in text


def test_the_roofline_of_a_kernel_by_hand_is_that_of_the_whole_gpu():
    """Memory serves all multiprocessors together: its bandwidth is not one for each."""
    assert floor_seconds(1, 3.35e9, DEVICE, threads=132) == pytest.approx(1e-3)
    assert floor_seconds(132 * 4.6848e11, 1, DEVICE, threads=1) == pytest.approx(1.0)
    assert bound_by(1e6, 3.35e9, DEVICE) == "memory"


def test_the_device_is_told_as_a_whole():
    """Peaks of all multiprocessors."""
    text = page(model(), {"device": DEVICE}, None)
    assert "132 multiprocessors, peak of all: bf16 989 TFLOP/s" in text


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_compiled_model_brings_its_predictions(target):
    """A product and a softmax: every kernel has its row."""
    sizes = {"x": [256, 512], "w": [512, 256], "z": [64, 1000], "y": [256, 256], "s": [64, 1000]}
    kinds = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT16, shape) for n, shape in sizes.items()}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Softmax", ["z"], ["s"], axis=-1)]
    graph = helper.make_graph(nodes, "g", [kinds[n] for n in "xwz"], [kinds["y"], kinds["s"]])
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(given)
    compiled = tilewright.compile(given, target=target, emulate=True)
    assert len(compiled.kernels) == 2 and all(predicted_on_gpu(kernel) for kernel in compiled.kernels)
    for kernel in compiled.kernels:
        plan = kernel.details["plan"]
        assert 0 < plan["roofline_ns"] <= plan["ns"], "nothing is faster than the roofline"
    found = rows(render(compiled, measure=False))
    assert len(found) == len(compiled.kernels) and all(plain(row[8])[0].endswith("%") for row in found)
