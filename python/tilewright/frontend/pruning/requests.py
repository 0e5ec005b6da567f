# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Patterns of pruning as text, and which weights they keep.

Weights are looked at as products [positions, inputs, outputs]: inputs are what a product sums over, positions those of
a convolution's window (one for a matrix product). A score says how much a weight matters; scores are not negative.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.patterns import NM, Block, Mask, Pattern

GRAMMAR = """\
  N:M               N of M neighbouring inputs stay, for each output by itself ("2:4", "8:32")
  N:M/V             V neighbouring outputs keep the same N of M inputs ("3:32/32")
  N:M/BxV           N of M units of B neighbouring inputs and V neighbouring outputs stay ("2:4/4x4")
  block:BxV@S       the part S of the blocks of B inputs and V outputs goes ("block:32x32@0.9")
  unstructured@S    the part S of the weights goes, wherever they are ("unstructured@0.95")
  channels@S        the part S of the inputs goes, for all outputs ("channels@0.6")
  heads:H@S         the part S of H groups of neighbouring inputs goes ("heads:12@0.7")"""

_LARGEST = 1 << 15  # units of a window: positions in one have 16 bits
_NUMBER = r"(\d+)"
_SHARE = r"@([0-9.]+(?:e-?\d+)?%?)"
_WINDOWS = re.compile(rf"{_NUMBER}:{_NUMBER}(?:/(?:{_NUMBER}x)?{_NUMBER})?")
_FORMS = {
    "unstructured": re.compile(rf"unstructured{_SHARE}"),
    "block": re.compile(rf"block:{_NUMBER}x{_NUMBER}{_SHARE}"),
    "channels": re.compile(rf"channels{_SHARE}"),
    "heads": re.compile(rf"heads:{_NUMBER}{_SHARE}"),
}


@dataclass(frozen=True)
class Pruning(ABC):
    """What to prune.

    Attributes:
        text: as the user wrote it.
    """

    text: str

    @abstractmethod
    def keep(self, scores: np.ndarray, by_output: bool = False) -> np.ndarray:
        """Choose the weights that stay.

        Args:
            scores: [positions, inputs, outputs], not negative.
            by_output: compare weights within an output, where the pattern leaves that open (Wanda, section 3).

        Returns:
            bool, of the same shape.

        Raises:
            UserError: the shape does not fit the pattern.
        """

    @property
    @abstractmethod
    def pattern(self) -> Pattern:
        """How `sparse_tile` describes a matrix [inputs, outputs] that was pruned so."""


