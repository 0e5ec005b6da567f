# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels by hand, from text and from Python functions, as callables with checks, prediction and roofline."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import devices
from tilewright.dialects import tile
from tilewright.kernels import tile_type
from tilewright.mlir.dialects import arith
from tilewright.sim.ptx import EmulationError

ROOT = Path(__file__).resolve().parents[3]
AXPY = """
tile.kernel @axpy(%n: index, %a: f32, %x: memref<?x64xf32>, %y: memref<?x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %p = tile.load %x[%i, %c0] : memref<?x64xf32>, !tile.tile<1x64xf32>
  %q = tile.load %y[%i, %c0] : memref<?x64xf32>, !tile.tile<1x64xf32>
  %b = tile.splat %a : f32 -> !tile.tile<1x64xf32>
  %m = arith.mulf %p, %b : !tile.tile<1x64xf32>
  %s = arith.addf %q, %m : !tile.tile<1x64xf32>
  tile.store %s, %y[%i, %c0] : !tile.tile<1x64xf32>, memref<?x64xf32>
  tile.return
}
"""


@tw.kernel
def twice(x: "memref<?x64xf32>", y: "memref<?x64xf32>", i):  # noqa: F722
    """Each task doubles a row."""
    a = tile.load(tile_type(1, 64), x, [i, 0])
    tile.store(arith.addf(a, a), y, [i, 0])


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 64), dtype=np.float32)


@pytest.mark.parametrize("count", [1, 7, 20])
def test_a_kernel_from_a_function_takes_any_number_of_rows(count: int) -> None:
    x, y = rows(count), np.empty((count, 64), np.float32)
    result = twice(x, y, grid=[count])
    assert result["y"] is y
    np.testing.assert_array_equal(y, 2 * x)


def test_torch_tensors_are_used_in_place() -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.from_numpy(rows(3)), torch.empty(3, 64)
    result = twice(x, y, grid=[3])
    assert result["y"] is y and y._version == 1  # as if PyTorch had written it
    torch.testing.assert_close(y, 2 * x)
    with pytest.raises(tw.UserError, match=r"x must be of dtype float32, got float64; convert it with .to\(torch"):
        twice(x.double(), y, grid=[3])


def test_what_is_read_and_written_starts_from_its_values() -> None:
    kernel = tw.kernel(AXPY, grid=lambda n, a, x, y: [len(x)])
    x, y = rows(5), rows(5, seed=1)
    expected = y + np.float32(3.0) * x
    kernel(5, 3.0, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    assert str(kernel.signature) == "axpy(n: index, a: f32, x: ?x64xf32, y: inout ?x64xf32), 1 grid coordinates"


def test_compile_makes_a_kernel_of_text_without_main() -> None:
    kernel = tw.compile(AXPY, "reference")
    assert isinstance(kernel, tw.Kernel) and kernel.name == "axpy"
    assert isinstance(tw.compile(f"// @main launches it\n{AXPY}", "reference"), tw.Kernel)


def test_words_alone_are_no_kernel() -> None:
    """What the text holds counts, not what it says."""
    with pytest.raises(tw.UserError, match="module has no func.func @main to compile"):
        tw.compile("// no tile.kernel here\nfunc.func private @other() -> ()\n")


def test_a_file_with_a_kernel_whose_result_is_made() -> None:
    kernel = tw.kernel(ROOT / "test" / "fixtures" / "gemm_cpu.mlir")
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((37, 70), (2, 70, 32)))
    (c,) = kernel(a, b=b, grid=(2, 5))
    np.testing.assert_allclose(c, np.hstack([a @ b[0], (a @ b[1])[:, :18]]), rtol=1e-4, atol=1e-4)
    assert kernel.check(a, b, grid=(2, 5)) < 1e-5


def test_prediction_and_roofline() -> None:
    kernel = tw.kernel(ROOT / "test" / "fixtures" / "gemm_cpu.mlir", grid=(2, 5), threads=1)
    a, b = np.ones((37, 70), np.float32), np.ones((2, 70, 32), np.float32)
    prediction = kernel.predict(a, b)
    assert prediction.flops == 10 * 70 * 2 * 8 * 32
    assert prediction.bytes == 4 * (37 * 70 + 2 * 70 * 32 + 37 * 50)
    assert 0 < prediction.floor and prediction.bound in ("compute", "memory")
    measured = kernel.roofline(a, b)
    assert measured.seconds > 0 and "of the roofline" in str(measured)
    assert "tile.kernel" in re.sub("<[^>]*>", "", kernel.explain(a, b))


