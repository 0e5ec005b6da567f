# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DLPack capsules by ctypes, against NumPy's own implementation: contents, lifetimes, capsules that nobody consumes."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime import dlpack

NUMPY_TYPES = [n for n in dlpack.TYPES if n not in ("bf16",) and not n.startswith("f8")]


class Owner:
    """Exports an array's memory through our capsules."""

    def __init__(self, array, versioned):
        self.array = array
        self.versioned = versioned

    def __dlpack_device__(self):
        return (dlpack.CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        version = max_version if self.versioned else None
        dtype = from_numpy(self.array.dtype)
        return dlpack.write(self, (dlpack.CPU, 0), self.array.ctypes.data, dtype, self.array.shape, version)


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_numpy_arrays_are_read(name):
    from tilewright.core.dtypes import to_numpy

    array = np.arange(24).reshape(2, 3, 4).astype(to_numpy(name))[:, ::2]
    found = dlpack.read(array)
    assert (found.dtype, found.shape, found.device) == (name, (2, 2, 4), (dlpack.CPU, 0))
    assert found.address == array.ctypes.data
    assert tuple(step * array.itemsize for step in found.strides) == array.strides


def test_reading_keeps_the_memory():
    array = np.ones(1000)
    alive = weakref.ref(array)
    found = dlpack.read(array)
    del array
    gc.collect()
    assert alive() is not None
    del found
    gc.collect()
    assert alive() is None


def test_read_only_arrays():
    array = np.ones(3)
    array.flags.writeable = False
    try:
        found = dlpack.read(array)
    except UserError as error:  # NumPy before 2.1 refuses
        assert "read-only" in str(error) or "readonly" in str(error)
    else:
        assert found.read_only


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("shape", [(), (5,), (2, 0, 3), (2, 3, 4)])
def test_numpy_reads_ours(versioned, shape):
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    owner = Owner(array, versioned)
    alive = weakref.ref(owner)
    result = np.from_dlpack(owner)
    np.testing.assert_array_equal(result, array)
    if array.size:
        assert result.ctypes.data == array.ctypes.data
    del owner
    gc.collect()
    assert alive() is not None, "the reader holds the owner"
    del result
    gc.collect()
    assert alive() is None
    assert not dlpack._exported


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_that_nobody_consumes_frees_its_owner(versioned):
    owner = Owner(np.ones(4), versioned)
    capsule = owner.__dlpack__(max_version=(1, 0))
    assert dlpack._exported
    del capsule
    assert not dlpack._exported


@pytest.mark.parametrize("versioned", [False, True])
def test_ours_are_read_by_ours(versioned):
    array = np.ones((4, 2), ml_dtypes.bfloat16)
    found = dlpack.read(Owner(array, versioned))
    assert (found.dtype, found.shape, found.strides, found.address) == ("bf16", (4, 2), (2, 1), array.ctypes.data)
    del found
    gc.collect()
    assert not dlpack._exported


def test_what_cannot_be_read():
    class Refuses:
        def __dlpack__(self, **_):
            raise BufferError("on the moon")

    class Wrong:
        def __dlpack__(self, **_):
            return gc  # no capsule

    with pytest.raises(UserError, match="on the moon"):
        dlpack.read(Refuses())
    with pytest.raises(UserError, match="no capsule"):
        dlpack.read(Wrong())
    with pytest.raises(UnsupportedError, match="no element type i4"):
        dlpack.write(None, (1, 0), 0, "i4", ())


def test_foreign_element_types(monkeypatch):
    owner = Owner(np.ones(3, np.float32), True)
    monkeypatch.delitem(dlpack._NAMES, (2, 32))
    with pytest.raises(UnsupportedError, match=r"= \(2, 32, 1\)"):
        dlpack.read(owner)
    assert not dlpack._exported
