# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of what :func:`tilewright.compile` accepts: each rule with its error, in the order they are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import UserError

PRECISIONS = ("f32", "tf32", "bf16", "int8")
ACCURACIES = {"exact": (), "winograd": (2,), "winograd4": (2, 4), "fast": ()}
"""The choices of accuracy, with the tiles that `tile-winograd` may take for each."""


@dataclass(frozen=True)
class Choices:
    """What a user gave to :func:`tilewright.compile`, as far as one choice may exclude another."""

    target: str = "cpu"
    pipeline: Any = None
    opt_level: int = 3
    tune: float = 0.0
    precision: str = "f32"
    calibration: Any = None
    accuracy: str = "exact"
    emulate: Any = False
    cubin: bool = False

    @property
    def is_cpu(self) -> bool:
        """Whether the target is a CPU with the pipeline that is its own."""
        return self.target.partition(":")[0] == "cpu" and self.pipeline is None

    @property
    def is_cuda(self) -> bool:
        """Whether the target is an NVIDIA GPU."""
        return self.target.partition(":")[0] == "cuda"

    @property
    def is_own(self) -> bool:
        """Whether the target is a CPU or an NVIDIA GPU with the pipeline that is its own."""
        return self.is_cpu or (self.is_cuda and self.pipeline is None)

    @property
    def is_host(self) -> bool:
        """Whether what is compiled runs on this machine."""
        from tilewright.targets.target import HOST

        return self.target in HOST

    @property
    def has_gpu(self) -> bool:
        """Whether this machine has an NVIDIA GPU with a driver."""
        from tilewright.runtime.gpu import cuda

        return cuda.available()

    @property
    def unknown_options(self) -> str | None:
        """What is wrong with options of the emulator, if anything."""
        if not isinstance(self.emulate, Mapping):
            return None
        from tilewright.sim import ptx as emulate

        return emulate.unknown_options(self.emulate)

    @property
    def has_assembler(self) -> bool:
        """Whether NVIDIA's assembler is there."""
        from tilewright.targets.cuda import ptxas

        return ptxas.find() is not None

    @property
    def multiplies_bytes(self) -> bool:
        """Whether the target has an instruction for products of bytes."""
        if self.is_cuda:
            return True
        from tilewright import devices
        from tilewright.devices.x86 import dot_products

        return "i8" in dot_products(devices.get(self.target).features)


@dataclass(frozen=True)
class Rule:
    """Choices that cannot be had: which, and what the user is told of them, as a template over :class:`Choices`."""

    broken: Callable[[Choices], bool]
    message: str


_NARROW = "precision={0.precision!r}"
_NOT_EXACT = "accuracy={0.accuracy!r}"

RULES = (
    Rule(
        lambda c: c.precision not in PRECISIONS,
        f"there is no precision {{0.precision!r}}; there are {', '.join(PRECISIONS)}",
    ),
    Rule(lambda c: c.precision == "f32" and c.calibration is not None, "calibration= is for precision='int8'"),
    Rule(
        lambda c: c.precision != "f32" and not c.is_own,
        f"{_NARROW} is for CPUs and NVIDIA GPUs with their own pipeline",
    ),
    Rule(
        lambda c: c.precision == "tf32" and not c.is_cuda,
        f"{_NARROW} is for the tensor cores of NVIDIA GPUs: {{0.target}} has no such products; use 'bf16' or 'f32'",
    ),
    Rule(
        lambda c: c.precision == "int8" and c.calibration is None,
        "precision='int8' needs calibration=: inputs (an array, a tuple, a dict by name, or a list of these) whose "
        "activations give the ranges",
    ),
    Rule(
        lambda c: c.precision == "int8" and not c.multiplies_bytes,
        "{0.target} has no instruction for products of bytes (VNNI): use precision='bf16' or 'f32'",
    ),
    Rule(lambda c: not c.tune >= 0, "tune= is a number of seconds, 0 or more, not {0.tune!r}"),
    Rule(
        lambda c: bool(c.tune) and c.precision != "f32",
        f"tune= measures f32 products: leave it out with {_NARROW}",
    ),
    Rule(
        lambda c: c.accuracy not in ACCURACIES,
        f"there is no accuracy {{0.accuracy!r}}; there are {', '.join(ACCURACIES)}",
    ),
    Rule(
        lambda c: c.accuracy == "fast" and not (c.is_cuda and c.is_own),
        f"{_NOT_EXACT} is for NVIDIA GPUs (approximations of their special function units) and their own pipeline",
    ),
    Rule(lambda c: bool(ACCURACIES[c.accuracy]) and not c.is_cpu, f"{_NOT_EXACT} is for CPUs and their own pipeline"),
    Rule(
        lambda c: bool(ACCURACIES[c.accuracy]) and c.precision != "f32",
        f"{_NOT_EXACT} is for sums of f32 products: leave it out with {_NARROW}",
    ),
    Rule(
        lambda c: c.accuracy != "exact" and bool(c.tune),
        f"tune= measures exact sums: leave it out with {_NOT_EXACT}",
    ),
    Rule(lambda c: c.opt_level not in range(4), "opt_level must be 0, 1, 2 or 3, got {0.opt_level!r}"),
    Rule(
        lambda c: c.pipeline is not None and not hasattr(c.pipeline, "phases"),
        "pipeline must be a tilewright.pipelines Pipeline, got a {0.pipeline.__class__.__name__}",
    ),
    Rule(
        lambda c: bool(c.tune) and not c.is_host and not c.is_cuda,
        "tune= measures on this machine: the target must be cpu, or cuda where there is a GPU, not {0.target!r}",
    ),
    Rule(
        lambda c: bool(c.tune) and c.is_cuda and c.emulate is not False,
        "tune= measures on a GPU, and the emulator has no clock: leave emulate= or tune= out",
    ),
    Rule(
        lambda c: bool(c.tune) and c.is_cuda and not c.has_gpu,
        "tune= measures on this machine's GPU, and there is no NVIDIA GPU with a driver here: leave it out (tiles then "
        "follow from the description of the device, by predicted time), or compile where the GPU is",
    ),
    Rule(
        lambda c: bool(c.tune) and c.pipeline is not None,
        "tune= chooses tiles for the target's own pipeline: leave pipeline= out",
    ),
    Rule(
        lambda c: c.emulate is not False and not c.is_cuda,
        "emulate= runs the code of a GPU: the target must be cuda:sm_80 or cuda:sm_90a, not {0.target!r}",
    ),
    Rule(lambda c: c.unknown_options is not None, "{0.unknown_options}"),
    Rule(
        lambda c: c.cubin and not c.is_cuda,
        "cubin= stores a GPU's machine code: the target must be cuda:sm_80 or cuda:sm_90a, not {0.target!r}",
    ),
    Rule(
        lambda c: c.cubin and not c.has_assembler,
        "cubin=True needs NVIDIA's assembler, and no ptxas was found: install the CUDA toolkit, name the program in "
        "TILEWRIGHT_PTXAS, or leave cubin= out (the GPU's driver then assembles the PTX when the model is loaded)",
    ),
)


def check(choices: Choices) -> None:
    """Raise the error of the first rule that the choices break.

    Raises:
        UserError: they break one.
    """
    for rule in RULES:
        if rule.broken(choices):
            raise UserError(rule.message.format(choices))
