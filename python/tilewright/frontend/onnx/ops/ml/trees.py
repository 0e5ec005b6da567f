# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tree ensembles: TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx

from tilewright.frontend.builder.scalars import BOOL, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.ml.encoders import (
    ML,
    computed,
    first_maximum,
    logistic,
    refuse_strings,
    rows,
    transformed,
)
from tilewright.frontend.onnx.registry import Builder, Node, op

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_MEMBER, _I64 = 6, np.dtype(np.int64)
_UNROLLED = 8  # weights of a leaf, where all have as many


@dataclass
class Forest:
    """Trees as vectors. A child is the number of a node, or ~leaf.

    Attributes:
        features: the column that each node compares.
        splits: with what.
        modes: how: an index of _MODES.
        yes: the child where the comparison holds.
        no: the other child.
        missing: whether NaN counts as yes.
        members: of each node, where its values in `pool` begin and end (mode MEMBER).
        pool: the values of all sets.
        roots: of each tree, as children are written.
        leaves: of each leaf, where its weights begin and end.
        targets: the output of each weight.
        weights: what leaves add.
    """

    splits: np.ndarray
    weights: np.ndarray
    features: list[int] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    yes: list[int] = field(default_factory=list)
    no: list[int] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)
    members: list[tuple[int, int]] = field(default_factory=list)
    pool: np.ndarray = field(default_factory=lambda: np.zeros(1))
    roots: list[int] = field(default_factory=list)
    leaves: list[tuple[int, int]] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)


def _array(node: Node, name: str, dtype: np.dtype) -> np.ndarray:
    """A list of numbers, given as floats or as a tensor."""
    tensor = node.attr(f"{name}_as_tensor")
    return np.array(node.attr(name, []), dtype) if tensor is None else onnx.numpy_helper.to_array(tensor).astype(dtype)


# Reading attributes -----------------------------------------------------------------------------------------------


def _read_new(node: Node, dtype: np.dtype) -> Forest:
    """The attributes of TreeEnsemble."""
    tensors = {name: node.attr(name) for name in ("nodes_splits", "leaf_weights", "nodes_modes", "membership_values")}
    arrays = {name: onnx.numpy_helper.to_array(t) for name, t in tensors.items() if t is not None}
    forest = Forest(arrays["nodes_splits"].astype(dtype), arrays["leaf_weights"].astype(dtype))
    forest.features, forest.modes = list(node.attr("nodes_featureids")), arrays["nodes_modes"].tolist()
    count = len(forest.modes)
    for side, children in (("true", forest.yes), ("false", forest.no)):
        pairs = zip(node.attr(f"nodes_{side}nodeids"), node.attr(f"nodes_{side}leafs"), strict=True)
        children.extend(~n if leaf else n for n, leaf in pairs)
    forest.missing = [bool(v) for v in node.attr("nodes_missing_value_tracks_true") or [0] * count]
    forest.targets = list(node.attr("leaf_targetids"))
    forest.leaves = [(i, i + 1) for i in range(len(forest.targets))]
    forest.roots = [_root(forest, n) for n in node.attr("tree_roots")]
    if "membership_values" in arrays:
        forest.pool = arrays["membership_values"].astype(dtype)
        forest.members = _members(node, forest)
    return forest


def _root(forest: Forest, n: int) -> int:
    """A tree that is one leaf is written as a node with that leaf twice."""
    inner = 0 <= n < min(len(forest.yes), len(forest.no))
    return forest.yes[n] if inner and forest.yes[n] < 0 and forest.yes[n] == forest.no[n] else n


def _members(node: Node, forest: Forest) -> list[tuple[int, int]]:
    """The sets, each ended by NaN, in the order in which a walk (root, yes, no) meets their nodes."""
    ends = np.flatnonzero(np.isnan(forest.pool)).tolist()
    starts = [0, *(end + 1 for end in ends)]
    found = [(0, 0)] * len(forest.modes)
    members = [n for n in _walk(node, forest) if forest.modes[n] == _MEMBER]
    if len(members) > len(ends):
        node.wrong("membership_values has fewer sets than there are nodes of mode MEMBER")
    for i, n in enumerate(members):
        found[n] = (starts[i], ends[i])
    return found


