# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long the lists of a parameter must be: where a program reads an element of each by a number.

`xs[0]` and `xs[-1]` of an empty list are errors that only a call shows. What is found here is written on the argument
that holds the offsets, and is checked there on the host. Only what surely runs for each list counts: a list that maps,
recurrences and filters hand to their bodies as the parameter has it, and no body in between that may not run at all.
"""

from __future__ import annotations

import re
from typing import Any

from tilewright.dialects.fractal.flat_inputs import SHORTEST
from tilewright.mlir import ir
from tilewright.mlir.dialects.fractal import ArrayType

#: Ops whose bodies run for each element, and how many of the body's arguments come first, none of them an element.
_WALKS = {"fractal.map": False, "fractal.filter": False, "fractal.scan": True, "fractal.fold": True}


def annotate(main: ir.Operation) -> None:
    """Write on each argument that is offsets how long their lists are at least."""
    needs: dict[int, tuple[int, int, str]] = {}
    _visit(main.regions[0].blocks[0], needs)
    arguments = [ir.DictAttr(given) for given in main.attributes["arg_attrs"]]
    for number, (length, element, location) in needs.items():
        word = ir.IntegerType.get_signless(64)
        said = {
            "length": ir.IntegerAttr.get(word, length),
            "element": ir.IntegerAttr.get(word, element),
            "location": ir.StringAttr.get(location),
        }
        old = {named.name: named.attr for named in arguments[number]}
        arguments[number] = ir.DictAttr.get(old | {SHORTEST: ir.DictAttr.get(said)})
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)


def _visit(block: ir.Block, needs: dict[int, tuple[int, int, str]]) -> None:
    for view in block.operations:
        op = view.operation
        if op.name == "fractal.at":
            _note(op, needs)
        for region in op.regions:
            for inner in region.blocks:
                _visit(inner, needs)


def _note(op: ir.Operation, needs: dict[int, tuple[int, int, str]]) -> None:
    """What an access needs, if it is one of each list of a parameter."""
    element = _number(op.operands[1])
    walked: list[ir.Operation] = []
    offsets = _offsets_of(op.operands[0], walked)
    if element is None or offsets is None or not _surely_runs(op, walked):
        return
    length = element + 1 if element >= 0 else -element
    if length > needs.get(offsets, (0, 0, ""))[0]:
        needs[offsets] = (length, element, _line(op))


def _number(place: ir.Value) -> int | None:
    """The index that a program writes, negative where it counts from the end."""
    if isinstance(place.owner, ir.Block):
        return None
    op = place.owner
    if op.name == "arith.constant":
        return ir.IntegerAttr(op.attributes["value"]).value
    if op.name == "arith.addi" and _is(op.operands[0], "fractal.length"):
        offset = _number(op.operands[1])
        return offset if offset is not None and offset < 0 else None
    return None


def _is(value: Any, name: str) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == name


def _offsets_of(value: ir.Value, walked: list[ir.Operation]) -> int | None:
    """The number of the argument that says how long a list is, if the list is one of a parameter's."""
    level = 0
    while True:
        if isinstance(value, ir.BlockArgument):
            op = value.owner.owner.operation
            first = len(op.results) if _WALKS.get(op.name) else 0
            if op.name not in _WALKS or value.arg_number < first:
                return None
            walked.append(op)
            value, level = op.operands[value.arg_number], level + 1
        elif _is(value, "fractal.cast"):
            value = value.owner.operands[0]
        else:
            break
    if not level or not _is(value, "fractal.from_ragged"):
        return None
    offsets = value.owner.operands[level]
    return offsets.arg_number if isinstance(offsets, ir.BlockArgument) else None


def _surely_runs(op: ir.Operation, walked: list[ir.Operation]) -> bool:
    """Whether all around it are the walks to its list, or others over at least one element."""
    around = op.parent
    while around is not None and around.operation.name != "func.func":
        outer = around.operation
        if outer not in walked and not (outer.name in _WALKS and _has_elements(outer)):
            return False
        around = outer.parent
    return True


def _has_elements(op: ir.Operation) -> bool:
    lists = list(op.operands)[len(op.results) if _WALKS[op.name] else 0 :]
    return any(ArrayType(xs.type).lengths[0] > 0 for xs in lists)


def _line(op: ir.Operation) -> str:
    """File and line of the program."""
    found = re.search(r'"([^"]+)":(\d+)', str(op.location))
    return f"{found[1]}:{found[2]}" if found else ""
