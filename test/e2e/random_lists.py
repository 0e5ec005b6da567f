# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of nested lists, as the text of a Python function: what fails can be read, cut and run again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from random_leaves import LEAF_STEPS

import tilewright.fractal as ft

SHAPES = ((), (3,), (1, 4), (2, 3), (3, 3), (2, 1, 3))
#: Elements that a value has at most, with all maps around it.
LARGEST = 1500
#: Functions in functions, at most.
DEEPEST = 3


class Value(NamedTuple):
    """A variable: lengths of its levels, none for a tensor, and the shape of its leaves."""

    name: str
    lengths: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def type(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """All but the name."""
        return self.lengths, self.shape

    def element(self, name: str) -> Value:
        """A variable for an element of the list."""
        return Value(name, self.lengths[1:], self.shape)


class Writer:
    """Text under construction, and what can be read at its end."""

    def __init__(self, seed: int) -> None:
        """Nothing yet; all choices follow from the seed."""
        self.choose = random.Random(seed)
        self.values = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.scopes: list[list[Value]] = [[]]
        self.around = [1]
        self.constants: dict[str, np.ndarray] = {}
        self.read: set[str] = set()
        self.count = 0

    def pick(self, *options: Any) -> Any:
        """One of the options."""
        return self.choose.choice(options)

    def name(self, letter: str = "v") -> str:
        """One that is not taken."""
        self.count += 1
        return f"{letter}{self.count}"

    def emit(self, line: str) -> None:
        """A line of the function at hand."""
        self.lines.append("    " * len(self.scopes) + line)

    def fits(self, lengths: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """Whether it is small, and only innermost lists are empty: of what is in others eager mode knows nothing."""
        return 0 not in lengths[:-1] and prod(lengths) * prod(shape) * self.around[-1] <= LARGEST

    def new(self, text: str, lengths: tuple[int, ...], shape: tuple[int, ...]) -> Value:
        """A variable for the value of an expression."""
        value = Value(self.name(), lengths, shape)
        self.emit(f"{value.name} = {text}")
        self.scopes[-1].append(value)
        return value

    def constant(self, *shape: int) -> str:
        """The name of an array that the function captures; numbers are small, products of them too."""
        name = self.name("c")
        numbers = self.values.standard_normal(shape, np.float32)
        self.constants[name] = np.asarray(numbers / np.float32(max(1, *shape, 1)), np.float32)
        return name

    def visible(self, holds: Callable[[Value], bool]) -> list[Value]:
        """Variables; those of the innermost function more often, above all if nothing reads them yet."""
        own = [value for value in self.scopes[-1] if holds(value)]
        unread = [value for value in own if value.name not in self.read]
        return unread * 6 + own * 2 + [value for scope in self.scopes[:-1] for value in scope if holds(value)]

    def some(self, holds: Callable[[Value], bool]) -> Value | None:
        """One of them, None where there is none."""
        found = self.visible(holds)
        value = self.choose.choice(found) if found else None
        if value is not None:
            self.read.add(value.name)
        return value

    def some_list(self, depth: int = 1, least: int = 0) -> Value | None:
        """A list of at least so many levels and elements."""
        return self.some(lambda value: len(value.lengths) >= depth and value.lengths[0] >= least)


class Program(Writer):
    """A function of a few lists and a tensor."""

    def __init__(self, seed: int, steps: int = 9) -> None:
        """Write it."""
        super().__init__(seed)
        self.pool = [self.pick(1, 2, 3, 4), self.pick(2, 3, 4, 5, 6), self.pick(3, 4, 6, 0)]
        self.inputs = [self._input() for _ in range(3)]
        self.inputs.append(Value("x", (), self.pick(*SHAPES)))
        self.scopes[0] += self.inputs
        self.steps(steps)
        self.outputs = [value for value in self.scopes[0] if value.name not in self.read] or self.scopes[0][-1:]
        self.emit(f"return {', '.join(value.name for value in self.outputs)}")

    def _input(self) -> Value:
        while True:
            lengths = tuple(self.choose.choice(self.pool) for _ in range(self.pick(1, 2, 2, 3)))
            value = Value(self.name("xs"), lengths, self.pick(*SHAPES))
            if self.fits(*value.type):
                return value

    @property
    def text(self) -> str:
        """The function."""
        return "\n".join([f"def program({', '.join(value.name for value in self.inputs)}):", *self.lines, ""])

    def function(self, file: str) -> ft.Function:
        """The function, compiled by Python under a file's name."""
        names: dict[str, Any] = {"ft": ft, **self.constants}
        exec(compile(self.text, file, "exec"), names)
        python = names["program"]
        python.__annotations__ = {
            value.name: ft.Array[len(value.lengths), value.shape] if value.lengths else ft.Tensor[value.shape]
            for value in self.inputs
        }
        return ft.function(python)

    def arguments(self) -> list[np.ndarray]:
        """Numbers for all inputs."""
        arrays = (self.values.standard_normal((*value.lengths, *value.shape)) for value in self.inputs)
        return [np.asarray(array, np.float32) for array in arrays]

    # Functions of functions --------------------------------------------------------------------------------------

    def steps(self, count: int) -> None:
        """So many statements."""
        done, tries = 0, 0
        while done < count and tries < 20 * count:
            tries += 1
            done += self.pick(*self.kinds())(self)

    def kinds(self) -> list[Callable[[Program], bool]]:
        """Statements that may come now."""
        deep = len(self.scopes) > DEEPEST
        return [*LEAF_STEPS * 2, *ACCESS_STEPS * 2, *([] if deep else COMPUTE_STEPS * 2)]

    def body(self, parameters: Iterable[Value], times: int, results: Callable[[], list[Value]]) -> tuple[str, list]:
        """Write a function; returns its name and what it gives."""
        name, taken = self.name("f"), list(parameters)
        self.emit(f"def {name}({', '.join(value.name for value in taken)}):")
        self.scopes.append(taken)
        self.around.append(self.around[-1] * max(1, times))
        self.steps(self.pick(1, 1, 2, 3))
        given = results()
        self.emit(f"return {', '.join(value.name for value in given)}")
        self.scopes.pop()
        self.around.pop()
        return name, given

    def any_results(self) -> list[Value]:
        """What a map gives: values that nothing reads yet, now and then one from outside, in any number."""

        def holds(value: Value) -> bool:
            return self.fits((1, *value.lengths), value.shape)

        small = [value for value in self.visible(holds) if 0 not in value.lengths]
        if not small:
            return [self.new(f"ft.tanh({self.constant()})", (), ())]
        unread = [value for value in self.scopes[-1] if value in small and value.name not in self.read]
        chosen = unread[:3] if unread and self.pick(True, True, True, False) else [self.choose.choice(small)]
        self.read.update(value.name for value in chosen)
        return chosen

    def wanted(self, lengths: tuple[int, ...], shape: tuple[int, ...]) -> Value:
        """A value of a type, which depends on most of what is at hand."""
        found = self.some(lambda value: value.type == (lengths, shape))
        if found is not None and self.pick(True, False, False, False):
            return found
        if not lengths:
            terms = [self._term(shape) for _ in range(3)]
            return self.new(f"ft.tanh({' + '.join([self.constant(*shape), *filter(None, terms)])})", (), shape)
        xs = self.some(lambda value: value.lengths[:1] == lengths[:1] and len(value.lengths) > 0)
        if xs is None or lengths[0] == 0:
            inner = self.wanted(lengths[1:], shape)
            return self.new(f"ft.repeat({inner.name}, {lengths[0]})", lengths, shape)
        lists = self.together(xs)
        parameters = [value.element(self.name("e")) for value in lists]
        name, _ = self.body(parameters, lengths[0], lambda: [self.wanted(lengths[1:], shape)])
        return self.new(f"ft.map({name}, {', '.join(value.name for value in lists)})", lengths, shape)

    def _term(self, shape: tuple[int, ...]) -> str | None:
        """A term of a sum: a tensor of that shape, or the mean of a value of any type."""
        value = self.some(lambda value: 0 not in value.lengths and len(value.lengths) + len(value.shape) <= 4)
        if value is None:
            return None
        if value.lengths:
            return f"ft.mean(ft.tensor({value.name}))"
        fits = _broadcasts(value.shape, shape)
        return f"0.5 * {value.name}" if fits else f"ft.mean({value.name})"

    def together(self, first: Value) -> list[Value]:
        """Lists that can be read with one."""
        depth = max(1, len(first.lengths) - 1)

        def holds(v: Value) -> bool:
            return v.lengths[:1] == first.lengths[:1] and len(v.lengths) <= depth + 1

        others = [self.some(holds) for _ in range(self.pick(0, 0, 1, 2))]
        return [first, *(value for value in others if value is not None)]

    def assign(self, text: str, types: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> bool:
        """Variables for all results of a call."""
        made = [Value(self.name(), *kind) for kind in types]
        self.emit(f"{', '.join(value.name for value in made)} = {text}")
        self.scopes[-1] += made
        return True


def _broadcasts(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether a tensor is repeated to a shape."""
    pairs = zip(shape[::-1], whole[::-1], strict=False)
    return len(shape) <= len(whole) and all(n in (1, m) for n, m in pairs)


def _map(p: Program) -> bool:
    """Of one list or several, zipped or not."""
    xs = p.some_list()
    if xs is None:
        return False
    lists = p.together(xs)
    if xs.lengths[0] == 0 and any(len(value.lengths) > 1 for value in lists):
        return False
    name, given = p.body([value.element(p.name("e")) for value in lists], xs.lengths[0], p.any_results)
    kinds = [((xs.lengths[0], *value.lengths), value.shape) for value in given]
    if any(0 in lengths[:-1] for lengths, _ in kinds):
        return False
    names = ", ".join(value.name for value in lists)
    zipped = f"ft.map(lambda z: {name}(*z), ft.zip({names}))"
    return p.assign(p.pick(zipped, f"ft.map({name}, {names})"), kinds)


def _recurrence(p: Program, function: str) -> bool:
    xs = p.some_list()
    if xs is None:
        return False
    lists, length = p.together(xs), xs.lengths[0]
    scans = function.startswith("scan")
    around = (length,) if scans else (1,)
    states = [p.some(lambda value: p.fits((*around, *value.lengths), value.shape)) for _ in range(p.pick(1, 1, 2))]
    inits = [value for value in states if value is not None]
    if not inits or any(0 in value.lengths for value in inits):
        return False
    parameters = [Value(p.name("s"), *value.type) for value in inits]
    single = len(inits) == 1
    state = parameters if single else [Value(p.name("t"), (), ())]
    elements = [value.element(p.name("e")) for value in lists]

    def results() -> list[Value]:
        return [p.wanted(*value.type) for value in inits]

    name, given = _stateful_body(p, state, parameters, elements, results)
    assert len(given) == len(inits)
    init = inits[0].name if single else f"({', '.join(value.name for value in inits)})"
    kinds = [((length, *value.lengths) if scans else value.lengths, value.shape) for value in inits]
    return p.assign(f"ft.{function}({name}, {init}, {', '.join(value.name for value in lists)})", kinds)


def _stateful_body(p: Program, state: list, parameters: list, elements: list, results: Callable) -> tuple[str, list]:
    """A function whose first parameter holds all states."""
    if state is parameters:
        return p.body([*parameters, *elements], 1, results)
    inner, given = p.body([*parameters, *elements], 1, results)
    name, rest = p.name("f"), ", ".join(value.name for value in elements)
    p.emit(f"{name} = lambda {state[0].name}, {rest}: {inner}(*{state[0].name}, {rest})")
    return name, given


def _scanl(p: Program) -> bool:
    return _recurrence(p, "scanl")


def _scanr(p: Program) -> bool:
    return _recurrence(p, "scanr")


def _foldl(p: Program) -> bool:
    return _recurrence(p, "foldl")


def _foldr(p: Program) -> bool:
    return _recurrence(p, "foldr")


#: Associative functions of leaves, with the neutral element.
REDUCTIONS = (
    ("lambda l, r: l + r", "ft.zeros({s})"),
    ("lambda l, r: ft.maximum(l, r)", 'ft.full({s}, float("-inf"))'),
    ("lambda l, r: ft.minimum(r, l)", "None"),
    ("lambda l, r: l + r + l * r", "ft.zeros({s})"),
    ("lambda l, r: r", "None"),
    ("lambda l, r: l", "None"),
)


def _reduce(p: Program) -> bool:
    """By one elementwise function, by several, or by none; of lists, element by element."""
    xs = p.some_list(least=1)
    if xs is None:
        return False
    small = p.new(_forall("0.25 * ft.tanh(x)", xs), *xs.type)
    p.read.add(small.name)
    function, neutral = p.pick(*REDUCTIONS)
    if len(xs.lengths) > 1:
        function, neutral = f"lambda ls, rs: ft.forall({function}, ls, rs)", "None"
    init = neutral.format(s=xs.shape)
    p.new(f"ft.reduce({function}, {init}, {small.name})", xs.lengths[1:], xs.shape)
    return True


def _forall(expression: str, xs: Value) -> str:
    return f"ft.forall(lambda x: {expression}, {xs.name})"


def _reduce_pairs(p: Program) -> bool:
    """Affine functions, one after the other: a pair is an element."""
    xs = p.some(lambda value: len(value.lengths) == 1)
    if xs is None:
        return False
    scales = p.new(_forall("ft.tanh(x)", xs), *xs.type)
    p.read.add(scales.name)
    both = "lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1])"
    init = f"(ft.full({xs.shape}, 1.0), ft.zeros({xs.shape}))"
    return p.assign(f"ft.reduce({both}, {init}, ft.zip({scales.name}, {xs.name}))", [((), xs.shape)] * 2)


def _reduce_products(p: Program) -> bool:
    """Square matrices are multiplied, in order."""
    xs = p.some(lambda value: len(value.lengths) == 1 and value.shape == (3, 3))
    if xs is None:
        return False
    small = p.new(_forall("0.5 * ft.tanh(x)", xs), *xs.type)
    p.read.add(small.name)
    init = p.name("c")
    p.constants[init] = np.eye(3, dtype=np.float32)
    p.new(f"ft.reduce(lambda l, r: l @ r, {init}, {small.name})", (), (3, 3))
    return True


def _dilated_map(p: Program) -> bool:
    """Each of the lists that one is dealt to is scanned."""
    xs = p.some(lambda value: len(value.lengths) == 1 and value.lengths[0] > 1)
    if xs is None:
        return False
    divisors = [n for n in range(1, xs.lengths[0] + 1) if xs.lengths[0] % n == 0]
    cell = "lambda s, x: ft.tanh(s + x)"
    scan = f"lambda ys: ft.scanl({cell}, {p.constant(*xs.shape)}, ys)"
    p.new(f"ft.dilated_map({scan}, {xs.name}, {p.choose.choice(divisors)})", *xs.type)
    return True


def _enumerate(p: Program) -> bool:
    """The place of an element is a number."""
    xs = p.some(lambda value: len(value.lengths) == 1)
    if xs is None:
        return False
    p.new(f'ft.map(lambda i, x: x + 0.5 * ft.cast(i, "f32"), *ft.enumerate({xs.name}))', *xs.type)
    return True


COMPUTE_STEPS: list[Callable[[Program], bool]] = [
    *(_map, _map, _map, _scanl, _scanr, _foldl, _foldr),
    *(_reduce, _reduce, _reduce_pairs, _reduce_products, _dilated_map, _enumerate),
]

from random_list_access import ACCESS_STEPS  # noqa: E402  (its functions are typed by Program)