def _walk(node: Node, forest: Forest) -> Iterator[int]:
    """All nodes below the roots: each before its `yes`, and that before its `no`."""
    nodes, leaves, seen = len(forest.modes), len(forest.leaves), set()
    columns = (forest.features, forest.splits, forest.yes, forest.no, forest.missing)
    if any(len(column) != nodes for column in columns):
        node.wrong(f"{[len(column) for column in columns]} attributes for {nodes} nodes")
    stack = list(reversed(forest.roots))
    while stack:
        n = stack.pop()
        if not -leaves <= n < nodes:
            node.wrong("a child is none of the nodes and leaves")
        if n < 0:
            continue
        if n in seen:
            node.wrong("a node is the child of two others, or of one below it")
        seen.add(n)
        yield n
        stack += [forest.no[n], forest.yes[n]]


def _read_old(node: Node, dtype: np.dtype, kind: str) -> Forest:
    """The attributes of TreeEnsembleRegressor (kind "target") and TreeEnsembleClassifier ("class")."""
    keys = list(zip(node.attr("nodes_treeids"), node.attr("nodes_nodeids"), strict=True))
    number = {key: i for i, key in enumerate(keys)}
    modes = node.attr("nodes_modes")
    entries: dict[tuple[int, int], list[int]] = {}
    for i, key in enumerate(zip(node.attr(f"{kind}_treeids"), node.attr(f"{kind}_nodeids"), strict=True)):
        entries.setdefault(key, []).append(i)
    order = [i for key in keys for i in entries.get(key, [])]
    weights, ids = _array(node, f"{kind}_weights", dtype), node.attr(f"{kind}_ids")
    forest = Forest(_array(node, "nodes_values", dtype), weights[order])
    forest.targets = [ids[i] for i in order]
    leaf_of: dict[int, int] = {}
    start = 0
    for i, key in enumerate(keys):
        if modes[i] == "LEAF":
            leaf_of[i] = len(forest.leaves)
            forest.leaves.append((start, start + len(entries.get(key, []))))
        start += len(entries.get(key, []))

    def child(tree: int, n: int) -> int:
        i = number[tree, n]
        return ~leaf_of[i] if i in leaf_of else i

    forest.features = list(node.attr("nodes_featureids"))
    yes, no = node.attr("nodes_truenodeids"), node.attr("nodes_falsenodeids")
    for i, (tree, _) in enumerate(keys):
        inner = i not in leaf_of
        forest.modes.append(_MODES.index(modes[i]) if inner else 0)
        forest.yes.append(child(tree, yes[i]) if inner else 0)
        forest.no.append(child(tree, no[i]) if inner else 0)
    forest.missing = [bool(v) for v in node.attr("nodes_missing_value_tracks_true") or [0] * len(keys)]
    forest.roots = _roots(keys, forest, leaf_of)
    return forest


def _roots(keys: list[tuple[int, int]], forest: Forest, leaf_of: dict[int, int]) -> list[int]:
    """The first node of each tree that is nobody's child."""
    inner = [i for i in range(len(keys)) if i not in leaf_of]
    children = {c for i in inner for c in (forest.yes[i], forest.no[i])}
    roots: dict[int, int] = {}
    for i, (tree, _) in enumerate(keys):
        name = ~leaf_of[i] if i in leaf_of else i
        if name not in children:
            roots.setdefault(tree, name)
    return list(roots.values())


# The program ------------------------------------------------------------------------------------------------------


