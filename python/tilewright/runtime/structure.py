# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The form of a PyTorch module's results (dicts, nested tuples, dataclasses): results of a compiled model take it."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

#: Classes whose library tells pytree of them only when it is asked to: the module and its function for that.
_ON_DEMAND = {
    ("transformers.cache_utils", "DynamicCache"): (
        "transformers.integrations.executorch",
        "register_dynamic_cache_export_support",
    )
}


def register(kinds: Iterable[type]) -> bool:
    """Make classes known to PyTorch's pytree that it could know; returns whether it did not know one of them."""
    found = [_ON_DEMAND[key] for key in {(kind.__module__, kind.__name__) for kind in kinds} if key in _ON_DEMAND]
    for module, function in found:
        getattr(importlib.import_module(module), function)()
    return bool(found)


def flat(model: Any) -> Callable[..., Any]:
    """A call of a model that gives :class:`~tilewright.Outputs`, whatever form its results have."""
    return getattr(model, "flat", model)


def structured(model: Any, text: str | None) -> Any:
    """Let a model's calls return its results in a form.

    Args:
        model: a compiled or interpreted one.
        text: the form as JSON, as `tilewright.frontend.torch.structure` writes it; empty: :class:`~tilewright.Outputs`.
    """
    if text:
        model.__class__ = _with_structure(type(model))
        model._structure = json.loads(text)
    return model


@functools.cache
def _with_structure(kind: type) -> type:
    def flat(self: Any, *args: Any, **named: Any) -> Any:
        """Run the model; returns :class:`~tilewright.Outputs`, whatever form the results of a call have."""
        return kind.__call__(self, *args, **named)

    def call(self: Any, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run the model; results have the form that the module gave them. With `out` they are what that holds."""
        results = kind.__call__(self, *args, out=out, **named)
        return results if out is not None else build(self._structure, results)

    return type(kind.__name__, (kind,), {"flat": flat, "__call__": call, "__module__": kind.__module__})


def build(form: Any, results: Sequence[Any]) -> Any:
    """Put results into a form.

    Args:
        form: ``{"result": 0}``, ``{"value": 3}`` (a constant), ``{"tuple": [...]}``, ``{"list": [...]}``, ``{"dict":
            [[key, form], ...]}``, or ``{"torch": text, "module": name, "keys": names, "of": [...]}`` for a class that
            PyTorch's pytree knows. Where PyTorch or that module is missing, a class is a dict by its keys.
        results: in order.
    """
    if "result" in form:
        return results[form["result"]]
    if "value" in form:
        return form["value"]
    for kind, make in (("tuple", tuple), ("list", list)):
        if kind in form:
            return make(build(part, results) for part in form[kind])
    if "dict" in form:
        return {key: build(part, results) for key, part in form["dict"]}
    return _of_class(form, [build(part, results) for part in form["of"]])


def _of_class(form: Mapping[str, Any], parts: list[Any]) -> Any:
    spec = _spec(form["torch"], form["module"])
    if spec is None:
        return dict(zip(form["keys"], parts, strict=True))
    import torch.utils._pytree as pytree

    return pytree.tree_unflatten(parts, spec)


def _register_all(module: Any) -> None:
    import torch.utils._pytree as pytree

    kinds = [getattr(module, name, None) for place, name in _ON_DEMAND if place == module.__name__]
    register(kind for kind in kinds if kind is not None and kind not in pytree.SUPPORTED_NODES)


@functools.lru_cache(64)
def _spec(text: str, module: str) -> Any:
    """PyTorch's description of a class; None where what it needs is not installed."""
    try:
        _register_all(importlib.import_module(module))
        import torch.utils._pytree as pytree

        return pytree.treespec_loads(text)
    except (ImportError, NotImplementedError):
        return None
