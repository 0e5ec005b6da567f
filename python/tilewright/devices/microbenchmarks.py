# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Micro-benchmarks of this machine as one module of kernels, for the performance model (Roller, section 3.4).

The kernels are made by the same code generator as those that the model predicts, from `linalg.generic`s with their
tiles written on them; nothing but Tilewright is needed to measure a machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_DEPTH = 128  # steps of a product whose operands stay in the L1 cache
_REPEATS = 256
#: Functions whose cost per vector is measured.
FUNCTIONS = ("math.exp", "math.erf", "math.tanh", "math.log", "math.sqrt", "math.rsqrt", "arith.divf", "math.sin")
_FUNCTION_ELEMENTS, _FUNCTION_REPEATS = 2048, 16


@dataclass
class Kernels:
    """The text of a module under construction: inputs, operations, results."""

    inputs: dict[str, str] = field(default_factory=dict)
    ops: list[str] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)

    def input(self, name: str, shape: Sequence[int]) -> str:
        """Declare an input once."""
        self.inputs[name] = _type(shape)
        return f"%{name}"

    def generic(
        self,
        name: str,
        maps: Sequence[str],
        iterators: str,
        operands: Sequence[tuple[str, Sequence[int]]],
        out: Sequence[int],
        body: str,
        rtile: str,
        zero: bool = False,
    ) -> None:
        """Add a kernel. `iterators` is a letter per loop, p or r; `body` yields from %a, %b, ... and the result %o."""
        number = len(self.results)
        kinds = ", ".join('"parallel"' if c == "p" else '"reduction"' for c in iterators)
        loops = ", ".join(f"d{i}" for i in range(len(iterators)))
        affine = ", ".join(f"affine_map<({loops}) -> ({m})>" for m in maps)
        ins = ", ".join(value for value, _ in operands)
        types = ", ".join(_type(shape) for _, shape in operands)
        args = ", ".join(f"%{letter}: f32" for letter in "abc"[: len(operands)])
        result, kind = f"%r{number}", _type(out)
        dest = f"%e{number}"
        self.ops.append(f"  {dest} = tensor.empty() : {kind}")
        if zero:
            self.ops.append(f"  %f{number} = linalg.fill ins(%zero : f32) outs({dest} : {kind}) -> {kind}")
            dest = f"%f{number}"
        self.ops.append(
            f"  {result} = linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}}\n"
            f"      ins({ins} : {types}) outs({dest} : {kind})\n"
            f'      attrs = {{tile.task = {number} : i64, tile.nest = {number} : i64, tile.kernel = "{name}",\n'
            f"        tile.rtile = #tile.rtile<{rtile}>}} {{\n"
            f"  ^bb0({args}, %o: f32):\n{body}\n  }} -> {kind}"
        )
        self.results[result] = kind

    def text(self) -> str:
        """The module."""
        args = ", ".join(f'%{n}: {t} {{tile.name = "{n}"}}' for n, t in self.inputs.items())
        outs = ", ".join(f'{t} {{tile.name = "y{i}"}}' for i, t in enumerate(self.results.values()))
        values, types = ", ".join(self.results), ", ".join(self.results.values())
        return "\n".join(
            [
                f"func.func @main({args}) -> ({outs}) {{",
                "  %zero = arith.constant 0.0 : f32",
                *self.ops,
                f"  return {values} : {types}",
                "}",
            ]
        )


