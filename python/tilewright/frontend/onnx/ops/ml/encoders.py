# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ai.onnx.ml on numbers: extractors, encoders, scalers, linear models."""

from __future__ import annotations

from math import pi
from typing import NoReturn

import numpy as np
import onnx

from tilewright.frontend.builder.dtypes import F32, I64
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.extrema import extremum_places
from tilewright.frontend.onnx.ops.math.reduction import softmax
from tilewright.frontend.onnx.registry import Builder, Node, op

ML = "ai.onnx.ml"


def strings(node: Node, attributes: list[str]) -> NoReturn:
    """Refuse a node for its strings."""
    node.unsupported(f"strings have no lowering ({', '.join(attributes)}); encode them as integers before the model")


def refuse_strings(node: Node, *attributes: str) -> None:
    """Refuse a node that has one of these attributes."""
    given = [name for name in attributes if node.attr(name)]
    if given:
        strings(node, given)


def computed(b: Builder, x: Tensor) -> Tensor:
    """Numbers as models of ai.onnx.ml compute with them: f64 stays, all others are f32."""
    return x if x.dtype == np.float64 else b.cast(x, F32)


def rows(b: Builder, x: Tensor) -> Tensor:
    """A vector as a matrix of one row."""
    return x.unsqueeze([0]) if x.rank == 1 else x


# What happens to scores -------------------------------------------------------------------------------------------


def _softmax_zero(b: Builder, x: Tensor) -> Tensor:
    """Softmax over what is not 0; zeros are scaled with the others."""
    top = b.reduce("max", x, [1])
    used = b.elementwise(lambda m, x: m.absolute(x) > 1e-7, x, dtype=np.bool_)
    powers = b.elementwise(lambda m, x, t, u: m.where(u, m.exp(x - t), 0.0), x, top, used)
    total = b.reduce("sum", powers, [1])
    return b.elementwise(lambda m, p, x, t, u, s: m.where(u, p, x * m.exp(-t)) / s, powers, x, top, used, total)


def _probit(m, x):
    """The inverse of the normal distribution, by Winitzki's approximation of the inverse error function."""
    x = x * 2.0 - 1.0
    log = m.log((1.0 - x) * (x + 1.0))
    v = log * 0.5 + 2.0 / (pi * 0.147)
    root = m.sqrt(m.sqrt(v * v - log * (1.0 / 0.147)) - v)
    return m.where(x < 0.0, -root, root) * 2.0**0.5


def logistic(m, x):
    """1 / (1 + exp(-x)), without overflow."""
    v = 1.0 / (m.exp(-m.absolute(x)) + 1.0)
    return m.where(x < 0.0, 1.0 - v, v)


def transformed(b: Builder, node: Node, kind: str, x: Tensor) -> Tensor:
    """Scores [rows, classes] after `post_transform`."""
    if kind == "SOFTMAX":
        return softmax(b, x, [1])
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(b, x)
    if kind in ("LOGISTIC", "PROBIT"):
        return b.elementwise(logistic if kind == "LOGISTIC" else _probit, x)
    if kind != "NONE":
        node.wrong(f"post_transform {kind} is not one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT")
    return x


def first_maximum(b: Builder, scores: Tensor) -> Tensor:
    """The first position of each row's maximum: a vector (int64)."""
    return extremum_places(b, "max", scores, [1]).squeeze([1])


# Features ---------------------------------------------------------------------------------------------------------


@op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(b: Builder, node: Node, x: Tensor, indices: Tensor) -> Tensor:
    """Columns of the last dimension; a vector counts as one row."""
    indices = b.reshape(indices, [indices.size])
    x = rows(b, x)
    return b.gather(x, indices, x.rank - 1)


@op("Binarizer", domain=ML)
def binarizer(b: Builder, node: Node, x: Tensor) -> Tensor:
    """1 above the threshold, else 0."""
    threshold = node.attr("threshold", 0.0)
    above = b.elementwise(lambda m, x: x > threshold, b.cast(x, F32) if x.dtype.kind in "iu" else x, dtype=np.bool_)
    return b.cast(above, x.dtype)


@op("Scaler", domain=ML)
def scaler(b: Builder, node: Node, x: Tensor) -> Tensor:
    """(x - offset) * scale, for each column or all."""
    offset, scale = (Tensor.known(node.attr(name, [d]), F32) for name, d in (("offset", 0.0), ("scale", 1.0)))
    return b.elementwise(lambda m, x, o, s: (x - o) * s, b.cast(x, F32), offset, scale)


