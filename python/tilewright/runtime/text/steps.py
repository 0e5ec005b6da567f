# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on strings and maps, in Python: arrays of strings are arrays of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.runtime.text.patterns import compiled

Function = Callable[..., Any]  # (attributes, *values) -> a value, or a tuple of them

STEPS: dict[str, Function] = {}


def step(*names: str) -> Callable[[Function], Function]:
    """Register a function for ONNX operators; it takes their attributes and values, absent ones are None."""

    def register(function: Function) -> Function:
        STEPS.update(dict.fromkeys(names, function))
        return function

    return register


def text_array(values: Sequence[str], shape: Sequence[int]) -> np.ndarray:
    """An array of strings."""
    result = np.empty(len(values), object)
    result[:] = values
    return result.reshape(shape)


def each(function: Callable[[str], Any], text: np.ndarray) -> list[Any]:
    """A function of each string, in order."""
    return [function(word) for word in text.reshape(-1).tolist()]


# Moves ------------------------------------------------------------------------------------------------------------


@step("Identity")
def _identity(_: Mapping, x: np.ndarray) -> np.ndarray:
    return x


@step("Reshape")
def _reshape(given: Mapping, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    sizes = [int(n) for n in np.asarray(shape).reshape(-1)]
    if not given.get("allowzero"):
        sizes = [x.shape[d] if n == 0 else n for d, n in enumerate(sizes)]
    return x.reshape(sizes)


@step("Flatten")
def _flatten(given: Mapping, x: np.ndarray) -> np.ndarray:
    axis = given.get("axis", 1)
    outer = int(np.prod(x.shape[:axis], dtype=np.int64))
    return x.reshape(outer, -1 if x.size else int(np.prod(x.shape[axis:], dtype=np.int64)))


@step("Squeeze")
def _squeeze(given: Mapping, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    chosen = given.get("axes") if axes is None else axes
    return x.squeeze(None if chosen is None else tuple(int(a) for a in np.asarray(chosen).reshape(-1)))


@step("Unsqueeze")
def _unsqueeze(given: Mapping, x: np.ndarray, axes: np.ndarray | None = None) -> np.ndarray:
    chosen = given.get("axes") if axes is None else axes
    return np.expand_dims(x, tuple(int(a) for a in np.asarray(chosen).reshape(-1)))


@step("Transpose")
def _transpose(given: Mapping, x: np.ndarray) -> np.ndarray:
    return x.transpose(given.get("perm"))


@step("Concat")
def _concat(given: Mapping, *xs: np.ndarray) -> np.ndarray:
    return np.concatenate(xs, given["axis"])


@step("Tile")
def _tile(_: Mapping, x: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    return np.tile(x, [int(n) for n in np.asarray(repeats).reshape(-1)])


@step("Expand")
def _expand(_: Mapping, x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in np.asarray(shape).reshape(-1))))


@step("Gather")
def _gather(given: Mapping, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.take(x, indices, given.get("axis", 0))


@step("ArrayFeatureExtractor")
def _extract(_: Mapping, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return (x.reshape(1, -1) if x.ndim == 1 else x)[..., np.asarray(indices).reshape(-1)]


# Strings ----------------------------------------------------------------------------------------------------------


def _written(value: Any) -> str:
    """A number as ONNX Runtime writes it."""
    if isinstance(value, bool | int):
        return str(int(value))
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    return f"{value:.8g}"


def _read(kind: np.dtype) -> Callable[[str], Any]:
    """How a string becomes a number."""

    def read(word: str) -> Any:
        try:
            if "_" in word:  # which Python reads over
                raise ValueError
            return int(word) if kind.kind in "iu" else float(word)
        except ValueError:
            raise UserError(f"the model reads a number from {word!r}, which is none") from None

    return read


@step("Cast")
def _cast(given: Mapping, x: np.ndarray) -> np.ndarray:
    """`kind`: the name of a NumPy type; empty for strings."""
    if not given["kind"]:
        return x if x.dtype == object else text_array([_written(v) for v in x.reshape(-1).tolist()], x.shape)
    kind = np.dtype(given["kind"])
    if x.dtype != object:
        return x.astype(kind)
    return np.array(each(_read(kind), x), kind).reshape(x.shape)


@step("StringConcat")
def _string_concat(_: Mapping, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = np.broadcast_arrays(x, y)
    pairs = zip(x.reshape(-1).tolist(), y.reshape(-1).tolist(), strict=True)
    return text_array([a + b for a, b in pairs], x.shape)


@step("RegexFullMatch")
def _regex_full_match(given: Mapping, x: np.ndarray) -> np.ndarray:
    pattern = compiled(given["pattern"])
    return np.array(each(lambda word: pattern.fullmatch(word) is not None, x), bool).reshape(x.shape)


@step("StringNormalizer")
def _string_normalizer(given: Mapping, x: np.ndarray) -> np.ndarray:
    """Strings in one case without those that are to be left out; at least one, empty, stays."""
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(given.get("case_change_action", "NONE"), lambda word: word)
    sensitive, stop = given.get("is_case_sensitive", 0), given.get("stopwords", [])
    seen = (lambda word: word) if sensitive else str.lower
    dropped = {seen(word) for word in stop}
    kept = [change(word) for word in x.reshape(-1).tolist() if seen(word) not in dropped] or [""]
    return text_array(kept, (*x.shape[:-1], len(kept)))


def _padded(rows: Sequence[Sequence[str]], shape: Sequence[int], fill: str) -> np.ndarray:
    """Rows of strings, the shorter ones filled up, with `shape` in front."""
    width = max((len(row) for row in rows), default=0)
    whole = [word for row in rows for word in (*row, *[fill] * (width - len(row)))]
    return text_array(whole, (*shape, width))


@step("StringSplit")
def _string_split(given: Mapping, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each string cut at a delimiter (without one at white space), and how many pieces there are."""
    delimiter, most = given.get("delimiter") or None, given.get("maxsplit")
    most = -1 if most is None else most
    rows = each(lambda word: word.split(delimiter, most) if word else [], x)
    counts = np.array([len(row) for row in rows], np.int64).reshape(x.shape)
    return _padded(rows, x.shape, ""), counts


@step("Tokenizer")
def _tokenizer(given: Mapping, x: np.ndarray) -> np.ndarray:
    """The tokens of each string, by what they look like (`tokenexp`) or what stands between (`separators`)."""
    least, mark = given.get("mincharnum", 1), given.get("mark", 0)
    find = _tokens(given)
    stop = set(given.get("stopwords", []))
    rows = [[t for t in find(word) if len(t) >= least and t not in stop] for word in x.reshape(-1).tolist()]
    rows = [["\x02", *row, "\x03"] for row in rows] if mark else rows
    return _padded(rows, x.shape, given.get("pad_value", ""))


def _tokens(given: Mapping) -> Callable[[str], list[str]]:
    if given.get("tokenexp"):
        pattern = compiled(given["tokenexp"])
        return lambda word: [found.group(0) for found in pattern.finditer(word)]
    separators = given.get("separators") or [""]
    if separators == [""]:
        return list

    def split(word: str) -> list[str]:
        pieces = [word]
        for separator in separators:  # the second one cuts what the first one left
            pieces = [part for piece in pieces for part in _between(separator, piece)]
        return pieces

    return split


def _between(separator: str, word: str) -> Iterator[str]:
    """What stands between the matches of a separator, whatever groups it has."""
    at = 0
    for found in compiled(separator).finditer(word):
        yield word[at : found.start()]
        at = found.end()
    yield word[at:]


def patterns_of(op: str, given: Mapping[str, Any]) -> list[str]:
    """The regular expressions of a step, checked.

    Raises:
        UnsupportedError: one has another meaning here, or separates words by nothing.
    """
    names = [given["pattern"]] if op == "RegexFullMatch" else [given.get("tokenexp") or ""] if op == "Tokenizer" else []
    names = [name for name in names if name]
    if op == "Tokenizer" and not names and (separators := given.get("separators") or [""]) != [""]:
        empty = next((s for s in separators if compiled(s).fullmatch("")), None)
        if empty is not None:
            raise UnsupportedError(f'the separator {empty!r} matches nothing at all; "" alone gives all characters')
        names = list(separators)
    for name in names:
        compiled(name)
    return names


# Maps -------------------------------------------------------------------------------------------------------------


@step("ZipMap")
def _zip_map(given: Mapping, x: np.ndarray) -> list[dict]:
    """A dict for each row, from labels to numbers."""
    labels = given["labels"]
    rows = np.asarray(x).reshape(-1, len(labels)).tolist()
    return [dict(zip(labels, row, strict=True)) for row in rows]


@step("DictVectorizer")
def _dict_vectorizer(given: Mapping, row: Mapping) -> np.ndarray:
    """A row with a column for each key of the vocabulary; 0 (for strings: nothing) where it is missing."""
    keys, kind = given["keys"], given["kind"]
    if not kind:
        return text_array([row.get(key, "") for key in keys], (1, len(keys)))
    return np.array([[row.get(key, 0) for key in keys]], kind)


@step("CastMap")
def _cast_map(given: Mapping, row: Mapping) -> np.ndarray:
    """The values of a dict by key: side by side, or each at the place that is its key."""
    kind = given["kind"]
    if given.get("map_form", "DENSE") == "SPARSE":
        empty = np.zeros((1, given["max_map"]), kind or object)
        empty = empty if kind else text_array([""] * given["max_map"], (1, -1))
        for key, entry in row.items():
            if not 0 <= key < empty.shape[1]:
                raise UserError(f"CastMap: the key {key} lies outside of max_map={empty.shape[1]}")
            empty[0, key] = _cast({"kind": kind}, np.array([entry], object if isinstance(entry, str) else None))[0]
        return empty
    values = [row[key] for key in sorted(row)]
    array = text_array(values, (1, -1)) if any(isinstance(v, str) for v in values) else np.array([values])
    return _cast({"kind": kind}, array)
