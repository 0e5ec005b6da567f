# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fragments of matrices: every map beside the formulas of the PTX ISA, element by element."""

import numpy as np
import pytest

from tilewright.sim.ptx.numbers import fragments
from tilewright.sim.ptx.numbers.element_types import ELEMENT_TYPES, pack_sums, unpack, unpack_sums
from tilewright.sim.ptx.numbers.sparse import UndefinedMetadata, expand_sparse


def _isa_a(lane, i, per_register, rows):
    """PTX ISA 9.7.14.5: row and column of element a_i, for elements packed per_register in a register."""
    group, member = lane >> 2, lane % 4
    register, e = divmod(i, per_register)
    upper = register % 2 if rows == 16 else 0
    step = register // 2 if rows == 16 else register
    return group + 8 * upper, member * per_register + e + 4 * per_register * step


@pytest.mark.parametrize(
    "rows, k, per_register",
    [(16, 16, 2), (16, 8, 2), (16, 8, 1), (16, 4, 1), (16, 32, 4), (16, 16, 4)]
    + [(16, 64, 8), (16, 32, 8), (8, 4, 1), (8, 16, 4), (8, 32, 8), (16, 256, 32), (16, 16, 1)],
)
def test_left_operand(rows, k, per_register):
    matrix = np.arange(rows * k, dtype=np.float32).reshape(rows, k)
    count = rows * k // 32
    fragment = np.empty((1, 32, count), np.float32)
    for lane in range(32):
        for i in range(count):
            fragment[0, lane, i] = matrix[_isa_a(lane, i, per_register, rows)]
    got = fragments.a_matrix(fragment.reshape(1, 32, -1, per_register), rows)
    np.testing.assert_array_equal(got[0], matrix)


def test_left_operand_of_doubles_as_the_isa_words_it():
    """mma.m16n8k16.f64: col = 2 i + member for even i, 2 i - 2 + member otherwise."""
    matrix = np.arange(256, dtype=np.float64).reshape(16, 16)
    fragment = np.empty((1, 32, 8, 1))
    for lane in range(32):
        for i in range(8):
            row = (lane >> 2) + 8 * (i % 2)
            fragment[0, lane, i, 0] = matrix[row, (2 * i if i % 2 == 0 else 2 * i - 2) + lane % 4]
    np.testing.assert_array_equal(fragments.a_matrix(fragment, 16)[0], matrix)


