"""explain(): the page is self-contained, escapes what it shows, and tells of every kernel, group, phase and remark."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.report import ir_text
from tilewright.report.html import bar, quantity, seconds, table
from tilewright.report.measure import Launch, Measurement, measure_model
from tilewright.report.page import page
from tilewright.report.roofline import bound_by, floor_seconds
from tilewright.runtime import KernelInfo, Manifest, Outputs, TensorSpec

DEVICE = {
    "name": "host",
    "kind": "cpu",
    "source": "detected",
    "units": {"count": 2, "vector_bits": 512, "registers": 32, "frequency": 2e9, "peak": {"f32": 100e9}},
    "levels": [
        {"name": "register", "kind": "register", "bytes": 2048, "bandwidth": 500e9},
        {"name": "l2", "kind": "cache", "bytes": 2 << 20, "bandwidth": 100e9},
        {"name": "memory", "kind": "addressable", "bytes": 1 << 34, "bandwidth": 20e9},
    ],
}
MATMUL = {"flops": 4e9, "bytes": 1e6, "shapes": ["memref<128x384xf32>"], "locations": ["/layer.0/MatMul", "/layer.1"]}
REPORT = {
    "phases": [
        {"name": "import", "seconds": 0.5, "passes": [], "ir_bytes": 9, "ir": "a <b> & c"},
        {
            "name": "plan",
            "seconds": 1.5,
            "passes": [["canonicalize", 0.1], ["cse", 0.4]],
            "ir_bytes": 5000,
            "ir": '%0 = tile.group "l2" @f',
        },
    ],
    "groups": [
        {
            "name": "",
            "level": "l2",
            "results": ["tensor<128x384xf32>"],
            "ops": [
                {
                    "op": "linalg.generic",
                    "location": "/layer.0/<MatMul>",
                    "results": "tensor<128x384xf32>",
                    "body": "arith.mulf arith.addf",
                    "decisions": "tile.rtile = #tile.rtile<l2 = [128, 32]>",
                }
            ],
        }
    ],
    "kernel_text": {"matmul_1": "tile.kernel @matmul_1() {\n}"},
    "remarks": [{"phase": "tile", "severity": "remark", "message": "copy kept", "location": "loc(x)"}],
    "device": DEVICE,
}


def model():
    manifest = Manifest(
        inputs=(TensorSpec("x<y", "f32", (1, 2)),),
        outputs=(TensorSpec("out", "f32", ()),),
        kernels=(
            KernelInfo("softmax_0", "softmax_0", 3, 12, 64),
            KernelInfo("matmul_1", "matmul_1", 2, None, 4096, MATMUL),
        ),
        cpu="znver5",
        producer="tilewright test",
        compile={"model": "mini & co", "seconds": {"import": 0.5, "plan": 1.5}},
    )
    return SimpleNamespace(
        _manifest=manifest,
        kernels=manifest.kernels,
        inputs=manifest.inputs,
        outputs=manifest.outputs,
        target="cpu",
        threads=2,
        runs_on="2 thread(s)",
        path=SimpleNamespace(name="m.tw"),
        held_bytes={"weights": 90_900_000, "arena": 1_500_000},
    )


MEASURED = Measurement(0.060, 5, 2, (Launch("softmax_0", 12, 0.001), Launch("matmul_1", 4, 0.05)))


class Checker(HTMLParser):
    """Fails on tags that are not balanced and on references to other files."""

    VOID = {"meta", "br", "link"}

    def __init__(self):
        super().__init__()
        self.open = []
        self.text = ""

    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe"), tag
        assert not {"src", "href", "onload"} & {name for name, _ in attributes}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(text):
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert "@import" not in text and "url(" not in text
    return checker.text


def test_page():
    text = read(page(model(), REPORT, MEASURED))
    for part in (
        "mini & co",
        "x<y",
        "a <b> & c",
        "/layer.0/<MatMul>",
        "copy kept",
        "cpu (znver5)",
        "60 ms",
        "90.9 MB",
    ):
        assert part in text, part
    assert "2 lines of tile IR" in text and "tile.kernel @matmul_1() {" in text
    assert "#tile.rtile<l2 = [128, 32]>" in text
    assert re.search(r"\d kB more; --dump-ir", text)
    # the slower kernel comes first; work and floor of its two launches; 4 GFLOP / (2 x 100 GFLOP/s) = 20 ms each
    row = text[text.index("matmul_1") : text.index("softmax_0")]
    assert "8 GFLOP" in row and "40 ms" in row and "compute" in row and "80%" in row


def test_page_without_measuring_or_report():
    text = read(page(model(), {}, None))
    assert "was not run" in text and "Phases" not in text and "softmax_0" in text


def test_roofline():
    assert floor_seconds(200e9, 1000, DEVICE, threads=1) == pytest.approx(2.0)
    assert floor_seconds(200e9, 1000, DEVICE, threads=8) == pytest.approx(1.0)
    assert floor_seconds(1, 1e6, DEVICE, threads=1) == pytest.approx(1e-5)
    assert floor_seconds(1, 40e9, DEVICE, threads=2) == pytest.approx(1.0)
    assert floor_seconds(1, 1, {}, threads=1) is None
    assert (bound_by(1e9, 10, DEVICE), bound_by(1, 1e6, DEVICE), bound_by(1, 1, {})) == ("compute", "memory", "")


def test_units():
    assert [seconds(v) for v in (None, 2.5, 0.0125, 3.2e-6)] == ["–", "2.5 s", "12.5 ms", "3.2 µs"]
    assert [quantity(v, "B") for v in (0, 999, 1500, 2.5e6, 3e9)] == ["0 B", "999 B", "1.5 kB", "2.5 MB", "3 GB"]
    assert "width:100.0%" in bar(7).text and "width:0.0%" in bar(-1).text
    assert "&lt;i&gt;" in table(["<i>"], [["<i>"]]).text


def test_ir_is_colored_and_escaped():
    text = ir_text.highlight('%0 = linalg.generic @f <&> "x"').text
    assert '<span class="v">%0</span>' in text and '<span class="o">linalg.generic</span>' in text
    assert "&lt;&amp;&gt;" in text and read(f"<pre>{text}</pre>") == '%0 = linalg.generic @f <&> "x"'
    assert "<span" not in ir_text.highlight("%x " * 100_000).text


def test_measure():
    calls = []

    class Fake:
        inputs = (TensorSpec("x", "f32", (3,)), TensorSpec("i", "i64", (2,)))
        outputs = (TensorSpec("y", "f64", (2,)),)
        threads = 1

        def __call__(self, *args, out=None):
            calls.append(args)
            return Outputs([np.zeros(2)], ("y",))

        def profile(self, *args):
            return [("k", 4, 1000), ("k", 4, 3000)]

    measured = measure_model(Fake())
    assert measured.per_kernel() == {"k": pytest.approx(4e-6)} and 3 <= measured.runs <= 15
    assert calls[0][0].dtype == np.float32 and set(calls[0][1]) <= {0, 1}
    assert dataclasses.replace(measured, threads=2).launches == measured.launches
