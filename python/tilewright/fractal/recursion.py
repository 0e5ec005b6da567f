# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that call themselves: a trace must see these calls, so it runs a copy in which they are `recursive`."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, TypeVar

from tilewright.fractal.mode import current

Called = TypeVar("Called", bound=Callable[..., Any])
_RECURSIVE = "_tilewright_recursive"


def recursive(function: Called) -> Called:
    """Let a trace see the calls of a function with nodes of a tree.

    Functions that `ft.function` finds by itself need it not: those that are defined in it or captured by it, and call
    themselves by name. Methods, and functions that another function calls, do.
    """

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        mode = current()
        return mode.recursion(function, args, named) if mode.tracing else function(*args, **named)

    return call  # pyright: ignore[reportReturnType]


def calls_itself(function: Callable[..., Any], known_as: Any) -> bool:
    """Whether a function reads the name that it is known by; `known_as` is what that name should stand for."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        return False
    stands_for = dict(_captured(function)).get(function.__name__)
    return stands_for is known_as


def traceable(function: Callable[..., Any], known_as: Any) -> Callable[..., Any]:
    """A copy of a function in which recursive functions, perhaps itself, are `recursive`.

    Without its source it is not copied, and nothing in it is found.
    """
    is_recursive = calls_itself(function, known_as)
    plain = inspect.unwrap(function)
    copy = _copied(plain, is_recursive, frozenset()) if isinstance(plain, FunctionType) else None
    return copy or (recursive(function) if is_recursive else function)


def _copied(function: FunctionType, is_recursive: bool, around: frozenset[FunctionType]) -> Callable[..., Any] | None:
    """A function compiled again; None without its source. `around`: of those that are being copied."""
    definition = _definition(function)
    if definition is None:
        return None
    _plain_signature(definition)
    for inner in ast.walk(definition):
        if isinstance(inner, ast.FunctionDef) and (is_recursive if inner is definition else _recurs(inner)):
            inner.decorator_list.append(ast.Name(_RECURSIVE, ast.Load()))
    values = dict(_captured(function))
    given = {name: values[name] for name in function.__code__.co_freevars if name in values}
    around |= {function}
    for name, value in values.items():
        if isinstance(value, FunctionType) and value not in around and calls_itself(value, value):
            given[name] = _copied(value, True, around) or value
    return _compiled(function, definition, {**given, _RECURSIVE: recursive})


def _definition(function: FunctionType) -> ast.FunctionDef | None:
    """The syntax of a function, with the lines of its file."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        found = ast.parse(source).body[0]
    except (OSError, SyntaxError):
        return None
    if not isinstance(found, ast.FunctionDef):
        return None
    ast.increment_lineno(found, function.__code__.co_firstlineno - 1)
    return found


def _plain_signature(definition: ast.FunctionDef) -> None:
    """Without what runs where a function is defined: decorators, annotations, values of defaults."""
    definition.decorator_list = []
    definition.returns = None
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [default and ast.Constant(None) for default in arguments.kw_defaults]


def _recurs(definition: ast.FunctionDef) -> bool:
    """Whether it reads its own name, and nobody made it recursive."""
    names = (node for statement in definition.body for node in ast.walk(statement) if isinstance(node, ast.Name))
    made = any(ast.unparse(decorator).endswith(recursive.__name__) for decorator in definition.decorator_list)
    return not made and any(node.id == definition.name for node in names)


def _compiled(function: FunctionType, definition: ast.FunctionDef, values: dict[str, Any]) -> Callable[..., Any]:
    """The function of a definition, with these values for names from outside."""
    parameters = [ast.arg(name) for name in values if name != definition.name]
    arguments = ast.arguments(posonlyargs=[], args=parameters, kwonlyargs=[], kw_defaults=[], defaults=[])
    result = ast.Return(ast.Name(definition.name, ast.Load()))
    around = ast.FunctionDef("around", arguments, [definition, result], decorator_list=[])
    module = ast.fix_missing_locations(ast.Module([around], type_ignores=[]))
    flags = function.__code__.co_flags & annotations.compiler_flag
    made: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec", flags, dont_inherit=True), function.__globals__, made)
    copy = made["around"](**{parameter.arg: values[parameter.arg] for parameter in parameters})
    plain = inspect.unwrap(copy)
    plain.__defaults__, plain.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return copy


def _captured(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Names from outside that a function or one inside it reads, with their values, where they have some."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not yet bound
            continue
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _global_names(code: CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_global_names, inner))
