# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Target ``cuda``: an NVIDIA GPU by its architecture, or this machine's."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.architectures import CUDA
from tilewright.core.errors import UserError
from tilewright.targets.base import Finding, Target
from tilewright.targets.rules import Rule

if TYPE_CHECKING:
    from tilewright.core.options import CompileOptions
    from tilewright.devices import Device
    from tilewright.passes.pipeline import Pipeline


class CudaTarget(Target):
    """An NVIDIA GPU: code is a PTX module for each kernel, and a host program that launches them."""

    kind = "cuda"
    forms = ("cuda (this GPU)", *(f"cuda:{arch}" for arch in CUDA))
    precisions = ("f32", "tf32", "bf16", "int8", "fp8-fast")
    accuracies = ("exact", "fast")
    many_threads = True
    emulates = True
    assembles = True
    rules = (
        Rule(
            lambda t, o: bool(o.tune) and o.emulate is not False,
            "tune= measures on a GPU, and the emulator has no clock: leave emulate= or tune= out",
        ),
        Rule(
            lambda t, o: bool(o.tune) and not _has_gpu(),
            "tune= measures on this machine's GPU, and there is no NVIDIA GPU with a driver here: leave it out (tiles "
            "then follow from the description of the device, by predicted time), or compile where the GPU is",
        ),
        Rule(lambda t, o: bool(_unknown_options(o)), lambda t, o: _unknown_options(o)),
        Rule(
            lambda t, o: o.cubin and not _has_assembler(),
            "cubin=True needs NVIDIA's assembler, and no ptxas was found: install the CUDA toolkit, name the program "
            "in TILEWRIGHT_PTXAS, or leave cubin= out (the GPU's driver then assembles the PTX when the model is "
            "loaded)",
        ),
    )

    def check_name(self) -> None:
        """Refuse architectures that code is not made for."""
        if self.name != self.kind and self.cpu not in CUDA:
            raise _unknown_gpu(self.name)

    def here(self) -> Target:
        """Return this machine's GPU where none is named."""
        return self if self.cpu else CudaTarget(f"cuda:{present_arch()}")

    @functools.cached_property
    def device(self) -> Device:
        """The description that planning sees."""
        from tilewright import devices

        return devices.get(self.here().name)

    @property
    def cpu(self) -> str:
        """The architecture, e.g. ``sm_90a``."""
        return self.name.partition(":")[2]

    @property
    def features(self) -> str:
        """The version of PTX."""
        return CUDA[self.cpu]

    @property
    def tunes(self) -> bool:
        """Where there is such a GPU, which a rule asks."""
        return True

    def tuning_key(self) -> str:
        """Times of one GPU say nothing of another of its architecture."""
        from tilewright.core import cache
        from tilewright.runtime.gpu.cuda import CudaDevice

        with CudaDevice() as device:
            return "-" + cache.digest(device.name)

    def runs(self, options: CompileOptions) -> bool:
        """On the emulator only: compiling does not take a GPU's time."""
        return bool(options.emulate)

    @property
    def needs_emulator(self) -> bool:
        """Whether this machine has no GPU."""
        return not _has_gpu()

    def products(self, root: Any, precision: str) -> Sequence[Any]:
        """All products that tensor cores do: with windows, too, in bf16 those of two activations; those of float8."""
        if precision == "tf32":
            from tilewright.plan.gpu.allow_tf32 import wide_products

            return wide_products(root)
        if precision == "fp8-fast":
            from tilewright.plan.gpu.promote_float8 import float8_products

            return float8_products(root)
        from tilewright.plan.lowbit.narrow_products import products

        return products(root, True, precision == "bf16")

    @classmethod
    def findings(cls) -> Sequence[tuple[str, Callable[[], Finding]]]:
        """The GPU and the assembler."""
        from tilewright.targets.cuda import ptxas

        return (("gpu", _gpu_finding), ("ptxas", ptxas.finding))

    def pipeline(self, options: CompileOptions) -> Pipeline:
        """Return layer 1 to the llvm and nvvm dialects."""
        from tilewright.pipelines.cuda import PIPELINE

        return PIPELINE

    def states(self) -> Pipeline:
        """All but phase `lower`: what that makes is for the emulator, which runs models as they ship."""
        whole = super().states()
        return replace(whole, phases=tuple(phase for phase in whole.phases if phase.name != "lower"))

    def after_phase(self, work: Any, phase: str) -> None:
        """Export the host program of the scheduled module: phase `lower` takes the host function away."""
        if phase == "schedule":
            from tilewright.targets.cuda.emit import export_host

            export_host(work)

    def kept_as_text(self, work: Any) -> str:
        """The host program, once phase `lower` has taken the host function away."""
        from tilewright.targets.cuda.emit import host_as_text

        return host_as_text(work)

    def keep_text(self, work: Any, text: str) -> None:
        """Keep the host program again."""
        from tilewright.targets.cuda.emit import keep_host

        keep_host(work, text)

    def emit(self, work: Any, folder: Path) -> Any:
        """Write host program, PTX and weights; where ptxas refuses tiles, return the compilation with others."""
        from tilewright.targets.cuda import runner_up

        return runner_up.emit(work, folder)

    @classmethod
    def load(cls, artifact: Any, threads: int | None, emulate: bool | Mapping[str, Any]) -> Any:
        """Return a :class:`~tilewright.runtime.gpu.gpu_model.GpuModel`."""
        from tilewright.runtime.gpu.gpu_model import GpuModel

        wanted = bool(emulate) or emulate == {}
        return GpuModel(artifact, functools.partial(_emulator, emulate) if wanted else None)


