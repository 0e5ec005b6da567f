# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python expressions for frequent ops on scalars: what the handlers compute, without their care for arrays.

:func:`expression` returns a format string: ``{0}``, ``{1}`` are the operands, ``{T}`` the type of the result and
``{call}`` the call of the op's handler, which is left to do what is rare (an error, say). Where it returns None, the
handler does all. ``test_code.py`` holds each expression against its handler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.core.arithmetic import PREDICATES
from tilewright.core.math_functions import ON_FLOAT64
from tilewright.reference import affine, types
from tilewright.reference.program import Node

Kinds = Sequence[np.dtype | None]  # dtype of each scalar operand, None for a shaped one
Template = Callable[[Node, Kinds], str | None]


def is_(kinds: Kinds, allowed: str) -> bool:
    """True when all operands are scalars of NumPy's own dtypes of the kinds in ``allowed``."""
    return all(kind is not None and kind.kind in allowed for kind in kinds)


def _fixed(text: str, allowed: str) -> Template:
    return lambda _node, kinds: text if is_(kinds, allowed) else None


def _shift(operator: str) -> Template:
    def template(_node: Node, kinds: Kinds) -> str | None:
        if not is_(kinds, "i") or kinds[0] is None:
            return None
        return f"{{0}} {operator} {{1}} if 0 <= {{1}} < {kinds[0].itemsize * 8} else {{call}}"

    return template


def _select(_node: Node, kinds: Kinds) -> str | None:
    return "{1} if {0} else {2}" if kinds[0] is not None else None


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ORDERED = {*(f"o{name}" for name in _COMPARISONS if name != "ne"), "une"}  # what Python's operators say of NaN


def _compare_integers(node: Node, kinds: Kinds) -> str | None:
    predicate = PREDICATES[node.name][node.op.attributes["predicate"].value]
    if predicate[0] == "u" or not is_(kinds, "ib" if predicate in ("eq", "ne") else "i"):
        return None
    return f"{{0}} {_COMPARISONS[predicate[-2:]]} {{1}}"


def _compare_floats(node: Node, kinds: Kinds) -> str | None:
    predicate = PREDICATES[node.name][node.op.attributes["predicate"].value]
    return f"{{0}} {_COMPARISONS[predicate[1:]]} {{1}}" if predicate in _ORDERED and is_(kinds, "f") else None


def _cast(node: Node, kinds: Kinds) -> str | None:
    """Between NumPy's own types; only narrowing to fewer bits needs ``astype``."""
    target = types.dtype_of(node.result_type())
    source = kinds[0]
    if source is None or source.kind not in "if" or target.kind not in "if":
        return None
    if source == target:
        return "{0}"
    narrows = target.kind == "i" and target.itemsize < source.itemsize
    return "{0}.astype({T})" if narrows else "{T}({0})"


def _zero_extended(node: Node, kinds: Kinds) -> str | None:
    numeric = types.dtype_of(node.result_type()).kind == "i"
    return "{T}({0})" if numeric and is_(kinds, "b") else None


def _extract(_node: Node, kinds: Kinds) -> str | None:
    index = [f"{{{i}}}" for i in range(1, len(kinds))]
    if not is_(kinds[1:], "i"):
        return None
    legal = " and ".join(f"{i} >= 0" for i in index) or "True"
    return f"{{0}}[{', '.join(index) or '()'}] if {legal} else {{call}}"


def _dim(node: Node, kinds: Kinds) -> str | None:
    rank = len(types.shape_of(node.operand_type(0)))
    return f"int64({{0}}.shape[{{1}}]) if 0 <= {{1}} < {rank} else {{call}}" if is_(kinds[1:], "i") else None


def _affine(join: str) -> Template:
    def template(node: Node, kinds: Kinds) -> str | None:
        if not is_(kinds, "i"):
            return None
        terms = affine.read_map(node.op.attributes["map"].value)
        values = [_term(term) for term in terms]
        return f"int64({values[0]})" if len(values) == 1 else f"int64({join}({', '.join(values)}))"

    return template


def _term(term: affine.Term) -> str:
    if term.kind == "dim":
        return f"{{{term.value}}}"
    if term.kind == "constant":
        return f"({term.value})"
    lhs, rhs = map(_term, term.parts)
    if term.kind == "ceildiv":
        return f"(-((-{lhs}) // {rhs}))"
    return f"({lhs} { {'mod': '%', 'floordiv': '//'}.get(term.kind, term.kind) } {rhs})"


_INTEGER = {
    "addi": "{0} + {1}",
    "subi": "{0} - {1}",
    "muli": "{0} * {1}",
    "maxsi": "{0} if {0} > {1} else {1}",
    "minsi": "{0} if {0} < {1} else {1}",
    "divsi": "{0} // {1} if {0} >= 0 and {1} > 0 else {call}",
    "remsi": "{0} % {1} if {0} >= 0 and {1} > 0 else {call}",
}
_INDEX = {"divs": "divsi", "rems": "remsi", "maxs": "maxsi", "mins": "minsi"}
_LOGICAL = {"andi": "{0} & {1}", "ori": "{0} | {1}", "xori": "{0} ^ {1}"}
_ARITHMETIC = {"addf": "{0} + {1}", "subf": "{0} - {1}", "mulf": "{0} * {1}", "divf": "{0} / {1}", "negf": "-{0}"}

TEMPLATES: dict[str, Template] = {
    **{f"arith.{name}": _fixed(text, "i") for name, text in _INTEGER.items()},
    **{f"arith.{name}": _fixed(text, "ib") for name, text in _LOGICAL.items()},
    **{f"arith.{name}": _fixed(text, "f") for name, text in _ARITHMETIC.items()},
    **{f"index.{name}": _fixed(_INTEGER[f"{name}i"], "i") for name in ("add", "sub", "mul")},
    **{f"index.{name}": _fixed(_INTEGER[arith], "i") for name, arith in _INDEX.items()},
    "arith.select": _select,
    "arith.shli": _shift("<<"),
    "arith.shrsi": _shift(">>"),
    "arith.extui": _zero_extended,
    "arith.cmpi": _compare_integers,
    "arith.cmpf": _compare_floats,
    **dict.fromkeys(("arith.index_cast", "arith.extsi", "arith.trunci", "arith.sitofp", "index.casts"), _cast),
    **dict.fromkeys(("arith.extf", "arith.truncf"), _cast),
    **dict.fromkeys(("tensor.extract", "memref.load"), _extract),
    **dict.fromkeys(("tensor.dim", "memref.dim"), _dim),
    "affine.apply": _affine(""),
    "affine.min": _affine("min"),
    "affine.max": _affine("max"),
}


def expression(node: Node, kinds: Kinds) -> str | None:
    """Return the format string for ``node``, whose operands have ``kinds``; None where the handler is to be called."""
    template = TEMPLATES.get(node.name)
    if template is not None:
        return template(node, kinds)
    function = ON_FLOAT64.get(node.name.removeprefix("math."))
    if isinstance(function, np.ufunc) and len(kinds) == 1 and is_(kinds, "f"):
        return f"{{T}}(numpy.{function.__name__}(float64({{0}})))"
    return None
