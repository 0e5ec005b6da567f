# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What form a module's results have: recorded while it is traced, so that the graph returns tensors alone."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.core.errors import UnsupportedError
from tilewright.runtime.structure import register

_PLAIN = (bool, int, float, str, type(None))


class Form:
    """The form of what a module returns.

    Attributes:
        text: as JSON, see :func:`tilewright.runtime.structure.build`; empty where it is one tensor, or a tuple or list
            of tensors, which :class:`~tilewright.Outputs` stands for.
        names: for each result the way to it, joined by points: ``past.0.key``; empty where `text` is.
        results: number of tensors.
    """

    def __init__(self) -> None:
        self.text = ""
        self.names: list[str] = []
        self.results = 0

    def take(self, value: Any) -> tuple[Any, ...]:
        """Note the form of a value; returns its tensors, each once.

        Raises:
            UnsupportedError: it holds something that is neither a tensor nor a plain value.
        """
        import torch.utils._pytree as pytree

        leaves, spec = pytree.tree_flatten(value)
        if register({type(leaf) for leaf in leaves}):
            leaves, spec = pytree.tree_flatten(value)
        tensors: list[Any] = []
        forms: list[dict[str, Any]] = []
        for leaf in leaves:
            if not _is_result(leaf):
                if not isinstance(leaf, _PLAIN):
                    raise UnsupportedError(f"the module returns a {type(leaf).__name__}, which is no tensor")
                forms.append({"value": leaf})
                continue
            known = next((i for i, tensor in enumerate(tensors) if tensor is leaf), len(tensors))
            forms.append({"result": known})
            if known == len(tensors):
                tensors.append(leaf)
        self.set(spec, forms)
        return tuple(tensors)

    def set(self, spec: Any, leaves: list[dict[str, Any]]) -> None:
        """Set it from PyTorch's description and the forms of its leaves."""
        form = _form(spec, iter(leaves))
        self.results = len({leaf["result"] for leaf in leaves if "result" in leaf})
        self.text, self.names = "", []
        if not _is_flat(form):
            self.text = json.dumps(form)
            found = dict(_names(form, ()))
            self.names = [found[number] for number in range(self.results)]


@contextmanager
def recorded(module: Any, form: Form) -> Iterator[None]:
    """While this lasts `module` returns a tuple of tensors, and `form` receives the form that they had."""
    forward: Callable[..., Any] = module.forward
    own = "forward" in vars(module)

    @functools.wraps(forward)
    def traced(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return form.take(forward(*args, **kwargs))

    module.forward = traced
    try:
        yield
    finally:
        if own:
            module.forward = forward
        else:
            del module.forward


def _is_result(leaf: Any) -> bool:
    import torch

    return isinstance(leaf, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool)


def _names(form: dict[str, Any], path: tuple[Any, ...]) -> Iterator[tuple[int, str]]:
    """Each result with the way to it; of a tensor that stands in several places the last one."""
    if "result" in form:
        yield form["result"], ".".join(map(str, path))
    parts: Any = form.get("dict", ())
    if "of" in form:
        parts = zip(form["keys"], form["of"], strict=True)
    elif "dict" not in form:
        parts = enumerate(form.get("tuple", form.get("list", ())))
    for key, part in parts:
        yield from _names(part, (*path, key))


def _form(spec: Any, leaves: Iterator[dict[str, Any]]) -> dict[str, Any]:
    if spec.type is None:
        return next(leaves)
    parts = [_form(child, leaves) for child in spec.children()]
    if spec.type in (tuple, list):
        return {spec.type.__name__: parts}
    if spec.type is dict and all(isinstance(key, str | int) for key in spec.context):
        return {"dict": [[key, part] for key, part in zip(spec.context, parts, strict=True)]}
    return _of_class(spec, parts)


def _of_class(spec: Any, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """A class that pytree knows: its own description of one, with leaves for parts."""
    import torch.utils._pytree as pytree

    keys = _keys(spec.context, len(parts))
    if keys is None:
        keys = list(getattr(spec.type, "_fields", range(len(parts))))  # of a named tuple
    try:
        text = pytree.treespec_dumps(_shallow(spec))
    except (NotImplementedError, TypeError) as error:
        raise UnsupportedError(f"the module returns a {spec.type.__name__}, which cannot be saved: {error}") from None
    return {"torch": text, "module": spec.type.__module__, "keys": keys, "of": parts}


def _keys(context: Any, count: int) -> list[str] | None:
    """The names of the parts of a class, where its context is a list of them, or has one in it (`DynamicCache`)."""
    lists = [context, *context] if isinstance(context, list | tuple) else []
    found = (each for each in lists if isinstance(each, list | tuple) and len(each) == count)
    return next((list(each) for each in found if all(isinstance(key, str) for key in each)), None)


def _shallow(spec: Any) -> Any:
    """The same node with leaves below it."""
    import torch.utils._pytree as pytree

    return pytree.TreeSpec(spec.type, spec.context, [pytree.LeafSpec() for _ in spec.children()])


def _is_flat(form: dict[str, Any]) -> bool:
    """Whether it is one tensor, or a tuple or list of tensors in order."""
    parts = form.get("tuple", form.get("list"))
    if parts is None:
        return "result" in form
    return bool(parts) and all(part.get("result") == number for number, part in enumerate(parts))