class _Walk:
    """Evaluates a forest on the rows of a matrix."""

    def __init__(self, b: Builder, forest: Forest, x: Tensor) -> None:
        self.b, self.forest, self.x = b, forest, b.array(x)

        def table(values, dtype: np.typing.DTypeLike) -> Tensor:
            return b.array(Tensor.known(np.array(values if len(values) else [0], dtype)))

        self.features, self.modes = table(forest.features, _I64), table(forest.modes, _I64)
        self.splits, self.weights = table(forest.splits, x.dtype), table(forest.weights, x.dtype)
        self.yes, self.no = table(forest.yes, _I64), table(forest.no, _I64)
        self.missing = table(forest.missing, np.bool_)
        self.starts, self.ends = (table([pair[i] for pair in forest.leaves], _I64) for i in (0, 1))
        self.targets, self.roots = table(forest.targets, _I64), table(forest.roots, _I64)
        if _MEMBER in forest.modes:
            self.pool = table(forest.pool, x.dtype)
            self.first, self.past = (table([pair[i] for pair in forest.members], _I64) for i in (0, 1))

    def leaf(self, row: Scalar, tree: Scalar) -> Scalar:
        """The leaf that a row reaches in a tree."""
        b, m = self.b, self.b.math

        def step(n: Scalar) -> list[Scalar]:
            return [m.where(self._holds(row, n), b.at(self.yes, [n]), b.at(self.no, [n]))]

        (n,) = b.while_([b.at(self.roots, [tree])], lambda n: n >= 0, step)
        return -1 - n

    def _holds(self, row: Scalar, n: Scalar) -> Scalar:
        b, m = self.b, self.b.math
        value, split = b.at(self.x, [row, b.at(self.features, [n])]), b.at(self.splits, [n])
        used = sorted(set(self.forest.modes))
        result = self._compare(used[0], value, split, n)
        for mode in used[1:]:
            result = m.where(m.eq(b.at(self.modes, [n]), mode), self._compare(mode, value, split, n), result)
        if any(self.forest.missing):
            result = m.logical_or(result, m.logical_and(b.at(self.missing, [n]), m.is_nan(value)))
        return result

    def _compare(self, mode: int, value: Scalar, split: Scalar, n: Scalar) -> Scalar:
        b, m = self.b, self.b.math
        if mode == _MEMBER:
            first, past = b.idx(b.at(self.first, [n])), b.idx(b.at(self.past, [n]))

            def test(i: Scalar, found: Scalar) -> list[Scalar]:
                return [m.logical_or(found, m.eq(b.at(self.pool, [i]), value))]

            return b.for_(first, past, [m.scalar(0, BOOL)], test)[0]
        comparisons = (
            lambda: value <= split,
            lambda: value < split,
            lambda: value >= split,
            lambda: value > split,
            lambda: m.eq(value, split),
            lambda: m.logical_not(m.eq(value, split)),
        )
        return comparisons[mode]()

    def scores(self, outputs: int, aggregate: str) -> tuple[Tensor, Tensor]:
        """The aggregated weights of each row and output, and which of them any leaf gave."""
        b, m = self.b, self.b.math
        shape = [self.x.shape[0], outputs]

        def visit(at: list[Scalar], total: Tensor, seen: Tensor) -> list[Tensor]:
            leaf = self.leaf(*at)

            def add(i: Scalar, total: Tensor, seen: Tensor) -> list[Tensor]:
                place = [at[0], b.at(self.targets, [i])]
                old, weight = b.at(total, place), b.at(self.weights, [i])
                if aggregate in ("MIN", "MAX"):
                    pick = m.minimum if aggregate == "MIN" else m.maximum
                    new = m.where(b.at(seen, place), pick(old, weight), weight)
                else:
                    new = old + weight
                return [b.put(new, total, place), b.put(1, seen, place)]

            first, past = (b.idx(b.at(ends, [leaf])) for ends in (self.starts, self.ends))
            counts = {end - start for start, end in self.forest.leaves}
            if len(counts) > 1 or max(counts) > _UNROLLED:
                return b.for_(first, past, [total, seen], add)
            for j in range(max(counts)):
                total, seen = add(first + j, total, seen)
            return [total, seen]

        start = [b.full(0, shape, self.x.dtype), b.full(0, shape, BOOL)]
        trees = len(self.forest.roots)
        total, seen = b.nest([shape[0], trees], start, visit)
        if aggregate == "AVERAGE":
            total = b.elementwise(lambda m, t: t / float(trees), total)
        return total, seen


def _checked(node: Node, forest: Forest, x: Tensor, outputs: int) -> Forest:
    """The forest, if no node can lead out of its vectors."""
    features = x.shape[1]
    if not isinstance(features, int) or any(not 0 <= f < features for f in forest.features):
        node.wrong(f"nodes compare columns up to {max(forest.features)}, but the input has {features}")
    if any(not 0 <= t < outputs for t in forest.targets):
        node.wrong(f"leaves name outputs up to {max(forest.targets)}, but there are {outputs}")
    for _ in _walk(node, forest):
        pass
    if not set(forest.modes) <= set(range(len(_MODES))):
        node.wrong(f"modes {sorted(set(forest.modes))} are not all known")
    return forest