def _type(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


_MULTIPLY_ADD = "    %m = arith.mulf %a, %b : f32\n    %s = arith.addf %o, %m : f32\n    linalg.yield %s : f32"
_DOUBLE = "    %s = arith.addf %a, %a : f32\n    linalg.yield %s : f32"
_ADD = "    %s = arith.addf %o, %a : f32\n    linalg.yield %s : f32"


def register_tiles(registers: int, most: int = 14) -> list[tuple[int, int]]:
    """Rows and vectors of the register tiles that are measured: those that fit."""
    found = []
    for vectors in (1, 2, 3, 4):
        limit = min((registers - vectors - 1) // vectors, most)
        found += [(rows, vectors) for rows in range(1, limit + 1)]
    return found


def products(kernels: Kernels, tiles: Sequence[tuple[int, int]], lanes: int) -> None:
    """`fma.RxV`: a register tile of a product with operands in the L1 cache, without start and end."""
    for rows, vectors in tiles:
        width = vectors * lanes
        a = kernels.input(f"a{rows}", (rows, _DEPTH))
        b = kernels.input(f"b{vectors}", (_DEPTH, width))
        t = kernels.input("t", (_REPEATS,))
        full = [rows, width, _REPEATS, _DEPTH]
        kernels.generic(
            f"fma_{rows}x{vectors}",
            ["d0, d3", "d3, d1", "d2", "d0, d1"],
            "pprr",
            [(a, (rows, _DEPTH)), (b, (_DEPTH, width)), (t, (_REPEATS,))],
            (rows, width),
            _MULTIPLY_ADD,
            f"l2 = {full}, register = [{rows}, {width}, 1, 1], unroll = [1, 1, 1, 4], order = [0, 1, 2, 3]",
            zero=True,
        )


def start(kernels: Kernels, lanes: int) -> None:
    """`start`: the same product with few steps, once per tile of a small result."""
    rows, width, tiles, depth = 8, 2 * lanes, 32, 16
    a, b = kernels.input("sa", (rows, depth)), kernels.input("sb", (depth, width))
    kernels.generic(
        "start",
        ["d1, d3", "d3, d2", "d0, d1, d2"],
        "pppr",
        [(a, (rows, depth)), (b, (depth, width))],
        (tiles, rows, width),
        _MULTIPLY_ADD,
        f"l2 = [{tiles}, {rows}, {width}, {depth}], register = [1, {rows}, {width}, 1], order = [0, 1, 2, 3]",
        zero=True,
    )


def reads(kernels: Kernels, name: str, elements: int, repeats: int, lanes: int) -> None:
    """`read_LEVEL`: the sum of a vector, several times."""
    x, t = kernels.input(f"x{elements}", (elements,)), kernels.input(f"t{repeats}", (repeats,))
    kernels.generic(
        f"read_{name}",
        ["d2", "d1", "d0"],
        "prr",
        [(x, (elements,)), (t, (repeats,))],
        (1,),
        _ADD,
        f"l2 = [1, {repeats}, {elements}], register = [1, 1, {8 * lanes}], order = [0, 1, 2]",
        zero=True,
    )


def copies(kernels: Kernels, name: str, elements: int, task: int, register: int) -> None:
    """A copy of a vector, doubled so that it is no call of the C library's."""
    x = kernels.input(f"x{elements}", (elements,))
    rtile = f"l2 = [{task}], register = [{register}], order = [0]"
    kernels.generic(name, ["d0", "d0"], "p", [(x, (elements,))], (elements,), _DOUBLE, rtile)


def transposes(kernels: Kernels, size: int, lanes: int) -> None:
    """`pack`: a matrix in the L2 cache, transposed in registers."""
    x = kernels.input("square", (size, size))
    rtile = f"l2 = [{size}, {size}], register = [{lanes}, {lanes}], order = [0, 1]"
    body = "    linalg.yield %a : f32"
    kernels.generic("pack", ["d1, d0", "d0, d1"], "pp", [(x, (size, size))], (size, size), body, rtile)


def functions(kernels: Kernels, lanes: int) -> None:
    """`slots.NAME`: sums of a function of a vector in the L1 cache, and the plain sum that they are compared with."""
    x, t = kernels.input("fx", (_FUNCTION_ELEMENTS,)), kernels.input("ft", (_FUNCTION_REPEATS,))
    for function in ("", *FUNCTIONS):
        body = _ADD
        if function:
            operands = "%a, %d" if function == "arith.divf" else "%a"
            apply = f"    %d = arith.addf %a, %a : f32\n    %v = {function} {operands} : f32\n"
            body = apply + "    %s = arith.addf %o, %v : f32\n    linalg.yield %s : f32"
        kernels.generic(
            "function_" + function.replace(".", "_"),
            ["d2", "d1", "d0"],
            "prr",
            [(x, (_FUNCTION_ELEMENTS,)), (t, (_FUNCTION_REPEATS,))],
            (1,),
            body,
            f"l2 = [1, {_FUNCTION_REPEATS}, {_FUNCTION_ELEMENTS}], register = [1, 1, {4 * lanes}], order = [0, 1, 2]",
            zero=True,
        )


def chain(kernels: Kernels, lanes: int) -> None:
    """`latency`: the sum of a vector in the L1 cache with one accumulator."""
    x, t = kernels.input("fx", (_FUNCTION_ELEMENTS,)), kernels.input("ft", (_FUNCTION_REPEATS,))
    kernels.generic(
        "chain",
        ["d2", "d1", "d0"],
        "prr",
        [(x, (_FUNCTION_ELEMENTS,)), (t, (_FUNCTION_REPEATS,))],
        (1,),
        _ADD,
        f"l2 = [1, {_FUNCTION_REPEATS}, {_FUNCTION_ELEMENTS}], register = [1, 1, {lanes}], order = [0, 1, 2]",
        zero=True,
    )


def function_vectors(lanes: int) -> int:
    """Vectors that each of `functions` computes."""
    return _FUNCTION_ELEMENTS * _FUNCTION_REPEATS // lanes


def product_steps() -> int:
    """Steps that each of `products` makes."""
    return _DEPTH * _REPEATS
