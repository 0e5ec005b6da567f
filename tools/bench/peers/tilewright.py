# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tilewright itself, compiled for this CPU, writing into given arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import tilewright as tw
from bench import list_programs, own_lists
from bench.peers import Peer
from tilewright.core.options import CompileOptions
from tilewright.targets import registry

#: Types of inputs that say themselves what is asked for.
_NARROW = (onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT8, onnx.TensorProto.UINT8)


def compiled(
    model: Path,
    threads: int,
    precision: str = "f32",
    accuracy: str = "exact",
    inputs: Mapping[str, np.ndarray] | None = None,
    target: str = "cpu",
    cover: str = "",
    program: str = "",
    without: tuple[str, ...] = (),
    padded: str = "",
) -> Any:
    """The model compiled; one whose inputs all have a narrow type needs no choice of precision.

    Bytes are calibrated on `inputs`, without which f32 stays. A `program` is compiled in the model's place. Passes
    `without` are left out. `padded` is the input that is zero at padding.
    """
    if program:
        lists = list_programs.read(model, program)
        return tw.compile(own_lists.function(lists), target=target, threads=threads, shapes=lists.lengths)
    chosen: dict[str, Any] = {"accuracy": accuracy, "padded": padded}
    if precision != "f32" and (precision != "int8" or inputs is not None):
        declared = onnx.load(str(model), load_external_data=False).graph.input
        if not all(i.type.tensor_type.elem_type in _NARROW for i in declared):
            chosen["precision"] = precision
            if precision == "int8":
                chosen["calibration"] = dict(inputs or {})
    if cover:
        from bench.cover import pipeline

        chosen["pipeline"] = pipeline(target, cover)
    if without:
        whole = registry.parse_target(target).here().pipeline(CompileOptions())
        chosen["pipeline"] = whole.without(*without)
    return tw.compile(str(model), target=target, threads=threads, **chosen)


def expected(weights: Sequence[Mapping[str, Any]]) -> str:
    """What the plan predicts for products with pruned weights, on one core; nothing where there are none."""
    told = [one for one in weights if one["dense_ns"]]
    if not told:
        return ""
    ours = sum(one["ns"] if one["cover"] else one["dense_ns"] for one in told)
    dense = sum(one["dense_ns"] for one in told)
    covers = dict.fromkeys(", ".join(one["cover"]) or "dense" for one in told)
    return f"predicted: {ours * 1e-6:.3g} ms, dense {dense * 1e-6:.3g} ms ({'; '.join(covers)})"


class Tilewright(Peer):
    """`tw.compile(model, target="cpu", threads=...)`; compile time is part of `load`."""

    def version(self) -> str:
        """The package's version."""
        return tw.__version__

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Compile (or take from the cache) and allocate the outputs once."""
        asked = (precision, self.accuracy, inputs, self.target, self.cover, self.program, self.without, self.padded)
        self._model = compiled(model, threads, *asked)
        self.expected = expected(self._model.report_data().get("sparsity", []))
        self._arguments = list(inputs.values())
        if self.program:  # a tree is given as one, and becomes arrays in each run
            self._arguments = own_lists.arguments(list_programs.read(model, self.program), inputs)
        self._allocate(inputs)

    def _allocate(self, inputs: Mapping[str, np.ndarray]) -> None:
        self._inputs = self._arguments
        self._outputs = list(self._model(*self._inputs))

    def run(self) -> None:
        """Run once into the allocated outputs."""
        self._model(*self._inputs, out=self._outputs)

    def outputs(self) -> list[np.ndarray]:
        """The allocated arrays."""
        return self._outputs


PEER = Tilewright
