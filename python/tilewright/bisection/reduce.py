# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A smaller module on which a pass still moves the result: a few operations of @main on values that they really got."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import reference
from tilewright.bisection.stages import Stage, digest, functions
from tilewright.core.errors import TilewrightError
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.reference.errors import InterpreterError

_KEEP = ("arith.constant", "tensor.empty", "linalg.fill")  # what a window takes along rather than getting it
_DEPTHS = (0, 1, 2, 4, 8, 1 << 20)
_CANDIDATES = 32
_LOAD = "ml_program.global_load_const"  # weights become inputs
_SYMBOL = re.compile(r"@([\w$.-]+)")


@dataclass(frozen=True)
class Reduced:
    """A module of few operations that a pass still breaks, its inputs, and how many operations @main has."""

    module: ir.Operation
    inputs: list[np.ndarray]
    operations: int


def reduce_case(
    before: Stage,
    after: Stage,
    step: str,
    arguments: Sequence[Any],
    moved: Callable[[list[Any], list[Any]], bool],
    seconds: float = 30.0,
) -> Reduced | None:
    """Cut @main down to the operations that a pass changes, until it still breaks as few of them as possible.

    Args:
        before: the last good state.
        after: the first bad one.
        step: the pass as text.
        arguments: of @main.
        moved: whether two lists of outputs differ.
        seconds: after which no more cuts are tried.

    Returns:
        The smallest module found; None where @main is not a list of operations on tensors, or no cut shows it.
    """
    end = time.monotonic() + seconds
    main = functions(before.module)["main"]
    if any(not isinstance(argument.type, ir.RankedTensorType) for argument in _block(main).arguments):
        return None
    changed = _changed(main, functions(after.module)["main"], before.module, after.module)[:_CANDIDATES]
    for group in (changed[:1], changed[1:]):  # the first one is where the pass changed something; all else follows
        for depth in _DEPTHS:
            windows = [window for position in group if (window := _window(main, position, depth)) is not None]
            found = _first(before, windows, step, arguments, moved, end)
            if found is not None or time.monotonic() > end:
                return found
    return None


def _first(
    before: Stage, windows: list[list[int]], step: str, arguments: Sequence[Any], moved: Any, end: float
) -> Reduced | None:
    """Return the first window that the pass breaks."""
    main = functions(before.module)["main"]
    try:
        values = _recorded(before, windows, arguments)
    except TilewrightError:
        return None
    for window in windows:
        found = _try(before, window, step, [values[value] for value in _inputs(main, window)], moved)
        if found is not None or time.monotonic() > end:
            return found
    return None


def _block(main: ir.Operation) -> ir.Block:
    return main.regions[0].blocks[0]


def _operations(main: ir.Operation) -> list[ir.Operation]:
    return [op.operation for op in _block(main).operations]


def _changed(main: ir.Operation, new: ir.Operation, before: ir.Operation, after: ir.Operation) -> list[int]:
    """Positions of the operations of @main that compute what none does afterwards; all of them where each one does."""
    left = Counter(_forms(new, after))
    found, useful = [], []
    for position, (op, form) in enumerate(zip(_operations(main)[:-1], _forms(main, before), strict=False)):
        left[form] -= 1
        if op.name not in (*_KEEP, _LOAD):
            useful.append(position)
            if left[form] < 0:
                found.append(position)
    return found or useful


def _forms(main: ir.Operation, module: ir.Operation) -> list[str]:
    """What each operation of @main computes: a digest of its text, of what it reads, and of the kernel it launches."""
    symbols = {name: str(op) for name, op in functions(module).items() if op.name != "ml_program.global"}
    known = {argument: f"argument {k}" for k, argument in enumerate(_block(main).arguments)}
    forms = []
    for op in _operations(main):
        text = op.get_asm(use_local_scope=True, enable_debug_info=False)
        names = [name for name in _SYMBOL.findall(text) if name in symbols and name != "main"]
        parts = [_renumbered(_SYMBOL.sub("@", text) if names else text)]
        parts += [_SYMBOL.sub("@", symbols[name], count=1) for name in names]
        parts += [known[value] for value in _read(op) if value in known]
        form = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        known.update((result, f"{form} {k}") for k, result in enumerate(op.results))
        forms.append(form)
    return forms


def _renumbered(text: str) -> str:
    """Name values by the order in which they appear."""
    names: dict[str, str] = {}
    return re.sub(r"%[\w$.#-]+", lambda match: names.setdefault(match.group(), f"%{len(names)}"), text)


def _window(main: ir.Operation, position: int, depth: int) -> list[int] | None:
    """Positions of an operation with those that it reads from, ``depth`` steps back; None where it has no tensors."""
    ops = _operations(main)
    places = {result: i for i, op in enumerate(ops) for result in op.results}
    if not ops[position].results or not all(isinstance(r.type, ir.RankedTensorType) for r in ops[position].results):
        return None
    chosen, level = {position}, [position]
    for step in range(len(ops)):
        sources = {places[v]: v for i in level for v in _read(ops[i]) if v in places and places[v] not in chosen}
        level = [i for i, v in sources.items() if _taken_along(ops[i], v) or (step < depth and ops[i].name != _LOAD)]
        if not level:
            break
        chosen.update(level)
    return sorted(chosen)


