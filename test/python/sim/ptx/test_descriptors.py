# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix descriptors, swizzles and tensor maps: beside the examples of the PTX ISA, and each beside the other."""

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.sim.ptx.memory.descriptors import MatrixDescriptor
from tilewright.sim.ptx.memory.swizzle import swizzle
from tilewright.sim.ptx.memory.tensor_map import TensorMap


def _exact(shape, strides):
    """A CuTe layout of nested modes as an array of offsets: modes are flattened, first index fastest."""
    modes = []
    for sizes, steps in zip(shape, strides, strict=True):
        index = np.zeros(1, int)
        for size, step in zip(sizes, steps, strict=True):
            index = (index[None, :] + np.arange(size)[:, None] * step).ravel()
        modes.append(index)
    return modes[0][:, None] + modes[1][None, :]


@pytest.mark.parametrize(
    "mode, leading, stride, size, k_major, shape, strides",
    [  # the examples of PTX ISA 9.7.15.5.1.2.1.3, in elements
        (0, 256, 128, 4, True, ((8, 2), (4, 4)), ((4, 32), (1, 64))),
        (32, 16, 256, 4, True, ((8, 2), (4, 2)), ((8, 64), (1, 4))),
        (0, 256, 128, 2, False, ((8, 1, 2), (8, 2)), ((1, 8, 64), (8, 128))),
        (32, 256, 512, 2, False, ((8, 2, 2), (8, 2)), ((1, 8, 128), (16, 256))),
        (64, 512, 1024, 2, False, ((8, 4, 2), (8, 2)), ((1, 8, 256), (32, 512))),
    ],
)
def test_canonical_layouts(mode, leading, stride, size, k_major, shape, strides):
    expected = swizzle(4096 + size * _exact(shape, strides), mode)
    found = MatrixDescriptor(4096, leading, stride, 0, mode).addresses(*expected.shape, size, k_major)
    np.testing.assert_array_equal(found, expected)


def test_descriptor_there_and_back():
    descriptor = MatrixDescriptor(0x3C400, 16, 1024, 5, 128)
    assert MatrixDescriptor.decode(descriptor.encode()) == descriptor
    assert descriptor.encode() >> 62 == 1
    with pytest.raises(ValueError, match="outside its fields"):
        MatrixDescriptor.decode(1 << 14)


def test_advance_along_k_within_a_swizzled_row():
    """CUTLASS steps along k by adding 32 bytes to the start: the addresses are those of the later columns."""
    whole = MatrixDescriptor(8192, 16, 1024, 0, 128).addresses(64, 64, 2)
    for step in range(4):
        part = MatrixDescriptor(8192 + 32 * step, 16, 1024, 0, 128).addresses(64, 16, 2)
        np.testing.assert_array_equal(part, whole[:, 16 * step : 16 * step + 16])


def test_base_offset_moves_the_pattern():
    """A matrix that starts three rows after a multiple of 1024, with base offset 3, has an aligned one's pattern."""
    aligned = MatrixDescriptor(2048, 16, 1024, 0, 128).addresses(8, 16, 2)
    moved = MatrixDescriptor(2048 + 3 * 128, 16, 1024, 3, 128).addresses(8, 16, 2)
    np.testing.assert_array_equal(moved - moved[0, 0], aligned - aligned[0, 0])


@pytest.mark.parametrize("mode", [32, 64, 128])
def test_swizzle_is_its_own_inverse_and_stays_in_its_pattern(mode):
    addresses = np.arange(4096)
    moved = swizzle(addresses, mode)
    np.testing.assert_array_equal(swizzle(moved, mode), addresses)
    np.testing.assert_array_equal(moved // mode, addresses // mode)
    period = 8 * mode  # bytes after which the pattern repeats
    np.testing.assert_array_equal(moved[:period] + period, moved[period : 2 * period])
    assert len({int(a) // 16 % (mode // 16) for a in moved[:period:mode]}) == mode // 16  # one column, all banks


def _map(**changes):
    given = dict(element="bf16", address=1 << 40, dims=(100, 70), strides=(208,), box=(64, 32), swizzle=128)
    return TensorMap(**{**given, **changes})


def test_tensor_map_there_and_back():
    for one in (_map(), _map(dims=(9, 8, 7, 6, 5), strides=(32, 256, 2048, 16384), box=(8, 1, 2, 3, 4), fill="nan")):
        data = one.encode()
        assert len(data) == 128 and TensorMap.decode(data) == one
    with pytest.raises(ValueError, match="no tensor map"):
        TensorMap.decode(bytes(128))
    with pytest.raises(ValueError, match="no tensor map"):
        TensorMap.decode(data[:20] + bytes([data[20] ^ 1]) + data[21:])


@pytest.mark.parametrize("changes", [dict(strides=(200,)), dict(box=(128, 32)), dict(address=8), dict(box=(64, 257))])
def test_tensor_map_obeys_the_rules_of_the_hardware(changes):
    with pytest.raises(UserError):
        _map(**changes).encode()


@pytest.mark.parametrize("at", [(0, 0), (64, 64), (-8, -5), (96, 0), (200, 0), (-64, 0), (37, 50)])
def test_box_at_the_edges(at):
    one = _map()
    rng = np.random.default_rng(0)
    memory = rng.integers(0, 256, 70 * 208, np.uint8)
    tensor = memory.reshape(70, 208)[:, :200].copy().view(np.uint16)
    padded = np.zeros((70 + 400, 100 + 400), np.uint16)
    padded[200:270, 200:300] = tensor
    expected = padded[200 + at[1] : 232 + at[1], 200 + at[0] : 264 + at[0]]
    tile, span = one.filled(), one.span(at)
    if span:
        low, size = span
        assert low >= one.address and low - one.address + size <= memory.size
        one.window(tile, at)[...] = one.view(memory, low - one.address, at)
    np.testing.assert_array_equal(tile.view(np.uint16), expected)


def test_copied_box_is_what_a_descriptor_reads():
    """A TMA copy with a swizzle, read back through a descriptor with the same swizzle, is the matrix again."""
    rng = np.random.default_rng(1)
    for mode, columns in ((128, 64), (64, 32), (32, 16)):
        matrix = rng.integers(0, 1 << 16, (64, columns)).astype(np.uint16)
        shared = np.zeros(16384, np.uint8)
        one = _map(dims=(columns, 64), strides=(2 * columns,), box=(columns, 64), swizzle=mode)
        where = one.chunks(2048)
        shared.reshape(-1, 16)[where // 16] = matrix.view(np.uint8).reshape(-1, 16)
        for k in range(0, columns, 16):
            found = MatrixDescriptor(2048 + 2 * k, 16, 8 * mode, 0, mode).addresses(64, 16, 2)
            np.testing.assert_array_equal(shared.view(np.uint16)[found // 2], matrix[:, k : k + 16])
        # the same bytes as the n-major operand of 64 columns: k runs along the box's rows
        if columns == 64:
            found = MatrixDescriptor(2048, 8192, 1024, 0, mode).addresses(64, 16, 2, k_major=False)
            np.testing.assert_array_equal(shared.view(np.uint16)[found // 2], matrix[:16].T)
