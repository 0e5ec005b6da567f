# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments that several commands share, and what they mean."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.core.options import PRECISIONS, SIZES
from tilewright.report.measure import random_inputs
from tilewright.runtime import TensorSpec
from tilewright.targets import registry

DEFAULT_TARGET = "cpu"
ANY_MODEL = "an ONNX file, a layer-1 .mlir file, or a compiled model (folder or .tw)"


def add_model(parser: argparse.ArgumentParser, accepted: str = ANY_MODEL) -> None:
    """Add the model and how to compile it."""
    add_source(parser, accepted)
    parser.add_argument(
        "--emulate", action="store_true", help="run the code of a cuda target on the emulator: no GPU is needed"
    )
    parser.add_argument(
        "--cubin", action="store_true", help="store machine code beside the PTX of a cuda target (needs ptxas)"
    )
    parser.add_argument(
        "--sizes",
        default="auto",
        choices=SIZES,
        help="what dimensions get that --shape leaves open: code for all sizes (general), for each set of sizes that a "
        "run brings (each), or general where it can be compiled (auto, the default)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads per call (default: all cores available)")
    parser.add_argument(
        "--precision",
        default="f32",
        choices=PRECISIONS,
        help="type of the operands of products with weights (default f32: as the model says; tf32: cuda targets; "
        "fp8-fast, cuda targets: sums of float8 are not promoted)",
    )
    parser.add_argument(
        "--calibration",
        action="append",
        default=[],
        metavar="FILE",
        help="for --precision int8: an .npz file with a set of inputs by name, which ranges are taken from; repeatable",
    )
    parser.add_argument(
        "--accuracy",
        default="exact",
        metavar="KIND",
        help="exact (default); winograd, winograd4: convolutions that multiply less and round more; fast: approximate "
        "functions (cuda targets)",
    )
    parser.add_argument(
        "--padded",
        metavar="INPUT",
        help="an input [batch, tokens] that is zero at padding (attention_mask), which no output at a token depends "
        "on: tokens that are padding are left out, and outputs there are zeros",
    )


def add_source(parser: argparse.ArgumentParser, accepted: str) -> None:
    """Add the model, its target, and the sizes of its dimensions."""
    parser.add_argument("model", help=accepted)
    parser.add_argument("--target", default=DEFAULT_TARGET, help=f"{_forms()}; default: {DEFAULT_TARGET}")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="size of a symbolic dimension (batch=1), its range (batch=1,64), or a whole input shape (x=1,3,224,224); "
        "repeatable",
    )


@functools.cache
def _forms() -> str:
    """How target strings look; several commands show it."""
    return registry.forms()


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add input files and the seed of random inputs."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help=".npy file for an input; repeatable. Others get random data: floats in [-1, 1), integers 0 or 1",
    )
    parser.add_argument("--seed", type=whole_number, default=0, help="seed of the random inputs (default 0)")


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add the sizes that one run brings."""
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="size of a symbolic dimension in this run, of a model that is compiled for all sizes; repeatable",
    )


def whole_number(text: str) -> int:
    """Parse an option that is not negative."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


def is_compiled(model: str) -> bool:
    """Return whether a path is a compiled model (a folder with a manifest, or a zip archive)."""
    path = Path(model)
    if path.is_dir():
        return True
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def open_model(options: argparse.Namespace, *, all_sizes: bool = False, each_size: bool = False, **more: Any) -> Any:
    """Load a compiled model, or compile one as the options say.

    Args:
        options: of the command.
        all_sizes: whether the command can do with a model whose sizes are open.
        each_size: whether it can do with one that compiles for the sizes of each call.
        more: for the compiler.

    Raises:
        UserError: options for the compiler are given for a model that is compiled already.
    """
    import tilewright as tw

    if is_compiled(options.model):
        chosen = options.shape or options.padded or options.accuracy != "exact" or options.precision != "f32"
        if chosen or options.cubin or options.sizes != "auto" or options.target != DEFAULT_TARGET:
            raise UserError(
                f"{options.model} is compiled already: --shape, --sizes, --target, --accuracy, --precision, --padded "
                "and --cubin have no effect on it"
            )
        return tw.load(options.model, threads=options.threads, emulate=options.emulate)
    from tilewright.compiler.dynamic_shapes import DynamicShapesModel

    shapes = parse_shapes(options.shape)
    more["accuracy"] = options.accuracy
    more["precision"] = options.precision
    more["padded"] = options.padded
    more["sizes"] = options.sizes
    more["emulate"] = options.emulate
    more["cubin"] = options.cubin
    if options.calibration:
        more["calibration"] = [read_arrays(path) for path in options.calibration]
    model = tw.compile(options.model, options.target, threads=options.threads, shapes=shapes, **more)
    if isinstance(model, DynamicShapesModel):
        if all_sizes and model.general is not None:
            return model.general
        if each_size:
            return model
        raise UserError(
            f"{options.model} has dimensions without a size ({', '.join(map(str, model.inputs))}): fix them, as in "
            f"--shape {model.example}" + (f". There is no code for all sizes: {model.reason}" if model.reason else "")
        )
    return model


