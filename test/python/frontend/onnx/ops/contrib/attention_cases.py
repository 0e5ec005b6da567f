# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random nodes of attention and of what stands beside it, each from a seed; which sizes are open is drawn as well.

A case says what a node gets; `model` writes it with fixed or open sizes. Not all combinations are allowed: ONNX Runtime
says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I32, I64 = np.float32, np.int32, np.int64
MS = "com.microsoft"
LOWEST = float(np.finfo(F32).min)


@dataclass
class Given:
    """One input: an array, and for each dimension its number or the name of its size."""

    array: np.ndarray
    dims: Sequence[int | str]
    known: bool = False


@dataclass
class Case:
    """One node.

    Attributes:
        op: the operator.
        inputs: in order; None for one that is absent.
        outputs: types of the results; None for one that is absent.
        attributes: of the node.
        domain: of the operator.
        opset: of ai.onnx.
        opens: names of the sizes that the open form leaves open.
        unspecified: makes NaN of what nobody specifies in ONNX Runtime's results.
    """

    op: str
    inputs: list[Given | None]
    outputs: list[str | None]
    attributes: dict = field(default_factory=dict)
    domain: str = MS
    opset: int = 17
    opens: frozenset[str] = frozenset()
    unspecified: Callable[[list[np.ndarray]], None] | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """What a run gets."""
        return {f"x{i}": x.array for i, x in enumerate(self.inputs) if x is not None and not x.known}

    def said(self) -> str:
        """One line: the operator, the shapes of its inputs and its attributes."""
        shapes = ["-" if x is None else f"{x.array.dtype}{list(x.array.shape)}{'=' * x.known}" for x in self.inputs]
        return f"{self.op}({', '.join(shapes)}) {self.attributes} -> {len(self.outputs)} open: {sorted(self.opens)}"


def model(case: Case, opens: bool = False) -> onnx.ModelProto:
    """The node as a model; with `opens`, sizes in `case.opens` are symbols."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(case.inputs)]
    results = ["" if kind is None else f"y{i}" for i, kind in enumerate(case.outputs)]
    node = helper.make_node(case.op, names, results, name=f"the_{case.op}", domain=case.domain, **case.attributes)
    pairs = [(n, x) for n, x in zip(names, case.inputs, strict=True) if x is not None]
    inputs = [_info(n, x, case.opens if opens else frozenset()) for n, x in pairs if not x.known]
    outputs = [
        helper.make_tensor_value_info(n, getattr(TensorProto, str(kind).upper()), None)
        for n, kind in zip(results, case.outputs, strict=True)
        if n
    ]
    weights = [numpy_helper.from_array(x.array, n) for n, x in pairs if x.known]
    graph = helper.make_graph([node], case.op, inputs, outputs, weights)
    imports = [helper.make_opsetid("", case.opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _info(name: str, x: Given, opens: frozenset[str]) -> onnx.ValueInfoProto:
    shape = [d if d in opens else n for d, n in zip(x.dims, x.array.shape, strict=True)]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.array.dtype), shape)


class Draw:
    """Random sizes and inputs of one case."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.sizes: dict[str, int] = {}
        self.fixed: set[str] = set()  # sizes that the open form states as well
        self.size("batch", 1, 3)
        self.size("rows", 1, 5)

    def chance(self, share: float) -> bool:
        """True in `share` of the cases."""
        return bool(self.random.random() < share)

    def pick(self, *choices):
        """One of them."""
        return choices[self.random.integers(len(choices))]

    def size(self, name: str, low: int, high: int) -> int:
        """Draw the size `name`."""
        self.sizes[name] = int(self.random.integers(low, high + 1))
        return self.sizes[name]

    def shape(self, dims: Sequence[int | str]) -> list[int]:
        """Numbers of the dimensions."""
        return [self.sizes[d] if isinstance(d, str) else d for d in dims]

    def real(self, *dims: int | str, known: bool = False) -> Given:
        """Normal numbers."""
        return Given(self.random.standard_normal(self.shape(dims)).astype(F32), dims, known)

    def whole(self, low: int, high: int, *dims: int | str, dtype=I32, known: bool = False) -> Given:
        """Integers from low to high, both included."""
        return Given(self.random.integers(low, high + 1, self.shape(dims)).astype(dtype), dims, known)

    def bits(self, share: float, *dims: int | str, dtype=I32) -> Given:
        """1 in `share` of the elements, else 0."""
        return Given((self.random.random(self.shape(dims)) < share).astype(dtype), dims)

    def opens(self, joined: Sequence[tuple[str, Sequence[str]]] = ()) -> frozenset[str]:
        """Some of the sizes; a joined one is open where a part of it is."""
        free = {n for n in self.sizes if self.chance(0.7)} - {n for n, _ in joined} - self.fixed
        return frozenset(free | {n for n, parts in joined if free & set(parts)})


