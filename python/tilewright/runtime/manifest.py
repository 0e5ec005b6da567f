# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""manifest.json: what a compiled model is, as typed values."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from tilewright.core.errors import UserError

FORMAT = "tilewright-model"
#: Raised by any change that an older run-time cannot read.
VERSION = 1
#: Of a model that has what run-times of the first version do not know.
_APPENDING = 2


@dataclass(frozen=True)
class Shortest:
    """How long each list is at least whose offsets an input has.

    Attributes:
        length: so many elements.
        element: the index that the program reads.
        location: where, a line of the user's program.
    """

    length: int
    element: int
    location: str


@dataclass(frozen=True)
class TensorSpec:
    """Name, element type (``f32``, ``i64`` ...) and shape of an input, output or weight.

    A size of -1 is known at run time only; as a model shows it, it has a name. Offsets of lists may have a least
    length.
    """

    name: str
    dtype: str
    shape: tuple[Any, ...]
    shortest: Shortest | None = None

    def __str__(self) -> str:
        """Return ``name: 1x128xf32``, or ``name: [batch, 128] f32`` where sizes have names."""
        sizes = ["?" if size == -1 else str(size) for size in self.shape]
        if any(isinstance(size, str) for size in self.shape):
            return f"{self.name}: [{', '.join(sizes)}] {self.dtype}"
        return f"{self.name}: {'x'.join([*sizes, self.dtype])}"

    @property
    def is_static(self) -> bool:
        """Whether all sizes are known before a run, and have no names instead."""
        return all(isinstance(size, int) and size >= 0 for size in self.shape)


@dataclass(frozen=True)
class KernelInfo:
    """One kernel of the code: its name in the IR, its symbol, and what the report says of it."""

    name: str
    symbol: str
    launches: int = 1
    tasks: int | None = None
    scratch_bytes: int = 0
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """All of manifest.json.

    `weights` stand in the order in which the entry takes them: inputs, outputs, weights, then the arena. `code_files`
    are the files that `code_sha256` covers; a model for a CPU has none here, but one shared object. `appends`: output,
    input and axis of each output that is an input with rows behind it, and is written in its memory.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    weights: tuple[TensorSpec, ...] = ()
    arena_bytes: int = 0
    entry: str = "tw_main"
    kernels: tuple[KernelInfo, ...] = ()
    target: str = "cpu"
    cpu: str = ""
    cpu_features: tuple[str, ...] = ()
    runtime_abi: int = 4
    code_sha256: str = ""
    code_files: tuple[str, ...] = ()
    appends: tuple[tuple[int, ...], ...] = ()
    producer: str = ""
    compile: dict[str, Any] = field(default_factory=dict)

    def dumps(self) -> str:
        """Return the JSON text."""
        version = _APPENDING if self.appends else VERSION
        return json.dumps({"format": FORMAT, "version": version, **asdict(self)}, indent=1)

    @property
    def kind(self) -> str:
        """The kind of its target, e.g. ``cpu`` or ``cuda``."""
        return self.target.partition(":")[0]

    @classmethod
    def loads(cls, text: str | bytes, where: str = "manifest.json") -> Manifest:
        """Parse the JSON text.

        Args:
            text: what :meth:`dumps` returned.
            where: the file, for errors.

        Raises:
            UserError: not JSON, not a Tilewright model, of another format version, or with missing fields.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise UserError(f"{where} is not valid JSON ({error}); the model is damaged, compile it again") from None
        _check_header(data, where)
        try:
            return cls(**_convert(data))
        except (TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{where} lacks or mistypes a field ({error}); compile the model again") from None


def _check_header(data: Any, where: str) -> None:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UserError(f"{where} is not a compiled Tilewright model")
    version = data.get("version")
    if version not in (VERSION, _APPENDING):
        advice = "update tilewright" if isinstance(version, int) and version > VERSION else "compile the model again"
        raise UserError(
            f"{where} has format version {version}, this run-time reads {VERSION} and {_APPENDING}: {advice}"
        )


def _convert(data: dict[str, Any]) -> dict[str, Any]:
    known = {key: data[key] for key in Manifest.__dataclass_fields__ if key in data}
    for key in ("inputs", "outputs", "weights"):
        known[key] = tuple(spec_of(given) for given in known.get(key, ()))
    known["kernels"] = tuple(KernelInfo(**kernel) for kernel in known.get("kernels", ()))
    known["appends"] = tuple(tuple(map(int, numbers)) for numbers in known.get("appends", ()))
    for key in ("cpu_features", "code_files"):
        known[key] = tuple(known.get(key, ()))
    return known


def spec_of(given: dict[str, Any]) -> TensorSpec:
    """The specification that `dataclasses.asdict` made a dictionary of."""
    least = given.get("shortest")
    shape = tuple(map(int, given["shape"]))
    return TensorSpec(given["name"], given["dtype"], shape, Shortest(**least) if least else None)