def _taken_along(op: ir.Operation, value: ir.Value) -> bool:
    return op.name in _KEEP or not isinstance(value.type, ir.RankedTensorType)


def _read(op: ir.Operation) -> list[ir.Value]:
    """Values that an operation reads, in its regions too."""
    values = list(op.operands)
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                values += _read(inner.operation)
    return values


def _inputs(main: ir.Operation, window: Sequence[int]) -> list[ir.Value]:
    """What a window reads from outside, in order."""
    ops = _operations(main)
    outside = {result for i, op in enumerate(ops) if i not in window for result in op.results}
    outside |= set(_block(main).arguments)
    return list(dict.fromkeys(value for i in window for value in _read(ops[i]) if value in outside))


def _try(before: Stage, window: list[int], step: str, inputs: list[np.ndarray], moved: Any) -> Reduced | None:
    try:
        module = cut(before.module, window)
        good = reference.run(module, "main", inputs, before.weights)
        broken = module.clone(ip=False)
        run_pipeline(broken, f"builtin.module({step})", replay=False)
        if digest(broken) == digest(module):
            return None
        try:
            bad = reference.run(broken, "main", inputs, before.weights)
        except InterpreterError:
            return Reduced(module, inputs, len(window))
        return Reduced(module, inputs, len(window)) if moved(good, bad) else None
    except TilewrightError:
        return None


def _recorded(before: Stage, windows: list[list[int]], arguments: Sequence[Any]) -> dict[ir.Value, np.ndarray]:
    """Run @main once, as far as needed, and return what the windows read."""
    main = functions(before.module)["main"]
    wanted = list(dict.fromkeys(value for window in windows for value in _inputs(main, window)))
    ops = _operations(main)
    places = {result: i for i, op in enumerate(ops) for result in op.results}
    pending = [places[value] for value in wanted if value in places]
    needed: set[int] = set()
    while pending:
        i = pending.pop()
        if i not in needed:
            needed.add(i)
            pending += [places[value] for value in _read(ops[i]) if value in places]
    module = cut(before.module, sorted(needed), wanted)
    numbers = {argument: k for k, argument in enumerate(_block(main).arguments)}
    given = [np.array(arguments[numbers[value]]) for value in _inputs_of_cut(main, sorted(needed), wanted)]
    results = reference.run(module, "main", given, before.weights)
    return dict(zip(wanted, map(np.array, results), strict=True))


def _inputs_of_cut(main: ir.Operation, window: Sequence[int], outputs: Sequence[ir.Value] | None) -> list[ir.Value]:
    """What the function that :func:`cut` makes takes, as values of the original."""
    read = _inputs(main, window)
    arguments = set(_block(main).arguments)
    return list(dict.fromkeys([*read, *(value for value in outputs or () if value in arguments)]))


def cut(module: ir.Operation, window: Sequence[int], outputs: Sequence[ir.Value] | None = None) -> ir.Operation:
    """Return a copy of a module whose @main holds some operations only.

    Args:
        module: the original.
        window: positions of the operations to keep.
        outputs: values of the original to return; None: the results of the last operation kept.
    """
    main = functions(module)["main"]
    numbers = _numbers(main)
    read = [numbers[value] for value in _inputs_of_cut(main, window, outputs)]
    copy = module.clone(ip=False)
    function = functions(copy)["main"]
    values = {number: value for value, number in _numbers(function).items()}
    ops, block = _operations(function), _block(function)
    returned = [values[numbers[v]] for v in outputs] if outputs is not None else list(ops[window[-1]].results)
    with function.location:
        replaced = {}
        for number in read:
            argument = block.add_argument(values[number].type, function.location)
            replaced[values[number]] = argument
        for value, argument in replaced.items():
            value.replace_all_uses_with(argument)
        results = [replaced.get(value, value) for value in returned]
        name = ops[-1].name
        ops[-1].erase()
        with ir.InsertionPoint(block):
            ir.Operation.create(name, operands=results)
        for position in reversed(range(len(ops) - 1)):
            if position not in window:
                ops[position].erase()
        for _ in range(len(block.arguments) - len(read)):
            block.erase_argument(0)
        kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in results])
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
    for attribute in ("arg_attrs", "res_attrs"):
        if attribute in function.attributes:
            del function.attributes[attribute]
    _drop_unused(copy)
    return copy


def _numbers(main: ir.Operation) -> dict[ir.Value, int]:
    """Number the arguments of @main and the results of its operations."""
    values = [*_block(main).arguments, *(result for op in _operations(main) for result in op.results)]
    return {value: number for number, value in enumerate(values)}


def _drop_unused(module: ir.Operation) -> None:
    """Remove symbols that @main does not lead to."""
    symbols = functions(module)
    needed, pending = {"main"}, ["main"]
    while pending:
        for name in _SYMBOL.findall(str(symbols[pending.pop()])):
            if name in symbols and name not in needed:
                needed.add(name)
                pending.append(name)
    for name, op in symbols.items():
        if name not in needed:
            op.erase()
