# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ft.function`: a Python function with a typed signature, run eagerly or traced."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_origin

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.fractal.values import Lists
from tilewright.fractal import declared_trees, eager, ragged, recursion
from tilewright.fractal.mode import current, using
from tilewright.fractal.tree import TreeType
from tilewright.fractal.trees import flatten, rebuild, unzipped
from tilewright.fractal.types import (
    RAGGED,
    Array,
    Length,
    ListType,
    Own,
    Size,
    Tensor,
    Type,
    alike,
    is_number,
    most_in,
    type_of,
)
from tilewright.fractal.where import user_frame, wrong

if TYPE_CHECKING:
    from tilewright.fractal.tracing.program import Traced

Lengths = Mapping[str, Any]


class Function:
    """A function on nested lists and tensors; made by :func:`function`.

    Attributes:
        name: of the Python function.
        parameters: annotation of each parameter that has one of `ft`.
    """

    def __init__(self, function: Callable[..., Any], scope: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.name = function.__name__
        self._function = function
        self._signature = inspect.signature(function)
        found = _annotations(function, scope)
        self._returns = found.pop("return", None)
        self.parameters = {name: kind for name, kind in found.items() if _is_ours(kind)}

    def __repr__(self) -> str:
        return f"<ft.function {self.name}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the Python code as it stands, on checked arguments.

        Raises:
            UserError: an argument or the result is not of its declared type.
        """
        bound = self._signature.bind(*args, **named)
        for name, kind in self.parameters.items():
            if name in bound.arguments:
                bound.arguments[name] = self._taken(f"{name}", kind, bound.arguments[name])
        function = self._traceable if current().tracing else self._function
        result = function(*bound.args, **bound.kwargs)
        if _is_ours(self._returns):
            return self._taken("the result", self._returns, result)
        return result if current().tracing else self._given(result)

    def _given(self, result: Any) -> Any:
        """A result without annotation: lists and numbers of Python become what a compiled program would give."""
        values, shape = flatten(unzipped(result))
        try:
            return rebuild(shape, [eager.as_value(value) for value in values])
        except UserError as error:
            raise wrong(self.name, f"returns what is no result: {error.message}") from None

    @functools.cached_property
    def _traceable(self) -> Callable[..., Any]:
        """The function as a trace runs it."""
        if not declared_trees.among(self.parameters.values()):
            return self._function
        return recursion.traceable(self._function, self)

    def _taken(self, what: str, kind: Any, value: Any) -> Any:
        """A value as its annotation says."""
        if not isinstance(kind, Array | Tensor | TreeType):
            kinds = get_args(kind)
            if not isinstance(value, tuple) or len(value) != len(kinds):
                raise wrong(self.name, f"{what} is declared as a tuple of {len(kinds)}, found {_found(value)}")
            pairs = enumerate(zip(kinds, value, strict=True))
            return tuple(self._taken(f"{what}[{i}]", inner, part) for i, (inner, part) in pairs)
        try:
            taken = _TAKEN[type(kind)](kind, value)
        except UserError as error:
            raise wrong(self.name, f"{what}: {error.message}") from None
        if not _fits(kind, type_of(taken)):
            raise wrong(self.name, f"{what} is {type_of(taken)}; declared are {kind}")
        return taken

    def trace(self, lengths: Lengths | None = None, flat: bool = False) -> Traced:
        """The program as a module of layer 1 with `fractal` ops.

        Args:
            lengths: of lists, by the parameter's name: for each level, outermost first, a number, None (only a run
                knows it), ``"ragged"`` (each list of the level has its own) or ``("ragged", 64)``: these are at
                most 64, and the list is given as tensors in a line and offsets (`tilewright.fractal.ragged`). What
                is left out is None. Of a tree how many nodes it has at most, or (nodes, depth).
            flat: results of lengths that only a run knows are given in the same form.

        Raises:
            UserError: a parameter is not annotated; lengths do not fit; the program cannot be traced.
        """
        from tilewright.fractal.tracing.program import trace_program

        vars(self).pop("_traceable", None)  # what it captures may have changed since the last trace
        shapes, inputs = self._inputs(lengths)

        def run(*arguments: Any) -> Any:
            rest = iter(arguments)
            return self(**{name: rebuild(shape, rest) for name, shape in shapes.items()})

        code = inspect.unwrap(self._function).__code__
        place = (code.co_filename, code.co_firstlineno)
        return trace_program(self.name, run, inputs, place, using, flat)

    def inputs(self, lengths: Lengths | None = None) -> list[tuple[str, Type]]:
        """Name and type of each input of the traced program.

        Raises:
            UserError: a parameter is not annotated, or lengths do not fit.
        """
        return self._inputs(lengths)[1]

    def _inputs(self, lengths: Lengths | None) -> tuple[dict[str, Any], list[tuple[str, Type]]]:
        """How inputs stand in tuples, by the parameter's name; name and type of each."""
        given = dict(lengths or {})
        shapes: dict[str, Any] = {}
        inputs: list[tuple[str, Type]] = []
        for name, parameter in self._signature.parameters.items():
            if name in self.parameters:
                shapes[name] = self._declared(name, self.parameters[name], given, inputs)
            elif parameter.default is inspect.Parameter.empty:
                raise wrong(
                    f"{self.name}.trace",
                    f"annotate {name} with ft.Array or ft.Tensor (or ft.Tree), or give it a default",
                )
        if given:
            known = ", ".join(name for name, kind in inputs if isinstance(kind, ListType)) or "none"
            raise wrong(
                f"{self.name}.trace",
                f"lengths are given for {', '.join(given)}, but no list is called so; lists among the parameters: "
                f"{known}",
            )
        return shapes, inputs

    def explain(self, lengths: Lengths | None = None) -> str:
        """What the program reads, what waits for what, and how much may run at once, as text.

        Args:
            lengths: as those of :meth:`trace`.

        Raises:
            UserError: as :meth:`trace`.
            UnsupportedError: the program has no graph; the message says why.
        """
        from tilewright.fractal.drawing import drawn
        from tilewright.fractal.graph import graph_of

        return drawn(graph_of(self.trace(lengths).module_text), self.name)

    def _declared(self, name: str, kind: Any, given: dict[str, Any], inputs: list[tuple[str, Type]]) -> Any:
        """Add the inputs that a parameter stands for; returns how they stand in tuples."""
        if isinstance(kind, Tensor):
            inputs.append((name, kind.type))
            return None
        if isinstance(kind, TreeType):
            return declared_trees.add(kind, name, given.pop(name, None), inputs, self.name)
        if isinstance(kind, Array):
            listed = ListType(self._lengths(name, kind, given.pop(name, None)), kind.leaf)
            if ragged.is_bounded(listed.lengths):
                return ragged.add(name, listed, inputs)
            inputs.append((name, listed))
            return None
        kinds = get_args(kind)
        if name in given:
            lengths = given.pop(name)
            if not isinstance(lengths, tuple | list) or len(lengths) != len(kinds):
                raise wrong(
                    f"{self.name}.trace",
                    f"lengths of {name} are {lengths!r}, but it is a tuple of {len(kinds)}: say lengths of each of "
                    f"its parts, None for a tensor: {{{name!r}: {_example_of(kind)}}}",
                )
            given |= {f"{name}.{i}": part for i, part in enumerate(lengths) if part is not None}
        parts = [self._declared(f"{name}.{i}", part, given, inputs) for i, part in enumerate(kinds)]
        return tuple, tuple(parts)

    def _lengths(self, name: str, kind: Array, given: Any) -> tuple[Size, ...]:
        levels = list(given) if isinstance(given, tuple | list) else [given]
        levels += [None] * (kind.depth - len(levels))
        found = [_size(length, level) for level, length in enumerate(levels)]
        sizes = tuple(size for size in found if size is not None)
        if len(found) > kind.depth or len(sizes) < len(found):
            raise wrong(
                f"{self.name}.trace",
                f"lengths of {in_python(name)} are {given!r}, but it has {kind.depth} levels: for each a number, None "
                'or, but for the outermost, "ragged" or ("ragged", 64), where lists have lengths of their own of at '
                f"most 64; write {{{name!r}: {_example_of(kind)}}}",
            )
        if ragged.is_bounded(sizes) and most_in(sizes) is None:
            raise wrong(
                f"{self.name}.trace",
                f"lengths of {in_python(name)} are {given!r}: where lists of one level are ragged up to a length, say "
                'a length of each level, a number or ("ragged", 64)',
            )
        if ragged.is_bounded(sizes):  # one behind the other: offsets say where each list ends, of any level
            sizes = (sizes[0], *(Own(size) if isinstance(size, int) else size for size in sizes[1:]))
        return sizes


