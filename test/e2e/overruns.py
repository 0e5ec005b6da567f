# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process of test_sanitizer.py: programs whose second task goes one element too far, each run in a child of its own.

Prints one JSON object: for each program how it ended with one task and with two, and what was reported then. The
program of one task shows that the fault is the second task's.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable

import numpy as np

import tilewright as tw

_LOAD = """tile.kernel @{name}(%x: memref<16xf32>, %y: memref<16xf32>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i] : memref<16xf32>, !tile.tile<16xf32>
  tile.store %t, %y[%c0] : !tile.tile<16xf32>, memref<16xf32>
  tile.return
}}
"""
_STORE = """tile.kernel @{name}(%x: memref<16xf32>, %y: memref<16xf32>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : memref<16xf32>, !tile.tile<16xf32>
  tile.store %t, %y[%i] : !tile.tile<16xf32>, memref<16xf32>
  tile.return
}}
"""
_LOCAL = """tile.kernel @{name}(%x: memref<16xf32>, %y: memref<16xf32>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %s = tile.alloc : memref<16xf32, #tile.level<"scratch">>
  %t = tile.load %x[%c0] : memref<16xf32>, !tile.tile<16xf32>
  tile.store %t, %s[%c0] : !tile.tile<16xf32>, memref<16xf32, #tile.level<"scratch">>
  %u = tile.load %s[%i] : memref<16xf32, #tile.level<"scratch">>, !tile.tile<16xf32>
  tile.store %u, %y[%c0] : !tile.tile<16xf32>, memref<16xf32>
  tile.return
}}
"""
_SCALAR = """tile.kernel @{name}(%x: memref<16xf32>, %y: memref<16xf32>) grid(%i) {{
  %c15 = arith.constant 15 : index
  %at = arith.addi %i, %c15 : index
  %v = memref.load %x[%at] : memref<16xf32>
  memref.store %v, %y[%i] : memref<16xf32>
  tile.return
}}
"""
_OPEN = """tile.kernel @{name}(%x: memref<?xf32>, %y: memref<?xf32>) grid(%i) {{
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : memref<?xf32>, !tile.tile<16xf32>
  tile.store %t, %y[%i] : !tile.tile<16xf32>, memref<?xf32>
  tile.return
}}
"""
_V = "tensor<16xf32>"


def _main(lines: list[str], kind: str = _V) -> str:
    body = "\n  ".join(lines)
    return f'func.func @main(%x: {kind} {{tile.name = "x"}}) -> {kind} {{\n  {body}\n}}\n'


def _launch(name: str, tasks: int, source: str, result: str, kind: str = _V, size: str = "") -> list[str]:
    return [
        f"%n_{result} = arith.constant {tasks} : index",
        f"%e_{result} = tensor.empty({size}) : {kind}",
        f"%{result} = tile.launch @{name} grid(%n_{result}) ins(%{source} : {kind}) outs(%e_{result} : {kind}) "
        f"-> ({kind})",
    ]


def _one(kernel: str) -> Callable[[int], str]:
    """One kernel from the input to the result."""
    return lambda tasks: kernel.format(name="wrong") + _main([*_launch("wrong", tasks, "x", "y"), f"return %y : {_V}"])


def _weight(tasks: int) -> str:
    """An array that the artifact holds."""
    lines = [f"%w = ml_program.global_load_const @w : {_V}", *_launch("wrong", tasks, "w", "y"), f"return %y : {_V}"]
    held = f"ml_program.global private @w(#ml_program.extern : {_V}) : {_V}\n"
    return held + _LOAD.format(name="wrong") + _main(lines)


def _constant(tasks: int) -> str:
    """An array in the code."""
    lines = [f"%w = arith.constant dense<{[float(n) for n in range(16)]}> : {_V}"]
    return _LOAD.format(name="wrong") + _main([*lines, *_launch("wrong", tasks, "w", "y"), f"return %y : {_V}"])


def _temporary(first: str, second: str, wrong: int) -> Callable[[int], str]:
    """Two kernels with a buffer in the arena between them; which of them goes too far."""

    def text(tasks: int) -> str:
        counts = [tasks if number == wrong else 1 for number in (0, 1)]
        kernels = first.format(name="wrong" if wrong == 0 else "right")
        kernels += second.format(name="wrong" if wrong == 1 else "last")
        names = ("wrong", "last") if wrong == 0 else ("right", "wrong")
        lines = [*_launch(names[0], counts[0], "x", "t"), *_launch(names[1], counts[1], "t", "y")]
        return kernels + _main([*lines, f"return %y : {_V}"])

    return text


def _block(tasks: int) -> str:
    """A block of the run-time, of a size that a run brings."""
    kind = "tensor<?xf32>"
    lines = ["%c0 = arith.constant 0 : index", f"%d = tensor.dim %x, %c0 : {kind}"]
    lines += _launch("wrong", tasks, "x", "t", kind, "%d") + _launch("right", 1, "t", "y", kind, "%d")
    kernels = _OPEN.format(name="wrong") + _OPEN.format(name="right")
    return kernels + _main([*lines, f"return %y : {kind}"], kind)


PROGRAMS: dict[str, Callable[[int], str]] = {
    "input": _one(_LOAD),
    "element": _one(_SCALAR),
    "result": _one(_STORE),
    "local": _one(_LOCAL),
    "weight": _weight,
    "constant": _constant,
    "arena read": _temporary(_STORE, _LOAD, 1),
    "arena written": _temporary(_STORE, _LOAD, 0),
    "block": _block,
}


def _run(model: tw.Model) -> tuple[int, str]:
    """Status and standard error of a child that runs the model."""
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            x = np.arange(16, dtype=np.float32)
            os._exit(0 if model(x)[0].shape == (16,) else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors.seek(0)
        return status, errors.read().decode(errors="replace")


def _compiled(text: str) -> tw.Model:
    weights = {"w": np.arange(16, dtype=np.float32)} if "extern" in text else None
    return tw.compile(text, weights=weights, threads=1)


def main() -> None:
    """Run all."""
    os.environ.pop("LD_PRELOAD", None)
    found = {}
    for name, text in PROGRAMS.items():
        (right, _), (wrong, report) = (_run(_compiled(text(tasks))) for tasks in (1, 2))
        found[name] = [right, wrong, report]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