def read_arrays(path: str) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name.

    Raises:
        UserError: no such file, or another format.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"--calibration {path}: {error}") from None


def parse_shapes(items: Sequence[str], option: str = "--shape") -> dict[str, Any]:
    """Return {"batch": 1} for ["batch=1"], {"x": (1, 3)} for ["x=1,3"].

    Raises:
        UserError: not of this form.
    """
    shapes: dict[str, Any] = {}
    for item in items:
        name, equals, value = item.partition("=")
        try:
            sizes = tuple(int(size) for size in value.split(","))
        except ValueError:
            sizes = ()
        if not (name and equals and sizes):
            whole = " or x=1,3,224,224" if option == "--shape" else ""
            raise UserError(f"{option} {item}: expected NAME=SIZE, as in batch=1{whole}")
        shapes[name] = sizes[0] if len(sizes) == 1 else sizes
    return shapes


def make_inputs(model: Any, files: Sequence[str], seed: int, sizes: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return an array for each input: from its file, or random with the sizes that files and `sizes` say.

    Raises:
        UserError: a file cannot be read, or belongs to no input; a size that is needed is not given.
    """
    given = dict(read_input(item) for item in files)
    unknown = sorted(set(given) - {spec.name for spec in model.inputs})
    if unknown:
        known = ", ".join(map(str, model.inputs))
        raise UserError(f"--input {', '.join(unknown)}: the model's inputs are {known}")
    dims = getattr(model, "dims", {})
    known_sizes = _sizes(dims, given, sizes)
    others = [spec for spec in model.inputs if spec.name not in given]
    specs = [_sized(spec, dims.get(spec.name, spec.shape), known_sizes) for spec in others]
    arrays = {**random_inputs(specs, seed), **given}
    return {spec.name: arrays[spec.name] for spec in model.inputs}


def _sizes(dims: Mapping[str, tuple], given: Mapping[str, np.ndarray], items: Sequence[str]) -> dict[str, int]:
    """The sizes of symbolic dimensions: of files, and those that the user names."""
    sizes = parse_shapes(items, "--size")
    names = {dim for shape in dims.values() for dim in shape if isinstance(dim, str)}
    for name, size in sizes.items():
        if name not in names or not isinstance(size, int):
            what = f"the open dimensions are {', '.join(sorted(names))}" if names else "no size of the model is open"
            raise UserError(f"--size {name}: {what}")
        if size < 0:
            raise UserError(f"--size {name}={size}: a size is not negative")
    for name, array in given.items():
        pairs = zip(dims.get(name, ()), array.shape, strict=False)
        sizes.update({dim: size for dim, size in pairs if isinstance(dim, str)})
    return sizes


def _sized(spec: TensorSpec, dims: Sequence[Any], sizes: Mapping[str, int]) -> TensorSpec:
    """An input with the sizes that this run brings."""
    if "..." in dims:
        raise UserError(
            f"the number of dimensions of input {spec.name} is open: give --shape {spec.name}=2,3 or a file"
        )
    missing = sorted({dim for dim in dims if isinstance(dim, str) and dim not in sizes})
    if missing:
        example = " ".join(f"--size {dim}=1" for dim in missing)
        raise UserError(f"input {spec.name} has sizes that each run brings: give them, as in {example}")
    return replace(spec, shape=tuple(sizes[dim] if isinstance(dim, str) else dim for dim in dims))


def read_input(item: str) -> tuple[str, np.ndarray]:
    """Return name and array of NAME=FILE.

    Raises:
        UserError: not of this form, or no .npy file.
    """
    name, equals, file = item.partition("=")
    if not (name and equals and file):
        raise UserError(f"--input {item}: expected NAME=FILE, as in x=x.npy")
    return name, read_array(file, f"--input {item}")


def read_array(file: str, option: str = "") -> np.ndarray:
    """Return the array of an .npy file; errors begin with the option that names it, or with its name.

    Raises:
        UserError: it cannot be read, or is no .npy file.
    """
    what = option or file
    try:
        array = np.load(file, allow_pickle=False)
    except OSError as error:
        raise UserError(f"{what}: cannot read it: {error.strerror or error}") from None
    except (ValueError, EOFError):
        raise UserError(f"{what}: not a .npy file of numbers; numpy.save writes one") from None
    if not isinstance(array, np.ndarray):
        held = ", ".join(array.files)
        array.close()
        raise UserError(f"{what}: an archive of arrays ({held}); numpy.save writes one array to a .npy file")
    return array