@pytest.mark.parametrize("k, per_register", [(16, 2), (8, 2), (8, 1), (4, 1), (32, 4), (64, 8), (16, 1), (128, 32)])
def test_right_operand(k, per_register):
    matrix = np.arange(k * 8, dtype=np.float32).reshape(k, 8)
    fragment = np.empty((1, 32, k // 4), np.float32)
    for lane in range(32):
        for i in range(k // 4):
            register, e = divmod(i, per_register)
            row = (lane % 4) * per_register + e + 4 * per_register * register
            fragment[0, lane, i] = matrix[row, lane >> 2]
    got = fragments.b_matrix(fragment.reshape(1, 32, -1, per_register))
    np.testing.assert_array_equal(got[0], matrix)


@pytest.mark.parametrize("rows, columns", [(16, 8), (8, 8), (16, 24), (16, 256)])
def test_accumulator_there_and_back(rows, columns):
    """Row group + 8 for elements 2 and 3 of four, column 2 member + i mod 2; blocks of 8 columns follow each other."""
    matrix = np.arange(2 * rows * columns, dtype=np.float32).reshape(2, rows, columns)
    per_block = 4 if rows == 16 else 2
    fragment = np.empty((2, 32, rows * columns // 32), np.float32)
    for lane in range(32):
        for i in range(fragment.shape[2]):
            block, j = divmod(i, per_block)
            row, column = (lane >> 2) + 8 * (j // 2), 8 * block + 2 * (lane % 4) + j % 2
            fragment[:, lane, i] = matrix[:, row, column]
    np.testing.assert_array_equal(fragments.c_matrix(fragment, rows), matrix)
    np.testing.assert_array_equal(fragments.c_fragment(matrix), fragment)


@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_registers(transposed):
    rows = np.arange(3 * 4 * 64, dtype=np.uint16).reshape(3, 4, 8, 8)
    registers = fragments.matrix_registers(rows, transposed)
    for warp, lane, m in [(0, 0, 0), (2, 31, 3), (1, 13, 2)]:
        r, c = lane // 4, 2 * (lane % 4)
        low, high = (rows[warp, m, c, r], rows[warp, m, c + 1, r]) if transposed else rows[warp, m, r, c : c + 2]
        assert registers[warp, lane, m] == int(low) | int(high) << 16
    np.testing.assert_array_equal(fragments.matrix_rows(np.ascontiguousarray(registers), transposed), rows)


def test_unpack_reads_low_elements_first():
    word = np.array([0x80FF_0102], np.uint32)
    assert unpack(word, ELEMENT_TYPES["s8"]).tolist() == [[2, 1, -1, -128]]
    assert unpack(word, ELEMENT_TYPES["u8"]).tolist() == [[2, 1, 255, 128]]
    assert unpack(np.array([0x9000_007F], np.uint32), ELEMENT_TYPES["s4"]).tolist() == [[-1, 7, 0, 0, 0, 0, 0, -7]]
    assert unpack(np.array([0x3F80_C000], np.uint32), ELEMENT_TYPES["bf16"]).tolist() == [[-2.0, 1.0]]
    assert unpack(np.array([0x38_7E_00_B8], np.uint32), ELEMENT_TYPES["e4m3"]).tolist() == [[-1.0, 0.0, 448.0, 1.0]]
    assert unpack(np.array([5], np.uint32), ELEMENT_TYPES["b1"])[0, :4].tolist() == [1, 0, 1, 0]


def test_tf32_drops_what_the_matrix_unit_does_not_see():
    one_and_a_bit = np.array([np.float32(1 + 2**-10 + 2**-11)]).view(np.uint32)
    assert unpack(one_and_a_bit, ELEMENT_TYPES["tf32"]).item() == 1 + 2**-10


@pytest.mark.parametrize("name", ["f16", "f32", "f64", "s32"])
def test_sums_there_and_back(name):
    values = np.array([[1, -2, 300, 4]], {"f64": np.float64, "s32": np.int32}.get(name, np.float32))
    registers = pack_sums(values, name)
    assert registers.shape == ((1, 2) if name == "f16" else (1, 4))
    np.testing.assert_array_equal(unpack_sums(registers, name), values)


def _metadata(dense, bits):
    """Metadata of a 2:4 sparse (16, K) matrix, packed lane by lane as figures 119, 122 and 127 to 129 show."""
    rows, k = dense.shape
    words = np.zeros((1, 32), np.uint32)
    for row in range(rows):
        for chunk in range(k // 4):
            first, second = np.nonzero(dense[row, 4 * chunk : 4 * chunk + 4])[0]
            code = int(first) | int(second) << 2
            if bits == 16:
                lane, shift = 4 * (row % 8) + chunk // 4, 16 * (row // 8) + 4 * (chunk % 4)
            else:
                lane, shift = 4 * (row % 8) + row // 8 + 2 * (chunk // 8), 4 * (chunk % 8)
            words[0, lane] |= np.uint32(code << shift)
    return words


@pytest.mark.parametrize(
    "k, bits, selector", [(16, 16, 0), (16, 16, 3), (32, 16, 0), (32, 16, 1), (32, 8, 1), (64, 8, 0)]
)
def test_sparse_rows_expand(k, bits, selector):
    rng = np.random.default_rng(k + bits)
    dense = np.zeros((16, k), np.float32)
    for row in range(16):
        for chunk in range(k // 4):
            where = rng.choice(4, 2, replace=False)
            dense[row, 4 * chunk + where] = rng.integers(1, 100, 2)
    stored = dense[dense != 0].reshape(1, 16, k // 2)
    lanes = max(1, k // 16)
    words = np.full((1, 32), 0xDEADBEEF, np.uint32).reshape(8, 4)
    words[:, selector * lanes : (selector + 1) * lanes] = _metadata(dense, bits).reshape(8, 4)[:, :lanes]
    got = expand_sparse(stored, words.reshape(1, 32), selector, bits)
    np.testing.assert_array_equal(got[0], dense)


#: How a warpgroup's lanes and the values of their words map to elements (row + 64 k) of a sparse a: the layouts of
#: metadata that CuTe's atoms of sparse wgmma have (mma_traits_sm90_gmma_sparse.hpp), (shape, stride) of lane and value.
_CUTE = {
    (16, 32): (((2, 2, 8, 4), (1024, 0, 1, 16)), ((16, 2), (64, 8))),
    (8, 64): (((2, 2, 8, 4), (8, 2048, 1, 16)), ((32,), (64,))),
}


def _at(index, layout):
    place = 0
    for size, stride in zip(*layout, strict=True):
        place, index = place + index % size * stride, index // size
    return place


@pytest.mark.parametrize(("bits", "depth"), list(_CUTE))
@pytest.mark.parametrize("selector", [0, 1])
def test_metadata_lie_as_in_another_library(bits, depth, selector):
    """Four warps; both halves of the lanes where a selector chooses. A nibble has the positions of four elements."""
    if bits == 8 and selector:
        return
    rng, (lanes, values) = np.random.default_rng(bits), _CUTE[bits, depth]
    dense = np.zeros((64, depth), np.float32)
    for row in range(64):
        for chunk in range(depth // 4):
            dense[row, 4 * chunk + np.sort(rng.choice(4, 2, replace=False))] = rng.integers(1, 100, 2)
    words = np.zeros(128, np.uint32)
    for lane in range(128):
        if bits == 16 and lane % 4 // 2 != selector:
            words[lane] = 0xDEADBEEF
            continue
        for chunk in range(8):
            place = _at(lane, lanes) + _at(4 * chunk, values)
            row, k = place % 64, place // 64
            first, second = np.flatnonzero(dense[row, k : k + 4])
            words[lane] |= np.uint32((first | second << 2) << 4 * chunk)
    stored = dense[dense != 0].reshape(4, 16, depth // 2)
    got = expand_sparse(stored, words.reshape(4, 32), selector, bits)
    np.testing.assert_array_equal(got.reshape(64, depth), dense)


@pytest.mark.parametrize("code", range(16))
def test_undefined_metadata_are_refused(code):
    """Sixteen chunks of one code: four have one position twice, six the larger one first."""
    first, second = code & 3, code >> 2
    words = np.full((1, 32), int(f"{code:x}" * 8, 16), np.uint32)
    for ordered in (False, True):
        if first == second or (ordered and first > second):
            with pytest.raises(UndefinedMetadata, match=f"0b{code:04b} of row 0, chunk 0"):
                expand_sparse(np.ones((1, 16, 16)), words, 0, 16, ordered)
        else:
            assert expand_sparse(np.ones((1, 16, 16)), words, 0, 16, ordered)[0, :, [first, second]].all()
    if code in (0b0100, 0b1110):
        half = expand_sparse(np.ones((1, 16, 4)), words, 0, 32)[0, 0]
        assert half.tolist() == [1, 0] * 4 if code == 0b0100 else [0, 1] * 4
    else:
        with pytest.raises(UndefinedMetadata, match="neither the first nor the second"):
            expand_sparse(np.ones((1, 16, 4)), words, 0, 32)