def _choice(node: Node, name: str, names: tuple[str, ...], default: str) -> str:
    given = node.attr(name, default)
    if isinstance(given, int):
        given = names[given] if 0 <= given < len(names) else str(given)
    if given not in names:
        node.wrong(f"{name} {given} is not one of {', '.join(names)}")
    return given


@op("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Regression with any number of targets."""
    outputs = node.attr("n_targets", 1)
    forest = _checked(node, _read_new(node, x.dtype), x, outputs)
    total, _ = _Walk(b, forest, x).scores(outputs, _choice(node, "aggregate_function", _AGGREGATES, "SUM"))
    return transformed(b, node, _choice(node, "post_transform", _TRANSFORMS, "NONE"), total)


@op("TreeEnsembleRegressor", domain=ML)
def tree_regressor(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The same with one list of nodes for all trees."""
    x, outputs = computed(b, rows(b, x)), node.attr("n_targets", 1)
    forest = _checked(node, _read_old(node, x.dtype, "target"), x, outputs)
    total, _ = _Walk(b, forest, x).scores(outputs, _choice(node, "aggregate_function", _AGGREGATES, "SUM"))
    total = _with_base(b, node, total)
    return b.cast(transformed(b, node, node.attr("post_transform", "NONE"), total), np.float32)


def _with_base(b: Builder, node: Node, total: Tensor) -> Tensor:
    base = _array(node, "base_values", total.dtype)
    return b.elementwise(lambda m, t, v: t + v, total, Tensor.known(base)) if base.size else total


@op("TreeEnsembleClassifier", domain=ML)
def tree_classifier(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """The label of the largest score, and the scores.

    Two labels of which only one has weights are decided by that score: above 0.5 where no weight is negative, else
    above 0. If it is the first one's, its scores are 1 - s (or -s) and s.
    """
    refuse_strings(node, "classlabels_strings")
    labels, kind = node.attr("classlabels_int64s", []), node.attr("post_transform", "NONE")
    x = computed(b, rows(b, x))
    forest = _checked(node, _read_old(node, x.dtype, "class"), x, len(labels))
    given, bases = set(forest.targets), _array(node, "base_values", x.dtype).size
    if len(labels) == 2 and given == {0} and bases < 2:
        return _binary(b, node, forest, x, labels, kind)
    total, _ = _Walk(b, forest, x).scores(len(labels), "SUM")
    total = _with_base(b, node, total) if bases > 1 else total
    if len(labels) == 2 and given == {1}:
        best = _decided(b, forest, b.slice(total, [0, 1], [total.shape[0], 1], [1, 1]), labels)
    else:
        best = b.gather(Tensor.known(labels, _I64), first_maximum(b, total), 0)
    return [best, b.cast(transformed(b, node, kind, total), np.float32)]


def _decided(b: Builder, forest: Forest, score: Tensor, labels: list[int]) -> Tensor:
    """The second label where the only score is above its bound."""
    bound = 0.5 if (forest.weights >= 0).all() else 0.0
    above = b.elementwise(lambda m, s: s > bound, score.squeeze([1]), dtype=np.bool_)
    return b.elementwise(lambda m, c: m.where(c, m.scalar(labels[1], _I64), labels[0]), above, dtype=_I64)


def _binary(b: Builder, node: Node, forest: Forest, x: Tensor, labels: list[int], kind: str) -> list[Tensor]:
    score, _ = _Walk(b, forest, x).scores(1, "SUM")
    base = _array(node, "base_values", x.dtype)
    if base.size:
        shift = float(base[-1])
        score = b.elementwise(lambda m, s: s + shift, score)
    label = _decided(b, forest, score, labels)
    if kind == "PROBIT":
        node.unsupported("PROBIT of a single score: implementations differ on whether it gives one column or two")
    if kind == "LOGISTIC":
        rest, score = b.elementwise(lambda m, s: logistic(m, -s), score), b.elementwise(logistic, score)
    elif (forest.weights >= 0).all():
        rest = b.elementwise(lambda m, s: 1.0 - s, score)
    else:
        rest = b.elementwise(lambda m, s: -s, score)
    return [label, b.cast(b.concat([rest, score], 1), np.float32)]
