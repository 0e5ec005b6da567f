# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A machine as values: memory levels, execution units, limits."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import UserError
from tilewright.devices.mesh import Mesh
from tilewright.devices.rates import first_rate, limits_of_kind, rates_of_kind, unknown_rate

if TYPE_CHECKING:
    pass

LEVEL_KINDS = ("register", "cache", "addressable", "link", "network")


@dataclass(frozen=True)
class Level:
    """One level of the memory hierarchy.

    Attributes:
        name: e.g. ``l2``; the name that ``tile.group`` and ``#tile.level`` use.
        kind: ``register``; ``cache``: tiles are sized for it; ``addressable``: tiles are placed in it;
            ``link``, ``network``: what neighbours of a mesh, or hosts, exchange data through: nothing lies there.
        bytes: capacity of one instance.
        bandwidth: bytes per second that one unit moves to or from it; 0: not known.
        latency: seconds; 0: not known.
        transaction: bytes moved at once: a cache line, a vector.
        shared_by: how many units share one instance.
    """

    name: str
    kind: str
    bytes: int
    bandwidth: float = 0.0
    latency: float = 0.0
    transaction: int = 64
    shared_by: int = 1

    def __post_init__(self) -> None:
        """Check the kind and the sizes."""
        if self.kind not in LEVEL_KINDS:
            raise UserError(f"level '{self.name}' has kind '{self.kind}': use one of {', '.join(LEVEL_KINDS)}")
        for field in ("bytes", "transaction", "shared_by"):
            if getattr(self, field) < 1:
                raise UserError(f"level '{self.name}': {field} must be at least 1, not {getattr(self, field)}")


@dataclass(frozen=True)
class Units:
    """The execution units, all equal: cores of a CPU, multiprocessors of a GPU.

    Attributes:
        count: how many.
        vector_bits: width of a vector register.
        registers: vector registers that a program can name.
        frequency: hertz under vector load.
        peak: (dtype, operations per second of one unit) pairs, a fused multiply-add counting as two.
    """

    count: int
    vector_bits: int
    registers: int
    frequency: float
    peak: tuple[tuple[str, float], ...] = ()

    def peak_of(self, dtype: str) -> float:
        """Return operations per second of one unit for ``dtype`` (``f32``, ``bf16``, ``i8``, ...).

        Raises:
            UserError: the description has no peak for it.
        """
        peaks = dict(self.peak)
        if dtype not in peaks:
            raise UserError(f"the device description has no peak for '{dtype}': it has {', '.join(peaks) or 'none'}")
        return peaks[dtype]


@dataclass(frozen=True)
class Device:
    """A machine.

    Attributes:
        name: what reports call it.
        kind: ``cpu``, ``gpu`` or ``mesh``.
        levels: nearest to the units first.
        units: the execution units.
        cpu: LLVM's CPU name (kind ``cpu``).
        features: LLVM's features, sorted (kind ``cpu``).
        limits: (name, value) pairs, e.g. ``threads``: how many may run.
        rates: (name, number) pairs that the performance model takes, see ``devices/README.md``.
        source: where the numbers come from: ``detected``, ``estimated``, ``measured`` or a document.
        mesh: the grid of its cores (kind ``mesh``).
    """

    name: str
    kind: str
    levels: tuple[Level, ...]
    units: Units
    cpu: str = ""
    features: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    source: str = ""
    rates: tuple[tuple[str, float], ...] = ()
    mesh: Mesh | None = None

    def level(self, name: str) -> Level:
        """Return the level of that name.

        Raises:
            UserError: there is none.
        """
        for level in self.levels:
            if level.name == name:
                return level
        raise UserError(
            f"device '{self.name}' has no level '{name}': it has {', '.join(level.name for level in self.levels)}"
        )

    @property
    def memory(self) -> Level:
        """Return the farthest level that holds data: where tensors lie that no cache keeps."""
        return next(level for level in reversed(self.levels) if level.kind not in ("link", "network"))

    def lanes(self, bits: int) -> int:
        """Return how many elements of ``bits`` bits a vector register holds."""
        return max(1, self.units.vector_bits // bits)

    def limit(self, name: str, default: int) -> int:
        """Return a limit, or ``default`` where neither the description nor its kind has one of that name."""
        return self.all_limits.get(name, default)

    @property
    def all_limits(self) -> dict[str, int]:
        """The limits of its kind and its own, which go before."""
        return {**limits_of_kind(self.kind), **dict(self.limits)}

    @property
    def chains(self) -> int:
        """Return how many multiply-adds under way, independent of each other, keep the pipes of a CPU's core busy."""
        return self.limit("fma_latency", 4) * self.limit("fma_pipes", 2)

    def rate(self, *names: str) -> float:
        """Return a rate: the description's own, or that of its kind (``kinds/KIND.toml``).

        Args:
            names: which one, and others that stand for it where it is not known, e.g. ``l3.store``, ``level.store``.

        Raises:
            InternalError: none is known: a planner asks for what nobody declared.
        """
        return first_rate(self._rates, names, f"device '{self.name}'", self.kind)

    @functools.cached_property
    def _rates(self) -> dict[str, float]:
        return {**rates_of_kind(self.kind), **dict(self.rates)}

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values, as in the TOML files; empty parts are left out."""
        units = dataclasses.asdict(self.units)
        units["peak"] = dict(self.units.peak)
        values = {
            "name": self.name,
            "kind": self.kind,
            "source": self.source,
            "cpu": self.cpu,
            "features": list(self.features),
            "levels": [dataclasses.asdict(level) for level in self.levels],
            "units": units,
            "limits": dict(self.limits),
            "rates": dict(self.rates),
            "mesh": self.mesh.to_dict() if self.mesh else {},
        }
        return {name: value for name, value in values.items() if value not in ("", [], {})}

    @staticmethod
    def from_dict(values: Mapping[str, Any], where: str = "device description") -> Device:
        """Return the device of plain values; limits that its kind has anyway are left out, so that equals are equal.

        Raises:
            UserError: a value is missing, unknown or of a wrong type; the message starts with ``where``.
        """
        rest = dict(values)
        try:
            levels = tuple(Level(**level) for level in rest.pop("levels"))
            units = dict(rest.pop("units"))
            peak = tuple(sorted((name, float(value)) for name, value in units.pop("peak", {}).items()))
            usual = limits_of_kind(rest.get("kind", ""))
            limits = {name: value for name, value in rest.pop("limits", {}).items() if usual.get(name) != value}
            mesh = Mesh.from_dict(rest.pop("mesh")) if "mesh" in rest else None
            made = Device(
                levels=levels,
                mesh=mesh,
                units=Units(peak=peak, **units),
                features=tuple(rest.pop("features", ())),
                limits=tuple(sorted(limits.items())),
                rates=tuple(sorted((name, float(value)) for name, value in rest.pop("rates", {}).items())),
                **rest,
            )
        except KeyError as error:
            raise UserError(f"{where}: {error} is missing") from None
        except (TypeError, AttributeError) as error:
            raise UserError(f"{where}: {error}") from None
        wrong = unknown_rate(made.kind, dict(made.rates), [level.name for level in made.levels])
        if wrong:
            raise UserError(f"{where}: {wrong}")
        return made
