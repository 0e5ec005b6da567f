# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The backend of `torch.compile`: each graph that Dynamo finds becomes a compiled model."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import TilewrightError, UserError
from tilewright.frontend.torch import decompositions
from tilewright.frontend.torch.forms import without_form
from tilewright.torch import parts
from tilewright.torch.compiled_graph import CompiledGraph
from tilewright.torch.skeletons import skeleton

log = logging.getLogger("tilewright")

NAME = "tilewright"


@dataclass(frozen=True)
class Settings:
    """What ``options=`` of `torch.compile` can say.

    Attributes:
        target: see :func:`tilewright.compile`, as are the next four.
        threads: threads per call; default: all CPUs.
        precision: ``f32``, ``bf16``, ... (``int8`` needs `calibration=`, and is for :func:`tilewright.compile` alone).
        accuracy: ``exact``, ``winograd``, ...
        emulate: for a ``cuda`` target, run on the emulator.
        freeze: weights are constants, packed and folded when a graph is compiled. A graph whose weights change is
            compiled anew, twice; then they are inputs, as those are that were made under ``torch.inference_mode()``.
            Changes through ``.data`` are not seen: call ``torch.compiler.reset()``. False: weights are inputs from the
            start.
        fallback: ``eager``: what cannot be compiled runs in PyTorch, and a line in the log says why; ``error``: it is
            an error.
    """

    target: str = "cpu"
    threads: int | None = None
    precision: str = "f32"
    accuracy: str = "exact"
    emulate: bool | Mapping[str, Any] = False
    freeze: bool = True
    fallback: str = "eager"

    def __post_init__(self) -> None:
        """Check the values: a wrong one is an error, not a reason to run graphs in PyTorch.

        Raises:
            UserError: a value that there is not, or that the target does not go with.
            UnsupportedError: models are not compiled for the target.
        """
        from tilewright.core.options import CompileOptions
        from tilewright.runtime.cpu.model import checked_threads
        from tilewright.targets import registry
        from tilewright.targets.rules import check

        if self.fallback not in ("eager", "error"):
            raise UserError(f"options: fallback must be 'eager' or 'error', got {self.fallback!r}")
        if not isinstance(self.freeze, bool):
            raise UserError(f"options: freeze must be True or False, got {self.freeze!r}")
        if self.threads is not None:
            checked_threads(self.threads)
        machine = registry.parse_target(self.target)
        check(machine, CompileOptions(**{name: value for name, value in self.of_compile.items() if name != "target"}))

    @property
    def of_compile(self) -> dict[str, Any]:
        """The arguments of :func:`tilewright.compile`."""
        names = ("target", "threads", "precision", "accuracy", "emulate")
        return {name: getattr(self, name) for name in names}


def backend(module: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **other: Any) -> Any:
    """Compile one graph of Dynamo: ``torch.compile(model, backend=tilewright.torch.backend)``.

    Of a graph that needs gradients the forward pass is compiled, with its weights as inputs, and the backward pass runs
    in PyTorch. Inputs that a graph changes in place are changed by PyTorch after the graph has run.

    Args:
        module: the graph, a torch.fx.GraphModule.
        inputs: its example inputs.
        options: see :class:`Settings`.
        other: what else `torch.compile` hands on (``mode=``); nothing of it is known.

    Returns:
        What Dynamo calls instead of the graph.

    Raises:
        UserError: an unknown option, or a wrong value of one.
        TilewrightError: with ``fallback="error"``: the graph cannot be compiled.
    """
    from torch._dynamo.backends.common import aot_autograd

    settings = _settings(options, other)
    reason = _outside(inputs, settings)
    if reason is not None:
        return _eager(module, UserError(reason), settings)

    def forward(graph: Any, examples: Sequence[Any]) -> Callable[..., Any]:
        log.warning(
            "torch.compile: a graph of %d operators keeps what gradients need, takes weights as inputs, and its "
            "gradients are made in PyTorch; where none are needed, call it under torch.inference_mode()",
            _operators(graph),
        )
        return _compiled(graph, dataclasses.replace(settings, freeze=False))

    def backward(graph: Any, examples: Sequence[Any]) -> Callable[..., Any]:
        return _boxed(graph.forward)

    def inference(graph: Any, examples: Sequence[Any]) -> Callable[..., Any]:
        return _compiled(graph, settings)

    made = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        decompositions=decompositions.table(),
        keep_inference_input_mutations=False,
    )
    return made(module, inputs)