def trimmed(inputs: list[Given | None]) -> list[Given | None]:
    """Without absent inputs at the end."""
    while inputs[-1] is None:
        inputs.pop()
    return inputs


def padding(d: Draw, total: str) -> Given | None:
    """A mask of com.microsoft of any of its forms."""
    columns, batch = d.sizes[total], d.sizes["batch"]
    ends = d.random.integers(1, columns + 1, batch)
    starts = (ends * d.random.random(batch)).astype(int)
    forms = [
        None,
        d.bits(0.7, "batch", total),
        d.bits(0.7, "batch", "rows", total),
        Given(ends.astype(I32), ["batch"]),
        Given(np.r_[ends, starts].astype(I32), [2 * batch]),
        d.bits(0.0, "batch", total),
    ]
    chosen = forms[d.random.integers(len(forms))]
    if chosen is not None and chosen.array.shape == (2 * batch,):
        d.fixed.add("batch")  # ends and starts are told from lengths by it
    return chosen


def added(d: Draw, heads: int, total: str, share: float = 0.4) -> Given | None:
    """A bias of the scores."""
    return d.real(d.pick(1, "batch"), d.pick(1, heads), "rows", total) if d.chance(share) else None


def common(d: Draw, heads: int) -> dict:
    """Attributes that attentions of com.microsoft share."""
    found: dict = {"num_heads": heads, "unidirectional": d.pick(0, 1)}
    if d.chance(0.3):
        found["scale"] = 0.3
    if d.chance(0.4):
        found["mask_filter_value"] = d.pick(LOWEST, -100.0)
    return found


def self_attention(seed: int) -> Case:
    """com.microsoft's Attention."""
    d = Draw(seed)
    heads, size, inputs = d.pick(1, 2, 4), d.pick(2, 4, 8), d.pick(3, 8)
    width, past = heads * size, d.chance(0.4)
    held = d.size("past", 0, 6) if past else 0
    d.sizes["total"] = d.sizes["rows"] + held
    attributes, value = common(d, heads), width
    if not past and d.chance(0.3):
        value = heads * d.pick(2, 3)
        attributes["qkv_hidden_sizes"] = [width, width, value]
    columns, known = 2 * width + value, d.chance(0.6)
    given = [
        d.real("batch", "rows", inputs),
        d.real(inputs, columns, known=known),
        d.real(columns, known=known) if d.chance(0.7) else None,
        padding(d, "total"),
        d.real(2, "batch", heads, "past", size) if past else None,
        None if past else added(d, heads, "total"),
    ]
    outputs: list[str | None] = ["float"] * (2 if past or d.chance(0.3) and value == width else 1)
    opens = d.opens([("total", ("rows", "past"))])
    return Case("Attention", trimmed(given), outputs, attributes, opens=opens)


def _keys(d: Draw, width: int, wide: int, split: tuple[int, int] | None) -> list[Given]:
    if split is not None:
        return [d.real("batch", split[0], "keys", split[1]) for _ in range(2)]
    return [d.real("batch", "keys", width), d.real("batch", "keys", wide)]