def in_python(name: str) -> str:
    """How a program names an input: `p[0]` for `p.0`, a part of the tuple `p`."""
    first, *parts = name.split(".")
    return first + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def _example_of(kind: Any) -> str:
    """Lengths that would do for lists of an annotation, as they are written."""
    if isinstance(kind, Array):
        levels = ["16", *['("ragged", 64)'] * (kind.depth - 1)]
        return f"({', '.join(levels)}{',' * (len(levels) == 1)})"
    if isinstance(kind, TreeType):
        return "(127, 7)"
    return "None" if isinstance(kind, Tensor) else f"({', '.join(map(_example_of, get_args(kind)))})"


def _size(given: Any, level: int) -> Size | None:
    """The length of a level that a user gave; None where it is none."""
    if given is None:
        return Length()
    if isinstance(given, str):
        return RAGGED if given == RAGGED and level else None
    number = isinstance(given, int | np.integer) and not isinstance(given, bool) and given >= 0
    return int(given) if number else ragged.bounded(given, level)


def function(python: Callable[..., Any]) -> Function:
    """Make a Python function one on nested lists: ``f(...)`` runs it, ``f.trace(...)`` and `tw.compile` compile it.

    Parameters are annotated with ``ft.Array[depth, leaf shape]``, ``ft.Tensor[shape]`` or a tuple of them.
    """
    return Function(python, user_frame().f_locals)


