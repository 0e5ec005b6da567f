# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`linalg` ops mean what upstream's own lowering to scalar loops makes of them.

The same op is interpreted as it stands, and again after `convert-linalg-to-loops`. All values are small whole numbers,
so that sums are exact in any order.
"""

from __future__ import annotations

import random

import ml_dtypes
import numpy as np
import pytest

from tilewright import reference
from tilewright.mlir import ir, passmanager

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32}


def check(text: str, arrays: list[np.ndarray]) -> None:
    """Run @main of ``text``, which writes into some of the arrays, in both forms."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        plain = [np.array(array) for array in arrays]
        reference.run(module, "main", plain)
        passmanager.PassManager.parse("builtin.module(convert-linalg-to-loops)").run(module.operation)
        assert "linalg." not in str(module)
        looped = [np.array(array) for array in arrays]
        reference.run(module, "main", looped)
    for a, b, start in zip(plain, looped, arrays, strict=True):
        assert a.dtype == start.dtype
        np.testing.assert_array_equal(a.astype(np.float64), b.astype(np.float64))


def memref(shape, element: str, dynamic: bool = False) -> str:
    """A type."""
    return "memref<" + "".join("?x" if dynamic else f"{n}x" for n in shape) + f"{element}>"


def named(op: str, shapes, attributes: str = "", element: str = "f32", dynamic: bool = False) -> str:
    """A function around one named op on memrefs; the last one is the output."""
    kinds = [memref(shape, element, dynamic) for shape in shapes]
    params = ", ".join(f"%{i}: {kind}" for i, kind in enumerate(kinds))
    names = [f"%{i}" for i in range(len(kinds))]
    ins = f"ins({', '.join(names[:-1])} : {', '.join(kinds[:-1])})"
    return f"func.func @main({params}) {{ linalg.{op} {attributes} {ins} outs({names[-1]} : {kinds[-1]}) return }}"


def whole(rng, shapes, dtype) -> list[np.ndarray]:
    """Small whole numbers."""
    return [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]


WINDOW = "{strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<[1, 2]> : tensor<2xi64>}"
NAMED = [
    ("matmul", [(3, 4), (4, 5), (3, 5)], ""),
    ("matmul", [(4, 3), (4, 5), (3, 5)], "indexing_maps = [affine_map<(m, n, k) -> (k, m)>, "
     "affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"),
    ("batch_matmul", [(2, 3, 4), (2, 4, 5), (2, 3, 5)], ""),
    ("batch_reduce_matmul", [(2, 3, 4), (2, 4, 5), (3, 5)], ""),
    ("matvec", [(3, 4), (4,), (3,)], ""),
    ("mmt4d", [(2, 3, 4, 2), (2, 3, 5, 2), (2, 2, 4, 5)], ""),
    ("conv_2d_nhwc_hwcf", [(1, 7, 6, 2), (3, 2, 2, 3), (1, 3, 4, 3)], WINDOW),
    ("conv_2d_nchw_fchw", [(2, 2, 7, 6), (3, 2, 3, 2), (2, 3, 3, 4)], WINDOW),
    ("conv_2d_ngchw_gfchw", [(1, 2, 2, 7, 6), (2, 3, 2, 3, 2), (1, 2, 3, 3, 4)], WINDOW),
    ("depthwise_conv_2d_nhwc_hwc", [(1, 7, 6, 3), (3, 2, 3), (1, 3, 4, 3)], WINDOW),
    ("pooling_nhwc_max", [(1, 7, 6, 3), (3, 2), (1, 3, 4, 3)], WINDOW),
    ("pooling_nchw_sum", [(1, 3, 7, 6), (3, 2), (1, 3, 3, 4)], WINDOW),
    ("add", [(3, 4), (3, 4), (3, 4)], ""),
    ("max", [(3, 4), (3, 4), (3, 4)], ""),
    ("copy", [(3, 4), (3, 4)], ""),
]  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(("op", "shapes", "attributes"), NAMED, ids=[f"{n}-{c[0]}" for n, c in enumerate(NAMED)])
def test_named(rng, op, shapes, attributes, element, dynamic):
    check(named(op, shapes, attributes, element, dynamic), whole(rng, shapes, DTYPES[element]))


