# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is broken on purpose: the kernels of compiled models, and the prototypes of test/python/sim/ptx."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensor_kernels

from faulting.cases import CASES, code_of, inputs_of
from tilewright.sim import ptx as emulate
from tilewright.targets.loading import load as load_model


class Model:
    """A compiled model on the emulator; what it computes without a fault is the truth.

    Args:
        folder: what `model.save` wrote, of a target for GPUs, with inputs of known sizes.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        case = CASES.get(Path(folder).name.partition("@")[0])
        self._gpu = case.gpu if case else {}
        model = load_model(folder, emulate=self._gpu)
        self.inputs = inputs_of(model, case)
        self.expected = [np.array(array) for array in model(*self.inputs)]
        self.modules = {name.removesuffix(".ptx"): text for name, text in model.ptx().items()}
        again = self._run({}, emulate.Options(seed=1))
        self._repeats = all(a.tobytes() == b.tobytes() for a, b in zip(again, self.expected, strict=True))

    def run(self, original: str, text: str, options: emulate.Options) -> None:
        """Run with one module replaced.

        With checks a result counts as wrong where a test against the reference would see it; without, where it is not
        the same bits (sums by atomics, which have no fixed order, aside). Raises AssertionError for a wrong one.
        """
        results = self._run({original.rstrip("\0"): text}, options)
        exact = self._repeats and not options.checks
        for found, expected in zip(results, self.expected, strict=True):
            assert found.tobytes() == expected.tobytes() if exact else _near(found, expected)

    def _run(self, replace: Mapping[str, str], options: emulate.Options) -> list[np.ndarray]:
        model = load_model(self.folder, emulate={"options": options, "replace": replace, **self._gpu})
        return [np.asarray(array) for array in model(*self.inputs)]


def _near(found: np.ndarray, expected: np.ndarray) -> bool:
    wide = expected.astype(np.float64)
    largest = np.abs(wide[np.isfinite(wide)]).max(initial=0)
    slack = 0.0 if expected.dtype.kind in "iub" else largest * (2e-5 if expected.dtype.itemsize > 2 else 2**-7)
    return bool(np.allclose(found.astype(np.float64), wide, rtol=0, atol=slack, equal_nan=True))


class Prototype:
    """A kernel of test/python/sim/ptx/ptx."""

    def __init__(self, name: str) -> None:
        self.case = tensor_kernels.cases()[name]
        self.modules = {name: self.case.ptx()}

    def run(self, original: str, text: str, options: emulate.Options) -> None:
        """Run another text. Raises AssertionError for a wrong result."""
        self.case.check(emulate.load(text), options)


def prototypes() -> list[str]:
    """Names of the prototypes."""
    return list(tensor_kernels.cases())


def generate(folder: Path, only: str) -> dict[str, str]:
    """Compile the generated cases whose names hold a part of `only` (parts between commas); {name: folder}.

    Raises ValueError where the compiler makes another kind of kernel of a case.
    """
    made = {}
    for name, case in CASES.items():
        for arch in case.archs:
            label = f"{name}@{arch}"
            if not any(part in label for part in only.split(",")):
                continue
            model = case.compile(arch)
            case.check(code_of(model))
            made[label] = str(model.save(folder / label))
    return made


@functools.cache
def subject(place: str) -> Model | Prototype:
    """What is mutated: a folder, or a prototype's name."""
    return Prototype(place) if place in tensor_kernels.cases() else Model(place)
