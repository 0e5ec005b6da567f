# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels by hand reach nothing but their arguments: refused before the run, or found by checks in their code."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.core.errors import UserError

RNG = np.random.default_rng(0)

COPY = """
tile.kernel @copy(%x: memref<?x?xf32>, %y: memref<?x?xf32>) grid(%i, %j) {
  %c64 = arith.constant 64 : index
  %column = arith.muli %j, %c64 : index
  %a = tile.load %x[%i, %column] : memref<?x?xf32>, !tile.tile<1x64xf32>
  tile.store %a, %y[%i, %column] : !tile.tile<1x64xf32>, memref<?x?xf32>
  tile.return
}
"""

MASKED = """
tile.kernel @masked(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %place = arith.muli %i, %c64 : index
  %size = memref.dim %x, %c0 : memref<?xf32>
  %left = arith.subi %size, %place : index
  %a = tile.load %x[%place] valid (%left) : memref<?xf32>, !tile.tile<64xf32>
  %b = arith.addf %a, %a : !tile.tile<64xf32>
  tile.store %b, %y[%place] valid (%left) : !tile.tile<64xf32>, memref<?xf32>
  tile.return
}
"""

GATHER = """
tile.kernel @gather(%n: index, %t: memref<?x32xf32>, %at: memref<8xi32>, %y: memref<8x32xf32>) grid() {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %ids = tile.load %at[%c0] : memref<8xi32>, !tile.tile<8xi32>
  %a = tile.load %t[%c0, %c0] indices %ids along 0 valid (%n, %c32)
      : memref<?x32xf32>, !tile.tile<8x32xf32> (indices !tile.tile<8xi32>)
  tile.store %a, %y[%c0, %c0] : !tile.tile<8x32xf32>, memref<8x32xf32>
  tile.return
}
"""

VIEW = """
tile.kernel @view(%from: index, %rows: index, %x: memref<?x16xf32>, %y: memref<4x16xf32>) grid() {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %a = memref.subview %x[%from, 0] [%rows, 16] [1, 1]
      : memref<?x16xf32> to memref<?x16xf32, strided<[16, 1], offset: ?>>
  %t = tile.load %a[%c0, %c0] valid (%rows, %c16)
      : memref<?x16xf32, strided<[16, 1], offset: ?>>, !tile.tile<4x16xf32>
  tile.store %t, %y[%c0, %c0] : !tile.tile<4x16xf32>, memref<4x16xf32>
  tile.return
}
"""


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]


def test_a_grid_that_fits_runs_without_a_check() -> None:
    kernel = tw.kernel(COPY)
    x, y = arrays((3, 128), (3, 128))
    kernel(x, y, grid=[3, 2])
    np.testing.assert_array_equal(x, y)
    assert "checked in its code" not in kernel.explain(x, y, grid=[3, 2])


@pytest.mark.parametrize(
    ("shapes", "grid", "words"),
    [
        (((3, 128), (3, 128)), [4, 2], "tile.load reaches place 3 of x along dimension 0, of size 3"),
        (
            ((3, 128), (3, 128)),
            [3, 3],
            r"place 191 of x along dimension 1, of size 128, in the task of coordinate 1 = 2",
        ),
        (((3, 128), (2, 128)), [3, 2], r"line 6: tile.store reaches place 2 of y along dimension 0, of size 2"),
        (((3, 128), (3, 127)), [3, 2], r"tile.store reaches place 127 of y along dimension 1, of size 127"),
        (((3, 50), (3, 50)), [3, 1], r"tile.load reaches place 63 of x along dimension 1, of size 50"),
        (((0, 64), (3, 64)), [1, 1], r"tile.load reaches place 0 of x along dimension 0, of size 0"),
    ],
)
def test_what_some_task_reaches_outside_is_refused(shapes: tuple, grid: list[int], words: str) -> None:
    for target in ("cpu", "cuda:sm_80"):
        with pytest.raises(UserError, match=words):
            tw.kernel(COPY, target=target, emulate=target != "cpu")(*arrays(*shapes), grid=grid)


def test_no_task_reaches_anything() -> None:
    tw.kernel(COPY)(*arrays((0, 64), (3, 64)), grid=[0, 1])


def test_masks_are_proven() -> None:
    kernel = tw.kernel(MASKED)
    x, y = arrays((100,), (100,))
    kernel(x, y, grid=[2])
    np.testing.assert_array_equal(x + x, y)
    kernel(x, y, grid=[5])  # tasks behind the end have nothing that is valid
    assert "checked in its code" not in kernel.explain(x, y, grid=[2])
    with pytest.raises(UserError, match="tile.store reached out of y: a check in the code"):
        kernel(x, y[:99].copy(), grid=[2])