def trace(function: Function | Callable[..., Any], lengths: Lengths | None = None) -> Traced:
    """As ``function.trace(lengths)``, also for a plain function with annotations."""
    made = function if isinstance(function, Function) else Function(function, user_frame().f_locals)
    return made.trace(lengths)


def _annotations(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return inspect.get_annotations(function, locals=dict(scope), eval_str=True)
    except NameError as error:
        raise wrong(function.__name__, f"its annotations cannot be read: {error}") from None


def _is_ours(kind: Any) -> bool:
    """Whether it is an annotation of `ft`, or a tuple of such."""
    if get_origin(kind) is tuple:
        return all(_is_ours(part) for part in get_args(kind))
    return isinstance(kind, Array | Tensor | TreeType)


def _listed(kind: Array, value: Any) -> Any:
    """A value for a list in the form of the mode; an array is one whose first dimensions are levels."""
    if isinstance(value, ragged.Flat):
        return current().from_flat(value.tensors, value.offsets, value.kind)
    if isinstance(value, np.ndarray):
        rank = kind.depth + len(kind.leaf.shape)
        if value.ndim != rank:
            raise UserError(f"an array {value.shape} has {value.ndim} dimensions; {kind} have {rank} in all")
        return Lists.from_array(value, kind.depth)
    if isinstance(value, list) and not current().tracing:
        numbers = eager.numbered(value, kind.leaf.dtype)
        if not _has_tensors(numbers):
            return Lists.of(numbers, kind.depth, leaf_shape=kind.leaf.shape, dtype=kind.leaf.dtype)
        return Lists.of(numbers, kind.depth)
    return current().as_list(value)


def _has_tensors(value: Any) -> bool:
    return any(_has_tensors(part) for part in value) if isinstance(value, list) else True


def _tensor(kind: Tensor, value: Any) -> Any:
    if is_number(value):
        value = np.asarray(value, kind.type.dtype)
    return current().as_value(value)


_TAKEN: dict[type, Callable[[Any, Any], Any]] = {Array: _listed, Tensor: _tensor, TreeType: declared_trees.taken}


def _fits(kind: Any, found: Any) -> bool:
    if isinstance(kind, TreeType):
        return declared_trees.fits(kind, found)
    if isinstance(kind, Tensor):
        return found == kind.type
    return isinstance(found, ListType) and alike(found, ListType((0,) * kind.depth, kind.leaf))


def _found(value: Any) -> str:
    return f"one of {len(value)}" if isinstance(value, tuple) else f"a {type(value).__name__}"
