# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every compiled model has, whatever runs it: a signature, a manifest, a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from tilewright.core.dtypes import item_bytes
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.binding import Signature
from tilewright.runtime.manifest import KernelInfo, TensorSpec


def _numbered(spec: TensorSpec) -> tuple[int | str, ...]:
    """The sizes of an input whose open dimensions have no names."""
    return tuple(f"{spec.name}[{axis}]" if size < 0 else size for axis, size in enumerate(spec.shape))


class CompiledModel:
    """Base of the models that an artifact holds.

    Args:
        artifact: the compiled model on disk.
    """

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._manifest = artifact.manifest
        names = self._manifest.compile.get("dims", {})
        self._signature = Signature(self._manifest.inputs, self._manifest.outputs, names)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype and shape of each input, in order; a size that each call brings has a name, or is -1."""
        return self._named(self._manifest.inputs)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype and shape of each output, in order.

        Sizes that follow from those of a call are names, or sums and products of names (``past + sequence``); a size
        of -1 is known after the run only.
        """
        return self._named(self._manifest.outputs)

    def _named(self, specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        named = self._manifest.compile.get("dims", {})
        return tuple(replace(spec, shape=tuple(named.get(spec.name, spec.shape))) for spec in specs)

    @property
    def ranges(self) -> dict[str, tuple[int, int | None]]:
        """For each symbolic dimension the least and the largest size that the model takes (None: any)."""
        return {name: (low, high) for name, (low, high) in self._manifest.compile.get("ranges", {}).items()}

    @property
    def dims(self) -> dict[str, tuple[int | str, ...]]:
        """For each input its sizes, with a name for each that a call brings."""
        named = self._manifest.compile.get("dims", {})
        return {spec.name: tuple(named.get(spec.name, _numbered(spec))) for spec in self._manifest.inputs}

    @property
    def boundary(self) -> dict[str, Any] | None:
        """What is done in Python around the code for strings and maps (`runtime.text`); None where nothing is."""
        return self._manifest.compile.get("boundary")

    @property
    def kernels(self) -> tuple[KernelInfo, ...]:
        """What the manifest says of each kernel."""
        return self._manifest.kernels

    @property
    def target(self) -> str:
        """The target it was compiled for."""
        return self._manifest.target

    @property
    def threads(self) -> int:
        """Threads, or units of another kind, that share the work of a call."""
        return 1

    @property
    def held_bytes(self) -> dict[str, int]:
        """Bytes that the model holds: ``weights``, ``arena``."""
        weights = sum(prod(spec.shape) * item_bytes(spec.dtype) for spec in self._manifest.weights)
        return {"weights": weights, "arena": self._manifest.arena_bytes}

    @property
    def runs_on(self) -> str:
        """What runs a call, in words."""
        return f"{self.threads} thread(s)"

    @property
    def path(self) -> Path:
        """The folder or archive that holds the model."""
        return self._artifact.path

    def save(self, path: str | Path) -> Path:
        """Save the model: one file for a name ending in ``.tw`` or ``.zip``, a folder otherwise. Returns the path."""
        return self._artifact.save(path)

    def explain(self, path: str | Path | None = None, *, measure: bool = True) -> str:
        """Return a self-contained HTML page about the model, and write it to `path` if given.

        Args:
            path: the file to write, `.html`.
            measure: run the model a few times on random inputs and show each kernel's time.

        Raises:
            UserError: the ending of `path` is that of no page.
        """
        from tilewright.report import render
        from tilewright.report.document import check_page

        if path is not None:
            check_page(path)
        page = render(self, measure=measure)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def report_data(self) -> dict[str, Any]:
        """Return what the compiler recorded about this model (phases, times, decisions); may be empty."""
        return self._artifact.report()

    def _signature_text(self) -> str:
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"({inputs}) -> ({outputs}), target {self.target}"