def test_indices_are_checked_as_the_kernel_runs() -> None:
    kernel = tw.kernel(GATHER)
    (t,) = arrays((20, 32))
    at = np.array([0, 19, 3, 3, 5, 6, 7, 8], np.int32)
    np.testing.assert_array_equal(kernel(8, t, at)["y"], t[at])
    assert "an access of this kernel cannot be proven to stay inside" in kernel.explain(8, t, at)
    for place in (20, -1, 2**31 - 1, -(2**31)):
        wrong = at.copy()
        wrong[5] = place
        with pytest.raises(UserError, match=r"kernel gather, line 6: tile.load reached out of t"):
            kernel(8, t, wrong)
        np.testing.assert_array_equal(kernel(5, t, wrong)["y"][:5], t[at[:5]])  # it is not valid there
        np.testing.assert_array_equal(kernel(0, t, wrong)["y"], np.zeros((8, 32), np.float32))


def test_views_are_checked_as_the_kernel_runs() -> None:
    kernel = tw.kernel(VIEW)
    (x,) = arrays((10, 16))
    for start, rows in ((0, 4), (6, 4), (9, 1), (3, 0), (10, 0)):
        y = kernel(start, rows, x)["y"]
        np.testing.assert_array_equal(y[:rows], x[start : start + rows])
        assert not y[rows:].any()
    for start, rows in ((7, 4), (-1, 2), (8, 5), (10, 1), (0, -1), (2**62, 2), (1, 2**62), (2**63 - 1, 1)):
        with pytest.raises(UserError, match="kernel view, line 5: memref.subview reached out of x"):
            kernel(start, rows, x)


def test_the_interpreter_runs_first_where_asked() -> None:
    kernel = tw.kernel(COPY, checks=False)
    x, y = arrays((3, 128), (3, 128))
    with pytest.raises(Exception, match="outside|out of"):
        kernel(x, y, grid=[4, 2], interpret=True)
    with pytest.raises(Exception, match="outside|out of"):
        kernel.check(x, y, grid=[4, 2])
    kernel(x, y, grid=[3, 2], interpret=True)
    np.testing.assert_array_equal(x, y)


def test_what_cannot_be_checked_is_refused_unless_asked_for() -> None:
    text = """
    tile.kernel @raw(%x: memref<64xf32>, %y: memref<16xf32>) grid() {
      %c0 = arith.constant 0 : index
      %v = memref.reinterpret_cast %x to offset: [16], sizes: [16], strides: [1]
          : memref<64xf32> to memref<16xf32, strided<[1], offset: 16>>
      %a = tile.load %v[%c0] : memref<16xf32, strided<[1], offset: 16>>, !tile.tile<16xf32>
      tile.store %a, %y[%c0] : !tile.tile<16xf32>, memref<16xf32>
      tile.return
    }
    """
    (x,) = arrays((64,))
    y = np.empty(16, np.float32)
    with pytest.raises(UserError, match=r"what memref.reinterpret_cast accesses cannot be checked; checks=False"):
        tw.kernel(text)(x, y)
    tw.kernel(text, checks=False)(x, y)
    np.testing.assert_array_equal(y, x[16:32])


def test_modules_of_layer_3_are_checked() -> None:
    main = """
    func.func @main(%x: tensor<3x128xf32>) -> tensor<3x128xf32> {{
      %n = arith.constant {} : index
      %m = arith.constant 2 : index
      %e = tensor.empty() : tensor<3x128xf32>
      %y = tile.launch @copy grid(%n, %m) ins(%x : tensor<3x128xf32>) outs(%e : tensor<3x128xf32>)
          -> (tensor<3x128xf32>)
      return %y : tensor<3x128xf32>
    }}
    """
    (x,) = arrays((3, 128))
    np.testing.assert_array_equal(tw.compile(COPY + main.format(3))(x)[0], x)
    with pytest.raises(UserError, match="tile.load reaches place 3 of argument 0"):
        tw.compile(COPY + main.format(4))


#: Kernels of @k(%u, %x, %at, %y) whose places have wrapped around, or are negative, where forms say other things.
WRAPPED = {
    "least of a product": """
  %a = arith.muli %i, %c62 : index
  %p = arith.minsi %a, %c1 : index
  %e = memref.load %x[%p] : memref<?xf32>
""",
    "least of a narrow product": """
  %a = arith.muli %i, %c30 : index
  %b = arith.index_cast %a : index to i32
  %d = arith.minsi %b, %one : i32
  %p = arith.index_cast %d : i32 to index
  %e = memref.load %x[%p] : memref<?xf32>
""",
    "product behind a mask": """
  %m = arith.maxsi %u, %c0 : index
  %p = arith.muli %m, %c64 : index
  %left = arith.subi %size, %p : index
  %t = tile.load %x[%p] valid (%left) : memref<?xf32>, !tile.tile<8xf32>
  %e = tile.extract %t[0] : !tile.tile<8xf32> -> f32
""",
    "sum with an index": """
  %idx = tile.load %at[%c0] : memref<8xi64>, !tile.tile<8xi64>
  %t = tile.load %x[%c1] indices %idx along 0 : memref<?xf32>, !tile.tile<8xf32> (indices !tile.tile<8xi64>)
  %e = tile.extract %t[0] : !tile.tile<8xf32> -> f32
""",
    "stride of a view": """
  %v = memref.subview %x[0] [5] [%u] : memref<?xf32> to memref<5xf32, strided<[?]>>
  %e = memref.load %v[%c1] : memref<5xf32, strided<[?]>>
""",
    "size of a view": """
  %w = arith.subi %c0, %u : index
  %m = arith.minsi %w, %c1 : index
  %v = memref.subview %x[0] [%m] [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
  %e = memref.load %x[%c0] : memref<?xf32>
""",
    "step of a loop": """
  %w = arith.subi %c0, %u : index
  scf.for %l = %c0 to %c1 step %w {
    %f = memref.load %x[%l] : memref<?xf32>
    memref.store %f, %y[%c0] : memref<8xf32>
  }
  %e = memref.load %x[%c0] : memref<?xf32>
""",
}


