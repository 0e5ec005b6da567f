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
from tilewright.runtime.interop import to_numpy, to_torch

if TYPE_CHECKING:
    from tilewright.torch.dynamo import Settings

log = logging.getLogger("tilewright")

_CHANGES = 2  # of weights, each of which is a compilation, before they become inputs
_NUMBERS = 8  # values of Python integers, before they become inputs
_models: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_lock = threading.Lock()  # compilations of equal graphs wait for each other


@dataclass
class _Variant:
    """A model (None: PyTorch runs the graph) and the state of the tensors that it was compiled with."""

    model: Any
    stamps: list[tuple[Any, ...]]
    tensors: list[weakref.ref]

    @property
    def is_alive(self) -> bool:
        """Whether a call could bring these tensors again."""
        return all(reference() is not None for reference in self.tensors)

    def holds(self, tensors: Sequence[Any], stamps: list[tuple[Any, ...]]) -> bool:
        """Whether these are the same tensors, unchanged."""
        same = all(reference() is tensor for reference, tensor in zip(self.tensors, tensors, strict=True))
        return same and self.stamps == stamps


class CompiledGraph:
    """Calls the model of a graph, compiled for its weights when a call first brings them.

    Args:
        graph: the converted graph.
        key: what it computes, as a digest.
        eager: the same in PyTorch.
        fixed: numbers of the arguments that are weights and buffers, which the graph does not change.
        settings: of the backend.
    """

    def __init__(self, graph: Graph, key: str, eager: Callable[..., Any], fixed: set[int], settings: Settings) -> None:
        self._graph = graph
        self._key = key
        self._eager = eager
        self._settings = settings
        self._fixed = [number for number in graph.inputs if number in fixed and number not in graph.numbers]
        self._numbers = list(graph.numbers)
        self._variants: dict[tuple, _Variant] = {}
        self._changes = 0

    def __call__(self, *arguments: Any) -> Sequence[Any]:
        """Run the graph.

        Raises:
            TilewrightError: with ``fallback="error"``: it cannot be compiled.
        """
        if self._graph.model is None:
            results: Sequence[Any] = ()
        else:
            model = self._model(arguments)
            if model is None:
                return self._eager(*arguments)
            constant = {*self._fixed, *self._numbers}
            values = [arguments[number] for number in self._graph.inputs if number not in constant]
            results = [to_torch(v) if isinstance(v, np.ndarray) else v for v in model(*values)]
        return [output(results, arguments) for output in self._graph.outputs]

    def _model(self, arguments: Sequence[Any]) -> Any:
        tensors = [arguments[number] for number in self._fixed]
        stamps = [(tensor.data_ptr(), _version(tensor)) for tensor in tensors]
        key = (*map(id, tensors), *(arguments[number] for number in self._numbers))
        variant = self._variants.get(key)
        if variant is None or not variant.holds(tensors, stamps):
            if self._becomes_open(variant):
                return self._model(arguments)
            model = self._compiled(arguments)
            self._variants = {k: other for k, other in self._variants.items() if other.is_alive}
            self._variants[key] = _Variant(model, stamps, [weakref.ref(tensor) for tensor in tensors])
            return model
        return variant.model

    def _becomes_open(self, variant: _Variant | None) -> bool:
        """Whether weights or numbers that change too often are inputs from now on."""
        self._changes += variant is not None
        if self._fixed and self._changes > _CHANGES:
            log.warning("torch.compile: the weights of a graph changed %d times; they are inputs now", self._changes)
            self._fixed = []
        elif self._numbers and len({key[len(self._fixed) :] for key in self._variants}) >= _NUMBERS:
            log.warning("torch.compile: a graph met %d integers; they are inputs now", _NUMBERS)
            self._numbers = []
        else:
            return False
        self._variants.clear()
        return True

    def _compiled(self, arguments: Sequence[Any]) -> Any:
        """The model for these weights: one of an equal graph, or a new one."""
        try:
            constants = {n: _array(arguments[n]) for n in (*self._fixed, *self._numbers)}
            parts = (f"{n} {a.dtype} {a.shape}" for n, a in constants.items())
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


def _version(tensor: Any) -> int:
    """How often a tensor was changed in place; tensors of `torch.inference_mode` do not count it."""
    return -1 if tensor.is_inference() else tensor._version


def _array(value: Any) -> np.ndarray:
    return to_numpy(value, "a constant", np.dtype(np.int64))[0]
