# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""emulate, of a compiled model: all its launches on the emulator, with every check, in one order or in several."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from time import perf_counter

import numpy as np

from tilewright.cli.buffers import buffer_of
from tilewright.core.errors import UserError
from tilewright.runtime.structure import flat


def is_model(file: str) -> bool:
    """Whether a path is that of a compiled model: a folder, or a zip file."""
    return Path(file).is_dir() or (Path(file).is_file() and zipfile.is_zipfile(file))


def run_model(options: argparse.Namespace) -> int:
    """Run a model; the exit code, as the command's help says.

    Raises:
        UserError: options that are for a single kernel, or inputs that do not fit.
    """
    from tilewright.sim import ptx as emulate
    from tilewright.targets.loading import load

    _check_options(options)
    trace = emulate.Trace() if options.trace else None
    seeds = list(range(options.seeds)) if options.seeds else [options.seed]
    results: list[list[np.ndarray]] = []
    start = perf_counter()
    try:
        for seed in seeds:
            counted = None if results else trace  # one run is enough to count
            model = load(options.file, emulate={"options": emulate.Options(seed=seed, trace=counted)})
            results.append([np.asarray(array) for array in flat(model)(*_inputs(options.args, model))])
    except emulate.EmulationError as error:
        print(error)
        return 1
    print(f"{options.file}: no rule was broken ({perf_counter() - start:.1f} s, {len(results)} run)")
    for number, (spec, array) in enumerate(zip(model.outputs, results[0], strict=True)):
        print(f"  output {number}, {spec.name}: {array.dtype}{list(array.shape)}")
    if trace is not None:
        for launch in trace.launches:
            print(launch.summary())
    _save(options.save, results[0])
    return _same(results, [spec.name for spec in model.outputs])


def _check_options(options: argparse.Namespace) -> None:
    for name in ("kernel", "grid", "block", "cluster", "shared"):
        if getattr(options, name):
            raise UserError(
                f"--{name} is for one kernel of a PTX file; {options.file} is a model, which launches its own"
            )


def _inputs(texts: list[str], model) -> list[np.ndarray]:
    from tilewright.core.dtypes import from_numpy

    specs = list(model.inputs)
    if len(texts) > len(specs):
        raise UserError(f"{len(texts)} inputs are given, the model takes {len(specs)}")
    arrays = []
    for i, spec in enumerate(specs):
        if i >= len(texts) and not spec.is_static:
            raise UserError(f"input {spec.name} has sizes that each run fixes: give it with --args")
        text = texts[i] if i < len(texts) else f"random:{spec.dtype}:{'x'.join(map(str, spec.shape))}"
        array, _ = buffer_of(text)
        if array is None:
            raise UserError(f"--args {text}: an input is a file, or zeros:TYPE:SIZES, random:TYPE:SIZES")
        if from_numpy(array.dtype) != spec.dtype:
            raise UserError(f"input {spec.name} is of {spec.dtype}, --args {text} is of {from_numpy(array.dtype)}")
        arrays.append(array)
    return arrays


def _save(wanted: list[str], outputs: list[np.ndarray]) -> None:
    for text in wanted:
        number, _, path = text.partition("=")
        if not number.isdigit() or int(number) >= len(outputs) or not path:
            raise UserError(f"--save {text}: it must be N=FILE.npy with the number of an output")
        np.save(path, outputs[int(number)])


def _same(results: list[list[np.ndarray]], names: list[str]) -> int:
    for name, arrays in zip(names, zip(*results, strict=True), strict=True):
        if any(arrays[0].tobytes() != other.tobytes() for other in arrays[1:]):
            print(f"output {name} differs between orders of execution")
            return 1
    return 0
