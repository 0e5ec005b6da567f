# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph of `torch.compile` as it is called: its compiled models, by the weights that are constants in them."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.cache import digest
from tilewright.core.errors import TilewrightError
from tilewright.frontend.torch.constants import with_constants
from tilewright.frontend.torch.graph import Graph
from tilewright.frontend.torch.layouts import laid_out
from tilewright.runtime.interop import to_numpy

if TYPE_CHECKING:
    from tilewright.torch.dynamo import Settings

log = logging.getLogger("tilewright")

_CHANGES = 2  # of weights, each of which is a compilation, before they become inputs
_NUMBERS = 8  # values of Python integers, before they become inputs
_models: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_lock = threading.Lock()  # compilations of equal graphs wait for each other


@dataclass
class _Variant:
    """A model (None: PyTorch runs the graph), what it takes, and the state of the weights that it was compiled with."""

    model: Any
    inputs: list[int]
    stamps: list[tuple[Any, ...]]
    weights: list[weakref.ref]

    @property
    def is_alive(self) -> bool:
        """Whether a call could bring these weights again."""
        return all(reference() is not None for reference in self.weights)

    def holds(self, weights: Sequence[Any]) -> bool:
        """Whether these are the same tensors, unchanged."""
        same = all(reference() is tensor for reference, tensor in zip(self.weights, weights, strict=True))
        return same and self.stamps == _stamps(weights)


class _Constants:
    """Which arguments are constants of models, and these models. Others are a new object: calls may run meanwhile."""

    def __init__(self, weights: Sequence[int], numbers: Sequence[int]) -> None:
        self.weights = tuple(weights)
        self.numbers = tuple(numbers)
        self.variants: dict[tuple, _Variant] = {}

    def key(self, arguments: Sequence[Any]) -> tuple:
        """What tells variants apart: which weights, and the numbers."""
        return (*(id(arguments[n]) for n in self.weights), *(arguments[n] for n in self.numbers))

    def find(self, arguments: Sequence[Any]) -> _Variant | None:
        """The model for these arguments, where their weights are unchanged."""
        found = self.variants.get(self.key(arguments))
        return found if found is not None and found.holds([arguments[n] for n in self.weights]) else None

    def take_lost(self, arguments: Sequence[Any]) -> bool:
        """Drop variants that no call brings again: their weights changed, or are gone; whether there were any."""
        kept = {key: variant for key, variant in self.variants.items() if variant.is_alive}
        kept.pop(self.key(arguments), None)
        lost = len(kept) < len(self.variants)
        self.variants = kept
        return lost


class CompiledGraph:
    """Calls the model of a graph, compiled for its weights when a call first brings them.

    Safe to call from several threads at once: those that bring new weights wait for each other.

    Args:
        graph: the converted graph.
        eager: the same in PyTorch.
        fixed: numbers of the arguments that are weights and buffers, which the graph does not change.
        settings: of the backend.
    """

    def __init__(self, graph: Graph, eager: Callable[..., Any], fixed: set[int], settings: Settings) -> None:
        self._graph = graph
        self._key = _key(graph)
        self._eager = eager
        self._settings = settings
        weights = [number for number in graph.inputs if number in fixed and number not in graph.numbers]
        self._constants = _Constants(weights, graph.numbers)
        self._changes = 0
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        """Run the graph.

        Raises:
            TilewrightError: with ``fallback="error"``: it cannot be compiled.
        """
        results: Sequence[Any] = ()
        if self._graph.model is not None:
            variant = self._constants.find(arguments) or self._new_variant(arguments)
            if variant.model is None:
                return self._eager(*arguments)
            found = variant.model(*(arguments[number] for number in variant.inputs))
            results = [laid_out(v, order) for v, order in zip(found, self._graph.orders, strict=True)]
        return [output(results, arguments) for output in self._graph.outputs]

    def _new_variant(self, arguments: Sequence[Any]) -> _Variant:
        with self._lock:
            found = self._constants.find(arguments)  # of a thread that was here before
            if found is not None:
                return found
            self._open(arguments)
            constants = self._constants
            weights = [arguments[number] for number in constants.weights]
            stamps = _stamps(weights)  # before the weights are read
            model = self._compiled(arguments, (*constants.weights, *constants.numbers))
            held = {*constants.weights, *constants.numbers}
            inputs = [number for number in self._graph.inputs if number not in held]
            variant = _Variant(model, inputs, stamps, [weakref.ref(tensor) for tensor in weights])
            constants.variants[constants.key(arguments)] = variant
            return variant

    def _open(self, arguments: Sequence[Any]) -> None:
        """Make weights and numbers inputs that change too often, or unseen."""
        old = self._constants
        weights = tuple(number for number in old.weights if not arguments[number].is_inference())
        if len(weights) < len(old.weights):
            log.warning(
                "torch.compile: %d weights of a graph are inputs: made under torch.inference_mode(), they do not "
                "count their changes; make the module outside of it",
                len(old.weights) - len(weights),
            )
        self._changes += old.take_lost(arguments)
        if weights and self._changes > _CHANGES:
            log.warning("torch.compile: the weights of a graph changed %d times; they are inputs now", self._changes)
            weights = ()
        numbers = old.numbers
        if numbers and len({key[len(old.weights) :] for key in old.variants}) >= _NUMBERS:
            log.warning("torch.compile: a graph met %d integers; they are inputs now", _NUMBERS)
            numbers = ()
        if (weights, numbers) != (old.weights, old.numbers):
            self._constants = _Constants(weights, numbers)

    def _compiled(self, arguments: Sequence[Any], held: Sequence[int]) -> Any:
        """The model with these arguments as constants: one of an equal graph, or a new one."""
        try:
            constants = {n: _array(arguments[n]) for n in held}
            parts = (f"{self._graph.inputs.index(n)} {a.dtype} {a.shape}" for n, a in constants.items())
            content = (digest(a.tobytes()) for a in constants.values())
            key = digest(self._key, repr(self._settings), *parts, *content)
            with _lock:
                model = _models.get(key)
                if model is None:
                    model = _models[key] = self._build(constants)
            return model
        except TilewrightError as error:
            if self._settings.fallback == "error":
                raise
            log.warning("torch.compile: a graph of %d operators runs in PyTorch: %s", self._graph.operators, error)
            return None

    def _build(self, constants: dict[int, np.ndarray]) -> Any:
        from tilewright.compiler.api import compile

        start = time.perf_counter()
        places = {self._graph.inputs.index(number): array for number, array in constants.items()}
        places |= dict(enumerate(self._graph.constants, len(self._graph.inputs)))
        model = compile(with_constants(self._graph.model, places), **self._settings.of_compile)
        took = time.perf_counter() - start
        log.info("torch.compile: compiled a graph of %d operators in %.2f s", self._graph.operators, took)
        return model


def _key(graph: Graph) -> str:
    """What a graph computes, as a digest: equal for graphs that differ in how their arguments lie in memory."""
    if graph.model is None:
        return ""
    return digest(graph.model.SerializeToString(deterministic=True), *(array.tobytes() for array in graph.constants))


def _stamps(weights: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What tells whether weights were changed: where they are, and how often they were changed in place."""
    return [(tensor.data_ptr(), tensor._version) for tensor in weights]


def _array(value: Any) -> np.ndarray:
    return to_numpy(value, "a constant", np.dtype(np.int64))[0]