def multi_head(seed: int) -> Case:
    """com.microsoft's MultiHeadAttention; keys are the queries' own in half of the cases."""
    d = Draw(seed)
    heads, size = d.pick(1, 2, 4), d.pick(2, 4, 8)
    width, past = heads * size, d.chance(0.4)
    held = d.size("past", 0, 6) if past else 0
    own = d.chance(0.5)
    keys = d.size("keys", d.sizes["rows"], d.sizes["rows"]) if own else d.size("keys", 1, 7)
    d.sizes["total"] = keys + held
    split = (heads, size) if not past and d.chance(0.2) else None
    wide = width if past or split else heads * d.pick(size, 3)
    given = [
        d.real("batch", "rows", width),
        *_keys(d, width, wide, split),
        d.real(2 * width + wide, known=d.chance(0.5)) if not split and d.chance(0.5) else None,
        padding(d, "total"),
        added(d, heads, "total"),
        *([d.real("batch", heads, "past", size) for _ in range(2)] if past else []),
    ]
    outputs: list[str | None] = ["float"] * (3 if past or d.chance(0.3) else 1)
    outputs += ["float"] if len(outputs) == 3 and d.chance(0.3) else []
    opens = d.opens([("total", ("keys", "past")), *([("keys", ("rows",))] if own else [])])
    opens = opens | {"total"} if "keys" in opens else opens
    return Case("MultiHeadAttention", trimmed(given), outputs, common(d, heads), opens=opens)


def _lengths(d: Draw) -> tuple[np.ndarray, bool]:
    """Lengths less one of the rows with new tokens, and whether there is a past; the sizes rows and past are drawn."""
    batch, form = d.sizes["batch"], d.random.integers(3)
    if form == 0:  # a prompt, maybe with padding, into nothing or a buffer
        rows = d.size("rows", 2, 5)
        lengths = d.random.integers(0, rows, batch)
        lengths[d.random.integers(batch)] = rows - 1
        d.size("past", 0, 0) if d.chance(0.3) else d.size("past", rows, rows + 4)
        return lengths, d.chance(0.6)
    if form == 1:  # one token each
        d.size("rows", 1, 1)
        return d.random.integers(0, d.size("past", 1, 8), batch), True
    d.size("batch", 1, 1)  # a part of a prompt
    rows = d.size("rows", 1, 5)
    past = d.size("past", rows, rows + 5)
    return d.random.integers(rows - 1, past, 1), True


def group_query(seed: int) -> Case:
    """com.microsoft's GroupQueryAttention."""
    d = Draw(seed)
    few = d.pick(1, 2)
    heads, size = few * d.pick(1, 2, 3), d.pick(16, 32)
    lengths, past = _lengths(d)
    total = int(max(lengths)) + 1
    d.sizes["total"] = total
    attributes: dict = {"num_heads": heads, "kv_num_heads": few}
    rotary, packed = d.chance(0.5), d.chance(0.3)
    new = [d.real("batch", "rows", (heads + 2 * few) * size), None, None]
    if not packed:
        new = [d.real("batch", "rows", n * size) for n in (heads, few, few)]
    angle = d.random.uniform(0, 6, (24, size // 2))
    tables = [Given(f(angle).astype(F32), angle.shape, True) for f in (np.cos, np.sin)] if rotary else [None, None]
    if rotary:
        attributes.update(do_rotary=1, rotary_interleaved=d.pick(0, 1))
    for name, value in (("local_window_size", d.pick(1, 2, 5)), ("softcap", 2.0), ("scale", 0.3)):
        if d.chance(0.25):
            attributes[name] = value
    sink = d.real(heads) if d.chance(0.2) else None
    if sink is None and d.chance(0.2):
        attributes["smooth_softmax"] = 1
    given = [
        *new,
        *([d.real("batch", few, "past", size) for _ in range(2)] if past else [None, None]),
        Given(lengths.astype(I32), ["batch"]),
        Given(np.array([total], I32), [1], d.chance(0.3)),
        *tables,
        None,
        added(d, heads, "total", 0.3),
        sink,
    ]

    def unspecified(results: list[np.ndarray]) -> None:
        for row, last in enumerate(lengths):
            results[0][row, last + 1 :] = np.nan  # padding behind a prompt
            for cache in results[1:3]:
                cache[row, :, last + 1 :] = np.nan

    opens = d.opens()
    return Case("GroupQueryAttention", trimmed(given), ["float"] * 3, attributes, opens=opens, unspecified=unspecified)