def register() -> None:
    """Make the backend known to PyTorch by its name, where an installed package has not done so."""
    from torch._dynamo.backends import registry

    if NAME not in registry._COMPILER_FNS:
        registry.register_backend(backend, name=NAME)


def _settings(options: Mapping[str, Any] | None, other: Mapping[str, Any]) -> Settings:
    known = [field.name for field in dataclasses.fields(Settings)]
    wrong = sorted(set(options or {}) - set(known))
    if wrong:
        raise UserError(f"options: the backend has no {wrong[0]!r}; it has {', '.join(known)}")
    if other:
        raise UserError(f"the backend takes no {next(iter(other))}=; write options={{...}} with {', '.join(known)}")
    return Settings(**(options or {}))


def _outside(inputs: Sequence[Any], settings: Settings) -> str | None:
    """Why a graph is none for us, before it is looked at; None where it is."""
    import torch

    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    kind = settings.target.partition(":")[0]
    strange = {str(tensor.device) for tensor in tensors if tensor.device.type not in ("cpu", kind)}
    if strange:
        return f"it has tensors on {min(strange)}, and is compiled for {settings.target}"
    return None


def _eager(module: Any, error: TilewrightError, settings: Settings) -> Callable[..., Any]:
    if settings.fallback == "error":
        raise error
    log.warning("torch.compile: a graph of %d operators runs in PyTorch: %s", _operators(module), error)
    return module.forward


def _compiled(graph: Any, settings: Settings) -> Callable[..., Any]:
    """What runs a functional graph."""
    import torch

    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    written = [number for number, info in enumerate(metadata.input_info) if info.mutates_data] if metadata else []
    fixed = set(metadata.static_input_indices) - set(written) if metadata else set()
    return _boxed(_whole(graph, fixed if settings.freeze else set(), settings))


def _boxed(run: Callable[..., Any]) -> Callable[..., Any]:
    """What is called with a list of arguments, and empties it, as AOTAutograd asks for."""

    def boxed(arguments: list[Any]) -> Any:
        values = list(arguments)
        arguments.clear()
        return run(*values)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _whole(graph: Any, fixed: set[int], settings: Settings) -> Callable[..., Any]:
    """What runs a graph: a model; several, where PyTorch has to run operators between them; or PyTorch."""
    try:
        return CompiledGraph(skeleton(graph), graph.forward, fixed, settings)
    except TilewrightError as error:
        outside = {} if settings.fallback == "error" else without_form(graph.graph)
        if not outside:
            return _eager(graph, error, settings)
    found = parts.cut(graph, outside)
    if not any(part.compiled for part in found):
        return _eager(graph, UserError(next(iter(outside.values()))), settings)
    arguments = [node for node in graph.graph.nodes if node.op == "placeholder"]
    weights = {arguments[number] for number in fixed}
    for part in found:
        part.run = part.module.forward
        if part.compiled:
            held = {number for number, node in enumerate(part.inputs) if node in weights}
            part.run = _part(part.module, held, settings)
    log.warning(
        "torch.compile: of a graph of %d operators %d run in PyTorch, between %d parts that are compiled: %s",
        _operators(graph),
        len(outside),
        sum(part.compiled for part in found),
        next(iter(outside.values())),
    )
    return parts.runner(graph, found)


def _part(module: Any, fixed: set[int], settings: Settings) -> Callable[..., Any]:
    try:
        return CompiledGraph(skeleton(module), module.forward, fixed, settings)
    except TilewrightError as error:
        return _eager(module, error, settings)


def _operators(module: Any) -> int:
    return sum(node.op in ("call_function", "call_method", "call_module") for node in module.graph.nodes)
