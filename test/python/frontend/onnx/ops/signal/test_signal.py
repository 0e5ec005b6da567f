# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fourier transforms, windows and mel filters beside ONNX Runtime and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from support import check_numbers, feeds, import_onnx, interpret, node_model, normalize

from tilewright.core.errors import UserError

_RANDOM = np.random.default_rng(12)


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def run(op, *inputs, opset=20, known=(), **options):
    """Our results, before and after normalizing."""
    model = node_model(op, inputs, opset=opset, known=known, **options)
    imported = import_onnx(model)
    first = interpret(imported, feeds(model, inputs))
    second = interpret(normalize(imported), feeds(model, inputs))
    np.testing.assert_allclose(first[0], second[0], rtol=1e-5, atol=1e-5)
    return first[0]


def spectrum(x, length, axis, inverse=False, onesided=False):
    """NumPy's answer in ONNX's layout."""
    values = (x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]).astype(np.complex128)
    if inverse and onesided:
        return np.fft.irfft(values, length, axis)[..., None]
    if inverse:
        y = np.fft.ifft(values, length, axis)
    else:
        y = np.fft.rfft(values.real, length, axis) if onesided else np.fft.fft(values, length, axis)
    return np.stack([y.real, y.imag], -1)


@pytest.mark.parametrize("size", [1, 2, 5, 8, 12, 67, 90, 128, 384, 1000, 1031])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("inverse", "onesided"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_dft_sizes(size, parts, inverse, onesided):
    if onesided and parts != 1 + inverse:
        return
    length = size if size > 1 else 2
    x = random(2, length // 2 + 1 if inverse and onesided else length, parts)
    y = run("DFT", x, np.array(length), np.array(1), known=[1, 2], inverse=inverse, onesided=onesided)
    expected = spectrum(x, length, 1, bool(inverse), bool(onesided))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
@pytest.mark.parametrize("known", [[], [2]])
@pytest.mark.parametrize(("inverse", "onesided"), [(0, 0), (1, 0), (0, 1)])
def test_dft_axes(axis, known, inverse, onesided):
    x = random(3, 4, 5, 1)
    y = run("DFT", x, None, np.array(axis), known=known, inverse=inverse, onesided=onesided)
    expected = spectrum(x, None, axis % 4, bool(inverse), bool(onesided))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [3, 7, 100, 200])
@pytest.mark.parametrize("known", [[], [1], [2], [1, 2]])
@pytest.mark.parametrize(("inverse", "onesided"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_dft_lengths(length, known, inverse, onesided):
    x = random(2, 7, 1 if onesided and not inverse else 2)
    y = run("DFT", x, np.array(length), np.array(1), known=known, inverse=inverse, onesided=onesided)
    np.testing.assert_allclose(y, spectrum(x, length, 1, bool(inverse), bool(onesided)), rtol=1e-4, atol=1e-4)


def test_dft_before_opset_20():
    x = random(2, 6, 5, 2)
    np.testing.assert_allclose(run("DFT", x, opset=17, axis=2), spectrum(x, 5, 2), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run("DFT", x, opset=17), spectrum(x, 6, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_dft_types(dtype):
    x = random(2, 6, 2, dtype=dtype)
    y = run("DFT", x)
    assert y.dtype == dtype
    tolerance = 1e-12 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(y, spectrum(x, 6, 1), rtol=tolerance, atol=tolerance)


def test_dft_wrong_axis():
    with pytest.raises(UserError, match="parts of complex numbers"):
        run("DFT", random(2, 6, 2), None, np.array(-1), known=[2])


@pytest.mark.parametrize("known", [[], [1], [1, 3]])
@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("parts", ["window", "length", "both", "none"])
def test_stft(known, onesided, parts):
    x, step = random(2, 50, 1), np.array(7)
    window = random(16) if parts in ("window", "both") else None
    length = np.array(16) if parts in ("length", "both") else None
    inputs = [x, step, window, length]
    while inputs[-1] is None:
        inputs.pop()
    known = [i for i in known if i < len(inputs)]
    y = run("STFT", *inputs, opset=17, known=known, onesided=onesided)
    size = 50 if parts == "none" else 16
    frames = np.stack([x[:, s : s + size, 0] for s in range(0, 50 - size + 1, 7)], 1)
    frames = frames * (1.0 if window is None else window)
    expected = np.fft.fft(frames)[..., : size // 2 + 1 if onesided else size]
    np.testing.assert_allclose(y, np.stack([expected.real, expected.imag], -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("known", [[], [0]])
def test_windows(op, periodic, known):
    for dtype in (np.int32, np.int64):
        size = np.array(10, dtype)
        model = node_model(op, [size], known=known, periodic=periodic)
        check_numbers(model, feeds(model, [size]))


def test_window_types():
    y = run("HannWindow", np.array(9), opset=17, output_datatype=11)
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, np.sin(np.arange(9) * np.pi / 9) ** 2, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("known", [[], [0, 1], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize(
    "values", [(8, 16, 8192, 0.0, 4096.0), (10, 64, 16000, 100.0, 8000.0), (3, 33, 8000, 20.0, 300.0)]
)
def test_mel_filters(known, values):
    kinds = (np.int32, np.int64, np.int64, np.float32, np.float32)
    inputs = [np.array(v, kind) for v, kind in zip(values, kinds, strict=True)]
    model = node_model("MelWeightMatrix", inputs, known=known)
    expected = np.asarray(ReferenceEvaluator(model).run(None, feeds(model, inputs))[0])
    y = run("MelWeightMatrix", *inputs, opset=17, known=known)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