@dataclass(frozen=True)
class Windows(Pruning):
    """`n` of `m` units along the inputs stay; a unit has `depth` inputs and `width` outputs (nmSPARSE, section 3)."""

    n: int
    m: int
    depth: int = 1
    width: int = 1

    @property
    def pattern(self) -> Pattern:
        """N:M along axis 0."""
        unit = () if self.depth == self.width == 1 else (self.depth, self.width)
        return NM(self.n, self.m, 0, unit)

    def keep(self, scores: np.ndarray, by_output: bool = False) -> np.ndarray:
        """The units of the largest scores of each window; of equal ones the first. The last window may be short."""
        units = _by_units(scores, self.depth, self.width)
        positions, rows, columns = units.shape
        windows = -(-rows // self.m)
        padding = ((0, 0), (0, windows * self.m - rows), (0, 0))
        cut = np.pad(units, padding, constant_values=-1).reshape(positions, windows, self.m, columns)
        best = np.argsort(-cut, axis=2, kind="stable")[:, :, : self.n]
        kept = np.zeros(cut.shape, bool)
        np.put_along_axis(kept, best, True, axis=2)
        kept = kept.reshape(positions, windows * self.m, columns)[:, :rows]
        return _by_elements(kept, scores.shape, self.depth, self.width)


@dataclass(frozen=True)
class Share(Pruning):
    """A part of all units goes: those of the smallest scores.

    Attributes:
        kind: unstructured, block, channels or heads.
        sparsity: the part of the units that goes, at least 0 and below 1, rounded to whole units.
        depth: inputs of a unit of blocks.
        width: outputs of a unit of blocks.
        heads: groups of the inputs.
    """

    kind: str
    sparsity: float
    depth: int = 1
    width: int = 1
    heads: int = 0

    @property
    def pattern(self) -> Pattern:
        """Blocks, or any places."""
        return Block((self.depth, self.width)) if self.kind == "block" else Mask()

    def keep(self, scores: np.ndarray, by_output: bool = False) -> np.ndarray:
        """All but the units of the smallest scores; of equal ones the first go."""
        positions, inputs, outputs = scores.shape
        if self.kind in ("channels", "heads"):
            groups = self.heads or inputs
            if inputs % groups:
                raise UserError(f"{self.text}: {inputs} inputs cannot be cut into {groups} groups of the same size")
            sums = scores.sum(axis=(0, 2)).reshape(groups, inputs // groups if groups else 0).sum(axis=1)
            kept = np.repeat(self._largest(sums[:, None])[:, 0], inputs // groups if groups else 0)
            return np.broadcast_to(kept[None, :, None], scores.shape)
        units = _by_units(scores, self.depth, self.width)
        alone = by_output and self.kind == "unstructured"
        kept = self._largest(units.reshape(positions * inputs, outputs) if alone else units.reshape(-1, 1))
        return _by_elements(kept.reshape(units.shape), scores.shape, self.depth, self.width)

    def _largest(self, scores: np.ndarray) -> np.ndarray:
        """Which of the rows of each column stay."""
        gone = np.argsort(scores, axis=0, kind="stable")[: round(self.sparsity * scores.shape[0])]
        kept = np.ones(scores.shape, bool)
        np.put_along_axis(kept, gone, False, axis=0)
        return kept


def parse(text: str) -> Pruning:
    """Read a pattern.

    Raises:
        UserError: it is none; says what is wrong and which patterns there are.
    """
    if not isinstance(text, str):
        raise _wrong(text, f"a text is needed, not {type(text).__name__}")
    plain = text.strip().lower()
    found = _WINDOWS.fullmatch(plain)
    if found:
        n, m, depth, width = (int(part or 1) for part in found.groups())
        return _windows(text, n, m, depth, width)
    for kind, form in _FORMS.items():
        found = form.fullmatch(plain)
        if found:
            *numbers, share = found.groups()
            return _share(text, kind, [int(number) for number in numbers], share)
    raise _wrong(text, "no pattern has this form")


def _windows(text: str, n: int, m: int, depth: int, width: int) -> Windows:
    if not 1 <= n <= m:
        raise _wrong(text, f"{n} of {m} cannot stay: N is at least 1 and at most M")
    if m > _LARGEST:
        raise _wrong(text, f"a window has at most {_LARGEST} units, not {m}")
    _check_unit(text, depth, width)
    return Windows(text, n, m, depth, width)


def _share(text: str, kind: str, numbers: list[int], share: str) -> Share:
    try:
        sparsity = float(share.rstrip("%")) / (100 if share.endswith("%") else 1)
    except ValueError:
        raise _wrong(text, f"{share!r} is no number") from None
    if not 0 <= sparsity < 1:
        raise _wrong(text, f"the part that goes is at least 0 and below 1, not {share}")
    if kind == "block":
        _check_unit(text, *numbers)
        return Share(text, kind, sparsity, *numbers)
    if kind == "heads":
        _check_unit(text, *numbers)
        return Share(text, kind, sparsity, heads=numbers[0])
    return Share(text, kind, sparsity)


def _check_unit(text: str, *sizes: int) -> None:
    if not all(1 <= size < 1 << 31 for size in sizes):
        raise _wrong(text, f"{' x '.join(map(str, sizes))}: sizes are at least 1 and below 2^31")


def _wrong(text: object, why: str) -> UserError:
    return UserError(f"pattern {text!r}: {why}. Patterns are\n{GRAMMAR}")


def _by_units(scores: np.ndarray, depth: int, width: int) -> np.ndarray:
    """Sums over units of `depth` inputs and `width` outputs; those at the border may be smaller."""
    if depth == width == 1 or not scores.size:
        return scores[:, : -(-scores.shape[1] // depth), : -(-scores.shape[2] // width)]
    rows = np.add.reduceat(scores, np.arange(0, scores.shape[1], depth), axis=1)
    return np.add.reduceat(rows, np.arange(0, scores.shape[2], width), axis=2)


def _by_elements(kept: np.ndarray, shape: tuple[int, ...], depth: int, width: int) -> np.ndarray:
    """What :func:`_by_units` joined, apart again."""
    if depth == width == 1:
        return kept
    return np.repeat(np.repeat(kept, depth, axis=1), width, axis=2)[:, : shape[1], : shape[2]]