def around(lines: str) -> str:
    return f"""
tile.kernel @k(%u: index, %x: memref<?xf32>, %at: memref<8xi64>, %y: memref<8xf32>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c30 = arith.constant {2**30} : index
  %c62 = arith.constant {2**62} : index
  %one = arith.constant 1 : i32
  %size = memref.dim %x, %c0 : memref<?xf32>
  {lines.strip()}
  memref.store %e, %y[%c0] : memref<8xf32>
  tile.return
}}
"""


@pytest.mark.parametrize("name", WRAPPED)
def test_places_that_wrap_around_are_not_taken_for_others(name: str) -> None:
    x, at = np.arange(64, dtype=np.float32), np.array([0, 1, 2, 3, 4, 5, 6, 2**63 - 1])
    u = 2**62 if name == "stride of a view" else 3 * 2**56
    with pytest.raises(UserError, match="reached out of x: a check in the code"):
        tw.kernel(around(WRAPPED[name]))(u, x, at, np.zeros(8, np.float32), grid=[3])


def test_accesses_of_loops_that_do_not_run_are_no_errors() -> None:
    loop = """
  scf.for %l = %c0 to {} step %c1 {{
    %f = memref.load %x[%c64] : memref<?xf32>
    memref.store %f, %y[%c1] : memref<8xf32>
  }}
  %e = memref.load %x[%c1] : memref<?xf32>
"""
    x, at = np.arange(64, dtype=np.float32), np.zeros(8, np.int64)
    for bound in ("%c0", "%u"):
        y = tw.kernel(around(loop.format(bound)))(0, x, at, np.zeros(8, np.float32), grid=[1])["y"]
        assert y[0] == 1
    with pytest.raises(UserError, match="memref.load reached out of x: a check"):
        tw.kernel(around(loop.format("%u")))(1, x, at, np.zeros(8, np.float32), grid=[1])
    with pytest.raises(UserError, match="reaches place 64 of x"):
        tw.kernel(around(loop.format("%c1")))(0, x, at, np.zeros(8, np.float32), grid=[1])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            """%v = memref.subview %x[0] [5] [%u] : memref<?xf32> to memref<5xf32, strided<[?]>>
  %w = memref.cast %v : memref<5xf32, strided<[?]>> to memref<5xf32, strided<[1000000]>>
  %e = memref.load %w[%c1] : memref<5xf32, strided<[1000000]>>""",
            "what memref.cast accesses cannot be checked",
        ),
        (
            """%v = memref.cast %x : memref<?xf32> to memref<*xf32>
  %w = memref.cast %v : memref<*xf32> to memref<1000000xf32>
  %e = memref.load %w[%c64] : memref<1000000xf32>""",
            "what memref.cast accesses cannot be checked",
        ),
        (
            """%p = llvm.mlir.zero : !llvm.ptr
  %e = llvm.load %p : !llvm.ptr -> f32""",
            "what llvm.load accesses cannot be checked",
        ),
        (
            """%b = tile.alloc : memref<8xf32>
  %v = memref.subview %x[%u] [8] [1] : memref<?xf32> to memref<8xf32, strided<[1], offset: ?>>
  %t = tile.async {
    tile.copy %v to %b : memref<8xf32, strided<[1], offset: ?>>, memref<8xf32>
  }
  tile.await %t
  %e = memref.load %b[%c0] : memref<8xf32>""",
            "no check can stand there: copy outside of tile.async",
        ),
    ],
)
def test_what_states_or_reaches_unseen_is_refused(lines: str, words: str) -> None:
    x, at = np.arange(64, dtype=np.float32), np.zeros(8, np.int64)
    with pytest.raises(UserError, match=words):
        tw.kernel(around(lines))(1, x, at, np.zeros(8, np.float32), grid=[1])


def test_what_is_said_of_alignment_is_a_view() -> None:
    kernel = tw.kernel(
        around("""%z = memref.assume_alignment %x, 4 : memref<?xf32>
  %e = memref.load %z[%c1] : memref<?xf32>""")
    )
    x = next(argument for argument in kernel.signature.arguments if argument.name == "x")
    assert x.reads and not x.writes