GEMM = """
tile.kernel @gemm(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) grid(%i, %j) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %k = memref.dim %a, %c1 : memref<?x?xbf16>
  %z = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %m = arith.muli %i, %c64 : index
  %n = arith.muli %j, %c64 : index
  %s = scf.for %p = %c0 to %k step %c64 iter_args(%acc = %z) -> !tile.tile<64x64xf32> {
    %x = tile.load %a[%m, %p] : memref<?x?xbf16>, !tile.tile<64x64xbf16>
    %y = tile.load %b[%p, %n] : memref<?x?xbf16>, !tile.tile<64x64xbf16>
    %q = tile.mma %x, %y, %acc : !tile.tile<64x64xbf16>, !tile.tile<64x64xbf16>, !tile.tile<64x64xf32>
    scf.yield %q : !tile.tile<64x64xf32>
  }
  tile.store %s, %c[%m, %n] : !tile.tile<64x64xf32>, memref<?x?xf32>
  tile.return
}
"""


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_product_by_hand_on_a_gpu(arch: str) -> None:
    kernel = tw.kernel(GEMM, target=f"cuda:{arch}", emulate=True)
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((128, 192), (192, 64)))
    c = np.empty((128, 64), np.float32)
    assert kernel.check(a, b, c, grid=[2, 1]) < 1e-5
    with pytest.raises(tw.UnsupportedError, match=r"no clock; .* predict\(\) says: .* FLOP"):
        kernel.roofline(a, b, c, grid=[2, 1])
    with pytest.raises(EmulationError, match="reads 32768 bytes of output c .* no task writes that part"):
        kernel(a, b, c, grid=[1, 1])
    big = np.empty((8192, 8192), ml_dtypes.bfloat16)
    prediction = kernel.predict(big, big, np.empty((8192, 8192), np.float32), grid=[128, 128])
    assert prediction.flops == 2 * 8192**3 and prediction.bound == "compute"
    units = devices.get(f"cuda:{arch}").units
    peak = dict(units.peak)
    assert peak["bf16"] > 4 * peak["f32"]
    assert prediction.floor == pytest.approx(prediction.flops / (peak["bf16"] * units.count))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_function_that_builds_a_kernel_for_a_gpu(arch: str) -> None:
    kernel = tw.kernel(twice_of_rows, target=f"cuda:{arch}", emulate=True)
    x, y = rows(7), np.empty((7, 64), np.float32)
    np.testing.assert_array_equal(kernel(x, y, grid=[7])["y"], 2 * x)


def twice_of_rows(x: "memref<?x64xf32>", y: "memref<?x64xf32>", i):  # noqa: F722
    """Each task doubles a row."""
    a = tile.load(tile_type(1, 64), x, [i, 0])
    tile.store(arith.addf(a, a), y, [i, 0])


def test_annotations_that_are_not_postponed() -> None:
    text = (
        'def copied(x: "memref<8xf32>", y: "memref<8xf32>"):\n  tile.store(tile.load(tile_type(8), x, [0]), y, [0])\n'
    )
    names: dict[str, Any] = {"tile": tile, "tile_type": tile_type}
    exec(compile(text, __file__, "exec", dont_inherit=True), names)
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(tw.kernel(names["copied"], target="reference")(x, np.empty_like(x))[0], x)


def test_a_chosen_kernel_among_several_on_the_interpreter() -> None:
    text = AXPY + AXPY.replace("@axpy", "@other")
    with pytest.raises(tw.UserError, match=r"several kernels, choose one with name=: axpy, other"):
        tw.kernel(text)
    kernel = tw.kernel(text, name="other", target="reference", grid=[2])
    x, y = rows(2), np.zeros((2, 64), np.float32)
    kernel(2, 0.5, x, y)
    np.testing.assert_array_equal(y, np.float32(0.5) * x)
    with pytest.raises(tw.UserError, match="only compiled kernels have times"):
        kernel.predict(2, 0.5, x, y)


X = rows(3)
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: twice(X, grid=[3]), "y is missing"),
    (lambda: twice(X, X.copy()), "give the bounds with grid="),
    (lambda: twice(X, X.copy(), grid=[1, 2]), r"grid=\[1, 2\] does not fit"),
    (lambda: twice(X, X.copy(), grid=[-1]), r"grid=\[-1\] does not fit"),
    (lambda: twice(X.astype(float), X.copy(), grid=[3]), "x must be of dtype float32, got float64"),
    (lambda: twice(X, X[:, :3].copy(), grid=[3]), r"y does not fit an array of shape \[3, 3\]"),
    (lambda: twice(X, X[::-1], grid=[3]), "must be C-contiguous and writeable"),
    (lambda: twice(X, z=1, grid=[3]), "no argument 'z' is left"),
    (lambda: twice(X, X, X, grid=[3]), "got 3 arguments"),
    (lambda: twice([1.0], X, grid=[3]), "x must be a NumPy array( or torch tensor)?, got a list"),
    (lambda: twice(X, X, grid=[3]), "overlaps an input"),
    (lambda: tw.kernel(AXPY)(X, 1.0, X, X.copy(), grid=[3]), "n is a scalar, got an array"),
    (lambda: tw.kernel("no/such/file.mlir"), "there is no kernel file"),
    (lambda: tw.kernel("module {\n}\n"), "the text has no tile.kernel"),
    (lambda: tw.kernel(AXPY, name="nonsense"), "no kernel 'nonsense'; it has axpy"),
    (lambda: tw.kernel("tile.kernel @k( {\n"), "not a valid MLIR module"),
    (lambda: tw.kernel(3), "not a int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(tw.UserError, match=message):
        call()


def test_functions_that_build_no_kernel_are_refused() -> None:
    def wrong_type(x: "memref<8xnonsense>") -> None:  # type: ignore[valid-type]  # noqa: F722
        pass

    def no_text(x: int) -> None:
        pass

    for function, message in ((wrong_type, "not an MLIR type"), (no_text, "annotate x with an MLIR type")):
        with pytest.raises(tw.UserError, match=message):
            tw.kernel(function)


def test_targets_that_there_are_not_are_refused_at_once() -> None:
    with pytest.raises(tw.UserError, match="sm_70 is too old"):
        tw.kernel(GEMM, target="cuda:sm_70", emulate=True)
    with pytest.raises(tw.UserError, match="the target must be cuda:sm_80"):
        tw.kernel(GEMM, emulate=True)


def test_the_example_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "python" / "tilewright" / "kernels" / "README.md").read_text()
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(textwrap.dedent(code), "README.md", "exec", dont_inherit=True), names)
    assert "of the roofline" in capsys.readouterr().out
