# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user chose for one compilation, as one value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core import config
from tilewright.core.errors import UserError

if TYPE_CHECKING:
    from tilewright.passes.pipeline import Pipeline

PHASES = ("import", "normalize", "plan", "tile", "schedule", "lower", "emit")
PRECISIONS = ("f32", "tf32", "bf16", "int8", "fp8-fast")
ACCURACIES = ("exact", "winograd", "winograd4", "fast")
#: Code for all sizes where it can be compiled; for all or an error; for each set of sizes that a call brings.
SIZES = ("auto", "general", "each")
#: Fields that the code does not depend on: how it is run, what is looked at on the way, how tiles were found.
_NOT_IN_CODE = frozenset({"threads", "emulate", "stop_after", "dump_ir", "tune", "calibration", "sizes"})


@dataclass(frozen=True)
class CompileOptions:
    """All options of :func:`tilewright.compile` but the target, and what compilation itself found out about them.

    Attributes:
        threads: threads per call of the result; None: all CPUs.
        precision: one of :data:`PRECISIONS`, the type of products with weights.
        calibration: what the ranges of activations are observed on, for ``int8``.
        accuracy: one of :data:`ACCURACIES`, what may be rounded more.
        tune: seconds to measure candidates of tiles.
        opt_level: LLVM's optimization level, 0 to 3.
        shapes: sizes of symbolic dimensions, their ranges, or whole shapes, by name.
        sizes: one of :data:`SIZES`: what dimensions that `shapes` leaves open get.
        symbolic: compile for all sizes of the dimensions that `shapes` leaves open.
        cubin: for a GPU, machine code beside the PTX.
        emulate: for a GPU, run the code on the emulator; True, or its options.
        start_from: name of the phase behind which the given IR stands; None: it is a model.
        stop_after: name of the last phase to run; None: all.
        dump_ir: folder that receives the IR after each phase.
        pipeline: passes instead of the target's own.
        choices: KERNEL:NUMBER texts: candidates that kernels take instead of the first one.
        ranges: LOW:HIGH texts: what calibration saw of each product that becomes narrow.
        resident: weights stay in the memories of a mesh's cores: where these cannot hold them, that is an error.
        padded: name of the input that is zero at padding, whose results nobody reads; else empty.
        checks: of kernels by hand, accesses that may reach out of their arguments are refused, or checked as they run.
        append_in_place: results that are an input with rows behind it are written behind it, in its memory.
        sanitize: ``address`` where code for a CPU checks its accesses to memory (TILEWRIGHT_SANITIZE), else empty.
    """

    threads: int | None = None
    precision: str = "f32"
    calibration: Any = None
    accuracy: str = "exact"
    tune: float = 0.0
    opt_level: int = 3
    shapes: tuple[tuple[str, Any], ...] = ()
    sizes: str = "auto"
    symbolic: bool = False
    cubin: bool = False
    emulate: bool | Mapping[str, Any] = False
    start_from: str | None = None
    stop_after: str | None = None
    dump_ir: Path | None = None
    pipeline: Pipeline | None = None
    choices: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    resident: bool = False
    padded: str = ""
    checks: bool = True
    append_in_place: bool = False
    sanitize: str = dataclasses.field(default_factory=config.sanitize.get)

    def __post_init__(self) -> None:
        """Check the names of phases."""
        if self.stop_after is not None and self.stop_after not in PHASES:
            raise UserError(f"there is no phase {self.stop_after!r}; the phases are {', '.join(PHASES)}")
        if self.start_from is None:
            return
        if self.start_from not in PHASES[:-1]:
            raise UserError(f"nothing begins behind {self.start_from!r}; the phases are {', '.join(PHASES[:-1])}")
        if self.stop_after is not None and PHASES.index(self.stop_after) <= PHASES.index(self.start_from):
            raise UserError(f"stop_after={self.stop_after!r} is not behind start_from={self.start_from!r}")

    @property
    def is_decided(self) -> bool:
        """Whether the IR that was given holds decisions, which are not taken again: those of phase `plan`."""
        return self.start_from not in (None, *PHASES[:2])

    @property
    def is_plain(self) -> bool:
        """Whether products and functions are what the model asks for."""
        return self.precision == "f32" and self.accuracy == "exact"

    def plain(self) -> CompileOptions:
        """The options of the model that this one's error is measured against."""
        return dataclasses.replace(
            self, precision="f32", accuracy="exact", calibration=None, ranges=(), dump_ir=None, tune=0.0
        )

    def code_key(self) -> str:
        """Text of all that the code depends on, the calibration data aside."""
        names = [entry.name for entry in dataclasses.fields(self) if entry.name not in _NOT_IN_CODE]
        return repr([(name, str(getattr(self, name))) for name in names])


def shape_items(shapes: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Return shapes as :class:`CompileOptions` keeps them: sorted by name, lists as tuples.

    Raises:
        UserError: it is no mapping of names to sizes.
    """
    try:
        items = [(str(k), _frozen(v)) for k, v in (shapes or {}).items()]
    except (TypeError, ValueError, AttributeError):
        raise UserError(f"shapes must map names to sizes, as in {{'batch': 1}}, got {shapes!r}") from None
    return tuple(sorted(items, key=lambda item: item[0]))


def _frozen(size: Any, within: bool = False) -> Any:
    """A size, a shape, the shapes of a sequence's tensors, or None for an optional that holds nothing.

    Within a shape "ragged" says that lists of a level have lengths of their own.
    """
    if size is None or (within and size == "ragged"):
        return size
    if isinstance(size, str):
        raise TypeError("a size is a number")
    return tuple(_frozen(part, within=True) for part in size) if hasattr(size, "__iter__") else int(size)
