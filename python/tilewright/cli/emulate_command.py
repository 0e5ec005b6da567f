# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""emulate: PTX on the emulator, with every check."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tilewright.cli.arguments import whole_number
from tilewright.cli.buffers import buffer_of
from tilewright.cli.emulate_model import is_model, run_model
from tilewright.core.errors import UserError

_EPILOG = """\
each ARG is one parameter of the kernel, in order:
  x.npy             a buffer that holds the array of a file
  zeros:f32:64x64   a buffer of zeros; also random:... (normal numbers, or small integers) and empty:... (never written)
  64, -1.5          a scalar, as wide as the parameter

Of a model the ARGs are its inputs, in order; inputs that are not given are random. --save writes its outputs.

Exit code 0: the program obeyed all rules; 1: it broke one (the message names PTX line and source); 2: a wrong call.
Without --grid the kernels of the file are listed.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "emulate",
        help="run PTX on the emulator and check it: addresses, initialisation, races, dead-lock",
        description="Run a kernel of a PTX file, or all of a compiled model, on the emulator; no GPU is needed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a PTX file, or a compiled model (.tw or folder), which runs whole")
    parser.add_argument("--kernel", metavar="NAME", help="which kernel, if there are several")
    parser.add_argument("--grid", metavar="X[,Y[,Z]]", help="CTAs")
    parser.add_argument("--args", nargs="*", default=[], metavar="ARG", help="parameters, see below")
    parser.add_argument("--block", metavar="X[,Y[,Z]]", help="threads of a CTA (default: what the kernel fixes)")
    parser.add_argument("--cluster", metavar="X[,Y[,Z]]", help="CTAs of a cluster (default: what the kernel fixes)")
    parser.add_argument("--shared", type=whole_number, default=0, metavar="BYTES", help="dynamic shared memory")
    parser.add_argument("--seed", type=int, help="order of warps and of asynchronous work at random")
    parser.add_argument(
        "--seeds", type=whole_number, metavar="N", help="run N times in random orders, and compare the results"
    )
    parser.add_argument("--trace", action="store_true", help="print instructions, memory traffic and bank conflicts")
    parser.add_argument("--save", action="append", default=[], metavar="N=FILE", help="write buffer N (from 0) to .npy")
    parser.set_defaults(run=_emulate)


def _emulate(options: argparse.Namespace) -> int:
    from tilewright.sim import ptx as emulate

    if is_model(options.file):
        return run_model(options)
    data = Path(options.file).read_bytes()
    if b".version" not in data:
        raise UserError(f"{options.file} is neither PTX, which is text, nor a compiled model (a .tw file or a folder)")
    module = emulate.load(data)
    if options.grid is None:
        _list(module)
        return 0
    program = module.kernel(options.kernel or _only(module))
    seeds = range(options.seeds) if options.seeds else [options.seed]
    results = []
    trace = emulate.Trace() if options.trace else None
    start = perf_counter()
    try:
        for seed in seeds:
            results.append(_once(options, program, emulate.Options(seed=seed, trace=trace)))
    except emulate.EmulationError as error:
        print(error)
        return 1
    print(f"{program.kernel.name}: no rule was broken ({perf_counter() - start:.1f} s, {len(results)} run)")
    if trace is not None:
        print(trace.launches[0].summary(), trace.launches[0].table(), sep="\n")
    _save(options.save, results[0])
    return _same(results)


def _same(results: list[list[np.ndarray | None]]) -> int:
    for number, arrays in enumerate(zip(*results, strict=True)):
        first = arrays[0]
        if first is not None and any(first.tobytes() != other.tobytes() for other in arrays[1:]):
            print(f"buffer {number} differs between orders of execution")
            return 1
    return 0


def _once(options: argparse.Namespace, program: Any, run: Any) -> list[np.ndarray | None]:
    from tilewright.sim import ptx as emulate

    memory = emulate.GlobalMemory()
    declared = program.kernel.parameters
    if len(options.args) != len(declared):
        raise UserError(f"kernel '{program.kernel.name}' takes {len(declared)} parameters, not {len(options.args)}")
    params, buffers = [], []
    for text, parameter in zip(options.args, declared, strict=True):
        array, defined = buffer_of(text)
        if array is None:
            params.append(_scalar(text, parameter.size))
            buffers.append(None)
            continue
        address = memory.alloc(array.nbytes, text)
        if defined:
            memory.write(address, np.ascontiguousarray(array).view(np.uint8))
        params.append(address.to_bytes(8, "little"))
        buffers.append((address, array))
    emulate.launch(
        program,
        _size(options.grid),
        params,
        memory=memory,
        block=_size(options.block),
        cluster=_size(options.cluster),
        shared_bytes=options.shared,
        options=run,
    )
    return [
        None if each is None else memory.read(each[0], each[1].nbytes).view(each[1].dtype).reshape(each[1].shape)
        for each in buffers
    ]


def _scalar(text: str, size: int) -> bytes:
    try:
        if re.fullmatch(r"[+-]?\d+", text):
            return (int(text) & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
        return np.array(float(text), {2: "<f2", 4: "<f4", 8: "<f8"}[size]).tobytes()
    except (ValueError, KeyError):
        raise UserError(f"'{text}' is no parameter of {size} bytes: a number, FILE.npy or zeros:f32:4x4") from None


def _size(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"'{text}' is no size: X, X,Y or X,Y,Z") from None


def _only(module: Any) -> str:
    if len(module.kernels) != 1:
        raise UserError(f"--kernel must say which: {', '.join(module.kernels) or 'the file has none'}")
    return next(iter(module.kernels))


def _list(module: Any) -> None:
    for name, program in module.kernels.items():
        kernel = program.kernel
        sizes = ", ".join(f"{p.name.removeprefix(name + '_')} ({p.size} bytes)" for p in kernel.parameters)
        print(f"{name}({sizes})")
        for directive, numbers in kernel.directives.items():
            print(f"  .{directive} {', '.join(map(str, numbers))}".rstrip())
        print(f"  {len(kernel.code)} instructions, {program.shared_used(0)} bytes of static shared memory")


def _save(wanted: list[str], buffers: list[np.ndarray | None]) -> None:
    for text in wanted:
        number, _, path = text.partition("=")
        if not number.isdigit() or int(number) >= len(buffers) or buffers[int(number)] is None or not path:
            raise UserError(f"--save {text}: it must be N=FILE.npy with the number of a buffer among the arguments")
        np.save(path, buffers[int(number)])
