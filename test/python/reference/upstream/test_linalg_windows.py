# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Named convolutions and poolings of `linalg` against scalar loops over their definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

# Loops: n batch, y/x/z places, i/j/k the taps that go with them, c channels, f filters, g groups, m multiplier.
SIZES = dict(n=2, y=7, x=8, z=6, i=3, j=2, k=2, c=3, f=4, g=2, m=2)
TAPS = {"y": "i", "x": "j", "z": "k"}

CONVOLUTIONS = {
    # op: input, filter, output
    "conv_1d": ("y", "i", "y"),
    "conv_2d": ("yx", "ij", "yx"),
    "conv_3d": ("yxz", "ijk", "yxz"),
    "conv_1d_nwc_wcf": ("nyc", "icf", "nyf"),
    "conv_1d_ncw_fcw": ("ncy", "fci", "nfy"),
    "conv_2d_nhwc_hwcf": ("nyxc", "ijcf", "nyxf"),
    "conv_2d_nhwc_fhwc": ("nyxc", "fijc", "nyxf"),
    "conv_2d_nchw_fchw": ("ncyx", "fcij", "nfyx"),
    "conv_2d_ngchw_fgchw": ("ngcyx", "fgcij", "ngfyx"),
    "conv_2d_ngchw_gfchw": ("ngcyx", "gfcij", "ngfyx"),
    "conv_2d_nhwgc_gfhwc": ("nyxgc", "gfijc", "nyxgf"),
    "conv_3d_ndhwc_dhwcf": ("nyxzc", "ijkcf", "nyxzf"),
    "conv_3d_ncdhw_fcdhw": ("ncyxz", "fcijk", "nfyxz"),
    "depthwise_conv_1d_nwc_wc": ("nyc", "ic", "nyc"),
    "depthwise_conv_1d_ncw_cw": ("ncy", "ci", "ncy"),
    "depthwise_conv_1d_nwc_wcm": ("nyc", "icm", "nycm"),
    "depthwise_conv_2d_nhwc_hwc": ("nyxc", "ijc", "nyxc"),
    "depthwise_conv_2d_nchw_chw": ("ncyx", "cij", "ncyx"),
    "depthwise_conv_2d_nhwc_hwcm": ("nyxc", "ijcm", "nyxcm"),
}
POOLINGS = {
    "pooling_nhwc_sum": ("nyxc", "ij", "nyxc"),
    "pooling_nhwc_max": ("nyxc", "ij", "nyxc"),
    "pooling_nhwc_min": ("nyxc", "ij", "nyxc"),
    "pooling_nchw_sum": ("ncyx", "ij", "ncyx"),
    "pooling_nchw_max": ("ncyx", "ij", "ncyx"),
    "pooling_nwc_sum": ("nyc", "i", "nyc"),
    "pooling_nwc_max": ("nyc", "i", "nyc"),
    "pooling_ncw_sum": ("ncy", "i", "ncy"),
    "pooling_ncw_max": ("ncy", "i", "ncy"),
    "pooling_ndhwc_sum": ("nyxzc", "ijk", "nyxzc"),
    "pooling_ndhwc_max": ("nyxzc", "ijk", "nyxzc"),
}


def text_of(op: str, shapes: list[tuple[int, ...]], attributes: str) -> str:
    """A function around one op; the last shape is the output's."""
    types = ["tensor<" + "".join(f"{n}x" for n in shape) + "f32>" for shape in shapes]
    params = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
    return f"""func.func @main({params}) -> {types[2]} {{
      %r = linalg.{op} {attributes} ins(%0, %1 : {types[0]}, {types[1]}) outs(%2 : {types[2]}) -> {types[2]}
      return %r : {types[2]} }}"""


def expected(names, arrays, stride: int, dilation: int, combine) -> np.ndarray:
    """out = combine(out, input, filter), one scalar at a time."""
    source, window, out = arrays
    out = out.copy()
    sizes = dict(zip(names[2], out.shape, strict=True)) | dict(zip(names[1], window.shape, strict=True))
    for point in itertools.product(*map(range, sizes.values())):
        at = dict(zip(sizes, point, strict=True))
        place = {d: at[d] * stride + at[TAPS[d]] * dilation if d in TAPS else at[d] for d in names[0]}
        to = tuple(at[d] for d in names[2])
        out[to] = combine(out[to], source[tuple(place.values())], window[tuple(at[d] for d in names[1])])
    return out


def check(interpret, rng, op, names, stride, dilation, combine):
    """Run one op on small whole numbers, so that sums are exact in any order."""
    small = {d: (SIZES[d] - (SIZES[TAPS[d]] - 1) * dilation - 1) // stride + 1 for d in TAPS}
    shapes = [tuple(SIZES[d] for d in name) for name in names[:2]]
    shapes.append(tuple(small.get(d, SIZES[d]) for d in names[2]))
    arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]
    rank = sum(d in TAPS for d in names[0])
    lists = {
        key: f"dense<{value}> : tensor<{rank}xi64>" for key, value in (("strides", stride), ("dilations", dilation))
    }
    plain = op in ("conv_1d", "conv_2d", "conv_3d")
    attributes = "" if plain else f"{{strides = {lists['strides']}, dilations = {lists['dilations']}}}"
    (got,) = interpret(text_of(op, shapes, attributes), *arrays)
    np.testing.assert_array_equal(got, expected(names, arrays, stride, dilation, combine))


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("op", CONVOLUTIONS)
def test_convolutions(interpret, rng, op, stride, dilation):
    if op in ("conv_1d", "conv_2d", "conv_3d"):
        stride = dilation = 1  # they have neither
    check(interpret, rng, op, CONVOLUTIONS[op], stride, dilation, lambda total, x, w: total + x * w)


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("op", POOLINGS)
def test_pooling(interpret, rng, op, stride, dilation):
    function = {"sum": lambda a, b: a + b, "max": max, "min": min}[op.split("_")[-1]]
    check(interpret, rng, op, POOLINGS[op], stride, dilation, lambda total, x, _: function(total, x))
