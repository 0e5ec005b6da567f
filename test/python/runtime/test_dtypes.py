# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types: their names, their bytes in files, and what compiled code holds of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.core import dtypes, safetensors
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime import interop

ALL = [dtypes.to_numpy(name) for name in dtypes.NAMES]
INT4, UINT4, BF16 = (np.dtype(t) for t in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.bfloat16))


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_names_are_unique(name):
    assert dtypes.from_numpy(dtypes.to_numpy(name)) == name


@pytest.mark.parametrize("dtype", [np.dtype("S3"), np.dtype("O"), np.dtype("M8[s]"), np.dtype(">f4")], ids=str)
def test_other_types_are_refused(dtype):
    with pytest.raises(UnsupportedError):
        dtypes.from_numpy(dtype)
    with pytest.raises(UnsupportedError, match="unknown element type 'f7'"):
        dtypes.to_numpy("f7")


@pytest.mark.parametrize("dtype", ALL, ids=lambda d: d.name)
def test_files_keep_every_type(dtype, tmp_path):
    codes = np.arange(48, dtype=np.uint8) % (2 if dtype == np.bool_ else 4)
    arrays = {"x": codes.view(dtype).reshape(3, -1), "scalar": codes[: dtype.itemsize].view(dtype)[0:1].reshape(())}
    with open(tmp_path / "f", "wb") as file:
        safetensors.write(file, arrays)
    back = safetensors.read(tmp_path / "f")
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == dtype and back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()


def test_files_are_those_of_the_format(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    arrays = {
        "a": np.ones(3, ml_dtypes.float8_e4m3fnuz),
        "b": np.ones((2, 2), np.complex128),
        "c": np.ones(2, np.uint16),
    }
    with open(tmp_path / "f", "wb") as file:
        safetensors.write(file, arrays)
    theirs = library.load_file(tmp_path / "f")
    assert theirs["b"].tobytes() == arrays["b"].tobytes() and theirs["c"].dtype == np.uint16


def test_small_integers_are_whole_bytes_in_compiled_code():
    x = np.array([-8, -1, 0, 7], INT4)
    np.testing.assert_array_equal(dtypes.stored(x), np.array([-8, -1, 0, 7], np.int8))
    loose = np.array([0xF8, 0x1F, 0x30], np.uint8)
    np.testing.assert_array_equal(dtypes.stored(loose.view(UINT4)), [8, 15, 0])
    given = dtypes.presented(np.array([-8, -1, 7], np.int8), INT4)
    np.testing.assert_array_equal(given.view(np.uint8), [8, 15, 7])
    out = np.array([-8, -1, 7], np.int8).view(INT4)
    dtypes.make_canonical(out)
    np.testing.assert_array_equal(out.view(np.uint8), [8, 15, 7])


def test_other_arrays_are_passed_as_they_are():
    for dtype in (np.dtype(np.float32), BF16, np.dtype(ml_dtypes.float8_e5m2)):
        x = np.ones(3, dtype)
        assert dtypes.stored(x) is x and not dtypes.is_small(dtype)
    signed = np.array([-1, 5], np.int8)
    np.testing.assert_array_equal(dtypes.presented(signed, np.dtype(np.uint8)), [255, 5])


def test_rounding_is_done_once():
    middle = np.array([1 + 2.0**-8, 1 + 2.0**-8 + 2.0**-40, np.inf, 1e300, 1e-300])
    want = np.array([1, 1 + 2.0**-7, np.inf, np.inf, 0])
    np.testing.assert_array_equal(dtypes.rounded(middle, BF16).astype(np.float64), want)
    assert np.isnan(dtypes.rounded(np.array([np.nan]), BF16)[0])
    np.testing.assert_array_equal(dtypes.rounded(np.float64(3.5), BF16), BF16.type(3.5))


@pytest.mark.parametrize("dtype", [BF16, INT4, np.dtype(np.complex64), np.dtype(np.uint8)], ids=str)
def test_python_numbers(dtype):
    array, export = interop.to_numpy([1, 2], "x", dtype)
    assert array.dtype == dtype and export is None
    np.testing.assert_array_equal(array.astype(np.complex128), [1, 2])


@pytest.mark.parametrize("value,dtype", [([1.5], INT4), ([1j], BF16), (["a"], BF16), ([100], INT4), ([-1], UINT4)])
def test_python_numbers_that_do_not_fit(value, dtype):
    with pytest.raises(UserError, match=f"input x expects {dtype.name} values"):
        interop.to_numpy(value, "x", dtype)
