# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target ``cpu``: this machine, an x86 CPU by LLVM's name, or a described one."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import UserError
from tilewright.targets.base import Finding, Target
from tilewright.targets.rules import NARROW, NOT_EXACT, Rule

if TYPE_CHECKING:
    from tilewright.core.options import CompileOptions
    from tilewright.devices import Device
    from tilewright.passes.pipeline import Pipeline

HOST = ("cpu", "cpu:native")

#: Features that compiled code can depend on; others (key locker, ...) are never used by generated code.
_USED = frozenset(
    (
        "sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 fma f16c bmi bmi2 lzcnt movbe avxvnni gfni avx512f avx512bw avx512cd "
        "avx512dq avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq avx512bf16 "
        "avx512fp16 amx-tile amx-bf16 amx-int8"
    ).split()
)


class CpuTarget(Target):
    """An x86 CPU: code is a shared object, made by LLVM."""

    kind = "cpu"
    forms = (
        "cpu (this machine)",
        "cpu:NAME (any x86 CPU that LLVM knows, e.g. cpu:znver5 or cpu:x86-64-v3)",
        "cpu:FILE.toml (a described machine)",
    )
    precisions = ("f32", "bf16", "int8")
    accuracies = ("exact", "winograd", "winograd4")
    appends = True
    rules = (
        Rule(
            lambda t, o: o.precision == "int8" and not t.multiplies_bytes,
            "{t.name} has no instruction for products of bytes (VNNI): use precision='bf16' or 'f32'",
        ),
        Rule(
            lambda t, o: o.accuracy != "exact" and o.precision != "f32",
            f"{NOT_EXACT} is for sums of f32 products: leave it out with {NARROW}",
        ),
    )

    def check_name(self) -> None:
        """Take every string: whether LLVM knows the machine is seen when it is asked for."""

    def here(self) -> Target:
        """Return the target, of a machine that there is."""
        _ = self.device
        return self

    @property
    def is_host(self) -> bool:
        """Whether it is this machine."""
        return self.name in HOST

    @property
    def words(self) -> str:
        """The name of this machine's CPU, where it is that."""
        if not self.is_host:
            return self.name
        from tilewright.runtime.cpu.cpu_features import cpuinfo

        return f"this CPU: {cpuinfo().get('model name', platform.machine())}"

    @property
    def tunes(self) -> bool:
        """On this machine only."""
        return self.is_host

    @functools.cached_property
    def device(self) -> Device:
        """The description that planning sees."""
        from tilewright import devices

        return devices.get(self.name)

    @property
    def cpu(self) -> str:
        """LLVM's name of the CPU."""
        return self.device.cpu

    @functools.cached_property
    def features(self) -> str:
        """LLVM's feature string."""
        from tilewright.devices.llvm_target import llvm_target

        return llvm_target(self.device)[1]

    @functools.cached_property
    def needed(self) -> tuple[str, ...]:
        """Features that the machine which runs the code must have."""
        needed = _USED & set(self._features)
        if self.is_host:
            # The kernel may hide a feature that the CPU reports; what this machine compiles must load here.
            from tilewright.runtime.cpu.cpu_features import host_features

            needed &= host_features()
        return tuple(sorted(needed))

    @property
    def _features(self) -> tuple[str, ...]:
        from tilewright.devices.llvm_target import cpu_features

        return cpu_features(self.device)[0]

    @property
    def multiplies_bytes(self) -> bool:
        """Whether there is an instruction for products of bytes."""
        from tilewright.devices.x86 import dot_products

        return "i8" in dot_products(self.device.features)

    def code_key(self) -> str:
        """This machine, with what was measured of it; a described one, whose file may have changed."""
        if self.is_host:
            from tilewright.core import cache
            from tilewright.devices import measured

            path = measured.find()  # what `tilewright devices --measure` kept: plans follow from it
            return cache.host_id() + (path.read_text() if path is not None else "")
        return repr(self.device) if self.name.endswith(".toml") else ""

    def products(self, root: Any, precision: str) -> Sequence[Any]:
        """Products with weights; instructions take no windows."""
        from tilewright.plan.lowbit.narrow_products import products

        return products(root)

    @classmethod
    def findings(cls) -> Sequence[tuple[str, Callable[[], Finding]]]:
        """The linker."""
        from tilewright.targets.cpu.linker import finding

        return (("linker", finding),)

    def pipeline(self, options: CompileOptions) -> Pipeline:
        """Return layer 1 to the llvm dialect."""
        from tilewright.pipelines.cpu import PIPELINE

        return PIPELINE

    def executes(self, module: Any) -> bool:
        """Whether there is an entry of the llvm dialect."""
        from tilewright.ir.units import symbol_of
        from tilewright.targets.cpu.symbols import ENTRY

        ops = (op.operation for op in module.regions[0].blocks[0].operations)
        return any(op.name == "llvm.func" and symbol_of(op) == ENTRY for op in ops)

    def emit(self, work: Any, folder: Path) -> None:
        """Write a shared object, weights and manifest."""
        from tilewright.targets.cpu.emit import emit

        emit(work, folder)

    @classmethod
    def load(cls, artifact: Any, threads: int | None, emulate: bool | Mapping[str, Any]) -> Any:
        """Return a :class:`tilewright.Model`; where this CPU lacks features, one that can be saved and looked at."""
        from tilewright.runtime.cpu import cpu_features
        from tilewright.runtime.cpu.model import Model
        from tilewright.runtime.cpu.other_cpu import OtherCpuModel

        manifest = artifact.manifest
        try:
            cpu_features.check_host(manifest.cpu_features, f"the model {artifact.path}", manifest.cpu or "another CPU")
        except UserError as error:
            return OtherCpuModel(artifact, str(error))
        return Model(artifact, threads=threads)
