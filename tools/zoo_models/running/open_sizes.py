# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One model as one artifact for many sets of sizes, each compared with ONNX Runtime, none compiled on the way.

Prints one JSON object: python -m zoo_models.running.open_sizes FOLDER [TARGET [SETS]]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from zoo_models.comparing import Arrays, difference
from zoo_models.running.one import calls

Dims = Mapping[str, tuple[int | str, ...]]
#: Sizes that are drawn, as far as the model takes them: one, below and above vectors and tiles.
_SIZES = (1, 2, 3, 5, 8, 13, 17, 24, 31, 40)


def open_sizes(folder: Path, target: str = "cpu", sets: int = 10, seed: int = 0) -> dict[str, Any]:
    """Compile for all sizes, save, load, and run with sets of sizes.

    Args:
        folder: of an exported model: ``model.onnx``, ``inputs_K.npz`` of some sets of sizes.
        target: what to compile for; on the emulator for ``cuda:``.
        sets: number of sets; fewer where not as many differ.
        seed: of the sizes and inputs.

    Returns:
        `sizes` that were run, `error` (the worst, relative; see `difference`), `compiled` (sets that needed a
        compilation of their own: none), and `names`: the shapes of the results.

    Raises:
        tilewright.UserError: there is no code for all sizes at once; why stands in it.
    """
    import tilewright as tw

    options: dict[str, Any] = {"emulate": True} if target.startswith("cuda") else {}
    given = [inputs for inputs, _ in calls(folder)]
    random = np.random.default_rng(seed)
    model = tw.compile(folder / "model.onnx", target, sizes="general", **options)
    drawn: list[dict[str, int]] = []
    for _ in range(20 * sets):  # few of them differ where a single size is open
        one = _draw(model.dims, model.ranges, given, random)
        drawn += [one] if len(drawn) < sets and one not in drawn else []
    with tempfile.TemporaryDirectory() as place:
        runs = tw.load(model.save(Path(place) / "model.tw"), **options)
        errors = []
        for sizes in drawn:
            inputs = {
                spec.name: array_like(given, spec.name, model.dims[spec.name], sizes, random) for spec in runs.inputs
            }
            found = dict(zip([spec.name for spec in runs.outputs], runs(**inputs), strict=True))
            errors.append(difference(_expected(folder / "model.onnx", inputs), found))
    names = {spec.name: list(spec.shape) for spec in model.outputs}
    return {"sizes": drawn, "error": float(f"{max(errors):.2g}"), "compiled": len(model.sizes), "names": names}


def _expected(path: Path, inputs: Arrays) -> Arrays:
    """The results of ONNX Runtime without its optimizer."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {value.name: inputs[value.name] for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return {name: np.asarray(value) for name, value in zip(names, session.run(None, given), strict=True)}


def _sizes_of(dims: Dims, arrays: Arrays) -> dict[str, int]:
    """The size of each name in a call."""
    named = ((name, size) for key, shape in dims.items() for name, size in zip(shape, arrays[key].shape, strict=True))
    return {name: size for name, size in named if isinstance(name, str)}


def sums(known: Sequence[Mapping[str, int]]) -> dict[str, tuple[str, str]]:
    """Names that are the sum of two others in all calls, as the length of a mask is of a past and new tokens."""
    names = sorted(known[0]) if known else []
    found: dict[str, tuple[str, str]] = {}
    for total in names:
        for a, b in combinations([name for name in names if name != total], 2):
            if not {a, b} & found.keys() and all(one[total] == one[a] + one[b] for one in known):
                found[total] = (a, b)
    return found


def _draw(
    dims: Dims, ranges: Mapping[str, tuple[int, int | None]], given: Sequence[Arrays], random: np.random.Generator
) -> dict[str, int]:
    """A size for each name, within its range; at most 4 times what the calls have, where images are large."""
    known = [_sizes_of(dims, arrays) for arrays in given]
    total = sums(known)
    drawn: dict[str, int] = {}
    for name in sorted(known[0]):
        low, high = ranges.get(name, (0, None))
        seen = [one[name] for one in known]
        most = min(4 * max(seen), 4 * max(seen) if high is None else high)
        fits = [n for n in _SIZES if low <= n <= most]
        if min(seen) > _SIZES[-1]:  # samples of sound: a few of them are no call that makes sense
            fits = sorted(random.integers(max(low, min(seen)), most, len(_SIZES), endpoint=True).tolist())
        drawn[name] = int(random.choice(fits or [known[0][name]]))
    return drawn | {name: drawn[a] + drawn[b] for name, (a, b) in total.items()}


def array_like(
    given: Sequence[Arrays], name: str, shape: Sequence[int | str], sizes: Mapping[str, int], random: Any
) -> np.ndarray:
    """Numbers as the calls have them: masks of ones, positions in order, tokens of the same range, else normal ones."""
    example = given[0][name]
    wanted = [sizes[n] if isinstance(n, str) else n for n in shape]
    if example.dtype.kind == "f":
        return random.standard_normal(wanted).astype(example.dtype)
    if example.dtype == bool or (example.size and example.min() >= 0 and example.max() <= 1):
        return np.full(wanted, bool(example.reshape(-1)[0]), example.dtype)
    if example.ndim and (np.diff(example, axis=-1) == 1).all():
        return np.broadcast_to(np.arange(wanted[-1]), wanted).astype(example.dtype)
    return random.integers(example.min(), example.max(), wanted, endpoint=True).astype(example.dtype)


def main() -> None:
    """Run one and print."""
    folder, *rest = sys.argv[1:]
    print(json.dumps(open_sizes(Path(folder), rest[0] if rest else "cpu", int(rest[1]) if rest[1:] else 10)))


if __name__ == "__main__":
    main()