def _emulator(emulate: bool | Mapping[str, Any], arch: str) -> Any:
    """The emulator of a GPU, with its options if `emulate` holds some.

    Raises:
        UserError: it has no such option.
    """
    from tilewright.sim import ptx

    options = emulate if isinstance(emulate, Mapping) else {}
    unknown = ptx.unknown_options(options)
    if unknown:
        raise UserError(unknown)
    return ptx.Device(arch=arch, **options)


def _has_gpu() -> bool:
    from tilewright.runtime.gpu import cuda

    return cuda.available()


def _has_assembler() -> bool:
    from tilewright.targets.cuda import ptxas

    return ptxas.find() is not None


def _unknown_options(options: CompileOptions) -> str:
    """What is wrong with options of the emulator, if anything."""
    if not isinstance(options.emulate, Mapping):
        return ""
    from tilewright.sim import ptx as emulate

    return emulate.unknown_options(options.emulate) or ""


def _gpu_finding() -> Finding:
    from tilewright.runtime.gpu import cuda

    if not cuda.available():
        return "note", "no NVIDIA GPU with a driver; cuda targets compile here, and run on the emulator (emulate=True)"
    return "ok", f"NVIDIA GPU, {cuda.arch()}: target 'cuda'"


def _unknown_gpu(text: str) -> UserError:
    """Why there is no code for a GPU, and which target is meant, as far as its name tells."""
    number = re.fullmatch(r"cuda:(?:sm_|compute_)?(\d+)[af]?", text)
    named = " and ".join(f"cuda:{arch}" for arch in CUDA)
    if number is None:
        hint = (
            "an architecture is meant, as in cuda:sm_90a for H100 and H200, cuda:sm_80 for A100 and what came between"
        )
    elif int(number[1]) < 80:
        hint = f"sm_{number[1]} is too old: kernels need the asynchronous copies of sm_80 (A100)"
    elif number[1] == "90":
        hint = "cuda:sm_90a is meant: the instructions of H100 and H200 that kernels use have the suffix"
    else:
        hint = "this GPU runs the code of cuda:sm_80"
    return UserError(f"unknown GPU {text!r}: code is made for {named}; {hint}")


def present_arch() -> str:
    """Return the architecture to make code of for this machine's GPU.

    Raises:
        UserError: there is none, or one that is too old.
    """
    from tilewright.runtime.gpu import cuda

    named = " or ".join(f"cuda:{arch}" for arch in CUDA)
    if not cuda.available():
        raise UserError(f"target 'cuda' is this machine's GPU, and there is none: name one, as in {named}")
    arch = cuda.arch()
    number = int("".join(c for c in arch if c.isdigit()))
    if number < 80:
        raise UserError(f"this machine's GPU is an {arch}; code is made for {named} and later ones")
    return "sm_90a" if number == 90 else "sm_80"