class Generic:
    """A random `linalg.generic`: sizes from 0, dynamic ones, maps of every kind, bodies that reduce and branch."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        r = self.random
        self.loops = r.randint(1, 4)
        self.sizes = [r.choice([1, 2, 3, 5] if r.random() < 0.95 else [0]) for _ in range(self.loops)]
        self.element = r.choice(["f32", "f32", "i32", "f64"])
        self.parallel = [d for d in range(self.loops) if r.random() < 0.6]
        self.reduction = [d for d in range(self.loops) if d not in self.parallel]
        self.maps, self.shapes = [], []
        self._all_loops()
        for _ in range(r.randint(0, 2)):
            self._input()
        order = r.sample(self.parallel, len(self.parallel))
        self.outputs = r.randint(1, 2)
        for _ in range(self.outputs):
            self._add([f"d{d}" for d in order], [self.sizes[d] for d in order])

    def _add(self, terms, shape) -> None:
        dims = ", ".join(f"d{d}" for d in range(self.loops))
        self.maps.append(f"affine_map<({dims}) -> ({', '.join(terms)})>")
        self.shapes.append(tuple(shape))

    def _all_loops(self) -> None:
        """One input that tells the size of every loop."""
        order = self.random.sample(range(self.loops), self.loops)
        self._add([f"d{d}" for d in order], [self.sizes[d] for d in order])

    def _input(self) -> None:
        r, terms, shape = self.random, [], []
        for _ in range(r.randint(0, 3)):
            a, b = r.randrange(self.loops), r.randrange(self.loops)
            m, n = self.sizes[a], self.sizes[b]
            kind = r.choice(["plain", "plain", "window", "constant", "parts"])
            if kind == "plain" or 0 in (m, n):
                terms.append(f"d{a}")
                shape.append(m)
            elif kind == "window":
                terms.append(f"d{a} * 2 + d{b}")
                shape.append((m - 1) * 2 + n)
            elif kind == "constant":
                terms.append("1")
                shape.append(2)
            else:
                terms.append(f"d{a} floordiv 2")
                shape.append((m - 1) // 2 + 1)
        self._add(terms, shape)

    def body(self) -> str:
        """The lines of the body; outputs are %o0, %o1."""
        f = "i" if self.element[0] == "i" else "f"
        e, r = self.element, self.random
        inputs = [f"%i{k}" for k in range(len(self.shapes) - self.outputs)]
        lines = [
            f"%n = linalg.index {r.randrange(self.loops)} : index",
            "%n32 = arith.index_cast %n : index to i32",
            f"%x = arith.sitofp %n32 : i32 to {e}"
            if f == "f"
            else "%z = arith.constant 0 : i32\n%x = arith.addi %n32, %z : i32",
            f"%p = arith.mul{f} {r.choice(inputs)}, {r.choice([*inputs, '%x'])} : {e}",
            f"%q = arith.{r.choice(['add', 'sub'])}{f} %p, {r.choice([*inputs, '%x'])} : {e}",
        ]
        results = []
        for k in range(self.outputs):
            lines.append(self._result(k, f, e))
            results.append(f"%r{k}")
        kinds = ", ".join([e] * self.outputs)
        return "\n".join([*lines, f"linalg.yield {', '.join(results)} : {kinds}"])

    def _result(self, k: int, f: str, e: str) -> str:
        value = self.random.choice(["%p", "%q"])
        compare = "arith.cmpi sgt," if f == "i" else "arith.cmpf ogt,"
        biggest = "maxsi" if f == "i" else "maximumf"
        forms = {
            "add": f"%r{k} = arith.add{f} %o{k}, {value} : {e}",
            "swapped": f"%r{k} = arith.add{f} {value}, %o{k} : {e}",
            "max": f"%r{k} = arith.{biggest} %o{k}, {value} : {e}",
            "select": f"%c{k} = {compare} {value}, %o{k} : {e}\n%r{k} = arith.select %c{k}, {value}, %x : {e}",
            "other": f"%c{k} = {compare} {value}, %o0 : {e}\n%r{k} = arith.select %c{k}, %p, %o{k} : {e}",
            "branch": f"""%c{k} = {compare} %x, %o{k} : {e}
               %r{k} = scf.if %c{k} -> ({e}) {{ %t = arith.sub{f} %o{k}, {value} : {e} scf.yield %t : {e} }}
               else {{ scf.yield {value} : {e} }}""",
        }
        if not self.reduction:
            forms["plain"] = f"%r{k} = arith.sub{f} {value}, %x : {e}"
        return forms[self.random.choice(list(forms))]

    def text(self) -> str:
        """A function around it."""
        dynamic = self.random.random() < 0.5
        kinds = [memref(shape, self.element, dynamic) for shape in self.shapes]
        split = len(kinds) - self.outputs
        names = [f"%m{i}" for i in range(len(kinds))]
        arguments = [f"%i{k}" for k in range(split)] + [f"%o{k}" for k in range(self.outputs)]
        iterators = ", ".join('"parallel"' if d in self.parallel else '"reduction"' for d in range(self.loops))
        return f"""func.func @main({", ".join(f"{n}: {k}" for n, k in zip(names, kinds, strict=True))}) {{
          linalg.generic {{indexing_maps = [{", ".join(self.maps)}], iterator_types = [{iterators}]}}
            ins({", ".join(names[:split])} : {", ".join(kinds[:split])})
            outs({", ".join(names[split:])} : {", ".join(kinds[split:])}) {{
          ^bb0({", ".join(f"{a}: {self.element}" for a in arguments)}):
            {self.body()} }}
          return }}"""


@pytest.mark.parametrize("seed", range(150))
def test_random_generics(seed):
    generic = Generic(seed)
    rng = np.random.default_rng(seed)
    check(generic.text(), whole(rng, generic.shapes, DTYPES[generic.element]))