@op("Normalizer", domain=ML)
def normalizer(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Each row by its maximum, the sum of its magnitudes or its length; rows of zeros stay."""
    kind, x = node.attr("norm", "MAX"), b.cast(x, F32)
    axis = [x.rank - 1]
    if kind == "MAX":
        norm = b.reduce("max", x, axis)
    elif kind == "L1":
        norm = b.reduce("sum", b.elementwise(lambda m, x: m.absolute(x), x), axis)
    elif kind == "L2":
        norm = b.elementwise(lambda m, s: m.sqrt(s), b.reduce("sum", b.elementwise(lambda m, x: x * x, x), axis))
    else:
        node.wrong(f"norm {kind} is not one of MAX, L1, L2")
    return b.elementwise(lambda m, x, n: x / m.where(m.eq(n, 0.0), 1.0, n), x, norm)


@op("Imputer", domain=ML)
def imputer(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Each column's own value in the place of one that means "missing" (NaN too)."""
    whole = x.dtype.kind in "iu"
    values = node.attr("imputed_value_int64s" if whole else "imputed_value_floats")
    if not values:
        node.wrong("the imputed values of the input's type are missing")
    missing = node.attr("replaced_value_int64" if whole else "replaced_value_float", 0)

    def body(m, x, value):
        return m.where(m.is_nan(x) if missing != missing else m.eq(x, missing), value, x)

    return b.elementwise(body, x, Tensor.known(values, x.dtype))


@op("FeatureVectorizer", domain=ML)
def feature_vectorizer(b: Builder, node: Node, *xs: Tensor) -> Tensor:
    """Columns side by side, each input cut or filled with zeros to its width."""
    widths = node.attr("inputdimensions")
    if not widths or len(widths) != len(xs):
        node.wrong(f"inputdimensions {widths} does not fit {len(xs)} inputs")
    parts = []
    for x, width in zip(xs, widths, strict=True):
        x = b.cast(rows(b, x), F32)
        count = x.shape[1]
        kept = b.slice(x, [0, 0], [x.shape[0], min(count, width)], [1, 1])
        parts.append(b.pad(kept, [0, 0], [0, max(0, width - count)], 0.0))
    return b.concat(parts, 1)


# Encoders ---------------------------------------------------------------------------------------------------------


def _tensor_attr(node: Node, name: str) -> np.ndarray | None:
    value = node.attr(name)
    return None if value is None else onnx.numpy_helper.to_array(value).reshape(-1)


def _entries(node: Node, side: str) -> np.ndarray:
    """The keys or values of a LabelEncoder."""
    refuse_strings(node, f"{side}_strings")
    tensor = _tensor_attr(node, f"{side}_tensor")
    if tensor is not None:
        if tensor.dtype.kind not in "fiu":
            strings(node, [f"{side}_tensor"])
        return tensor
    for ending, dtype in (("int64s", I64), ("floats", F32)):
        if node.attr(f"{side}_{ending}"):
            return np.array(node.attr(f"{side}_{ending}"), dtype)
    node.wrong(f"the {side} are missing")


def _default(node: Node, dtype: np.dtype) -> float:
    tensor = _tensor_attr(node, "default_tensor")
    if tensor is not None:
        return tensor[0].item()
    return node.attr("default_int64", -1) if dtype.kind in "iu" else node.attr("default_float", -0.0)


@op("LabelEncoder", since=2, domain=ML)
def label_encoder(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The value of each key, by a binary search; NaN is a key as others are."""
    keys, values = _entries(node, "keys"), _entries(node, "values")
    if len(keys) != len(values):
        node.wrong(f"{len(keys)} keys, but {len(values)} values")
    default = _default(node, values.dtype)
    pairs = list(zip(keys.tolist(), values.tolist(), strict=True))
    table = {key: value for key, value in pairs if key == key}
    of_nan = next((value for key, value in pairs if key != key), default)
    names = np.array(sorted(table), keys.dtype)
    source = b.array(x)
    if not len(names):
        known, found = b.array(Tensor.known(np.zeros(1, keys.dtype))), b.array(Tensor.known([default], values.dtype))
    else:
        known = b.array(Tensor.known(names))
        found = b.array(Tensor.known([table[k] for k in names.tolist()], values.dtype))

    def element(m, *at: Scalar) -> Scalar:
        value = m.cast(b.at(source, at), keys.dtype)
        place = m.maximum(_rank_of(b, known, value) - 1, 0)
        result = m.where(m.eq(b.at(known, [place]), value), b.at(found, [place]), default)
        return m.where(m.is_nan(value), of_nan, result) if keys.dtype.kind == "f" else result

    return b.produce(x.shape, values.dtype, element)


def _rank_of(b: Builder, ordered: Tensor, value: Scalar) -> Scalar:
    """How many elements of a sorted vector are not above a value."""
    m, count = b.math, ordered.shape[0]
    assert isinstance(count, int)
    place, step = b.idx(0), 1 << (count.bit_length() - 1)
    while step:
        further = place + step
        fits = b.at(ordered, [m.minimum(further, count) - 1]) <= value
        place = m.where(m.logical_and(further <= count, fits), further, place)
        step //= 2
    return place


@op("OneHotEncoder", domain=ML)
def one_hot_encoder(b: Builder, node: Node, x: Tensor) -> Tensor:
    """A column for each category; others are all zeros, or (without `zeros`) an error."""
    refuse_strings(node, "cats_strings")
    cats = Tensor.known(node.attr("cats_int64s", []), I64)
    whole = b.cast(x, I64).unsqueeze([x.rank])
    hot = b.cast(b.elementwise(lambda m, x, c: m.eq(x, c), whole, cats, dtype=np.bool_), F32)
    if not node.attr("zeros", 1) and not hot.is_known:
        worst = b.reduce("min", b.reduce("max", hot, [x.rank]), list(range(x.rank + 1)))
        b.require(b.item(worst) > 0.0, "an element is none of the categories")
    return hot


# Linear models ----------------------------------------------------------------------------------------------------


def feature_count(node: Node, x: Tensor) -> int:
    """The number of columns."""
    count = x.shape[-1]
    if not isinstance(count, int) or count == 0:
        node.unsupported("the number of features is known at run time only; state the input's shape in the model")
    return count


def known_product(b: Builder, x: Tensor, matrix: np.ndarray) -> Tensor:
    """x times a transposed known matrix."""
    table = Tensor.known(np.ascontiguousarray(matrix, np.float32))
    space = Space([x.shape[0], matrix.shape[0], x.shape[1]], frozenset([2]))
    return b.contract(space, (x, [0, 2]), (table, [1, 2]), [0, 1])


def shifted(b: Builder, x: Tensor, by: list[float]) -> Tensor:
    """x plus known values, one for each column or all."""
    return b.elementwise(lambda m, x, r: x + r, x, Tensor.known(by, F32))


def linear(b: Builder, node: Node, x: Tensor, outputs: int) -> Tensor:
    """x times the transposed coefficients, plus intercepts."""
    x = b.cast(rows(b, x), F32)
    weights = np.array(node.attr("coefficients"), np.float32)
    if not isinstance(x.shape[1], int) or weights.size != outputs * x.shape[1]:
        node.wrong(f"{weights.size} coefficients do not make {outputs} rows for {x.shape[1]} features")
    scores = known_product(b, x, weights.reshape(outputs, -1))
    intercepts = node.attr("intercepts")
    if not intercepts:
        return scores
    return shifted(b, scores, intercepts)


@op("LinearRegressor", domain=ML)
def linear_regressor(b: Builder, node: Node, x: Tensor) -> Tensor:
    """One or several targets."""
    return transformed(b, node, node.attr("post_transform", "NONE"), linear(b, node, x, node.attr("targets", 1)))


@op("LinearClassifier", domain=ML)
def linear_classifier(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """The label of the largest score, and the scores; one score and two labels are a score and its negative."""
    refuse_strings(node, "classlabels_strings")
    labels = node.attr("classlabels_ints", [])
    outputs = len(node.attr("coefficients")) // feature_count(node, x)
    kind = node.attr("post_transform", "NONE")
    scores = linear(b, node, x, outputs)
    if scores.shape[1] == 1 and len(labels) == 2:
        scores = b.concat([b.elementwise(lambda m, s: -s, scores), scores], 1)
    scores = transformed(b, node, kind, scores)
    return [labelled(b, scores, labels, 0.0 if kind == "NONE" else 0.5), scores]


def labelled(b: Builder, scores: Tensor, labels: list[int], threshold: float) -> Tensor:
    """The label of each row: of its largest score, or the only one where that reaches a threshold."""
    if scores.shape[1] == 1:
        only = labels[0] if labels else 1
        reached = b.elementwise(lambda m, s: s >= threshold, scores.squeeze([1]), dtype=np.bool_)
        return b.elementwise(lambda m, r: m.where(r, m.scalar(only, I64), 0), reached, dtype=I64)
    best = first_maximum(b, scores)
    return b.gather(Tensor.known(labels, I64), best, 0) if labels else best


__all__ = ["ML", "computed", "labelled", "refuse_strings", "rows", "transformed"]
