# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tw.sparsify` reports: density of each layer, and how far the outputs moved."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

_SHOWN = 4  # names of a line


@dataclass(frozen=True)
class LayerChange:
    """A weight that was pruned.

    Attributes:
        name: of the node that reads it.
        operator: of that node.
        weight: name of the initializer.
        shape: of the weight.
        density_before: part of its elements that were not zero.
        density: part of its elements that are not zero now.
        score: part of the sum of all scores that stayed.
    """

    name: str
    operator: str
    weight: str
    shape: tuple[int, ...]
    density_before: float
    density: float
    score: float


@dataclass(frozen=True)
class OutputChange:
    """An output of the pruned model against the model before, over all samples.

    Attributes:
        name: of the output.
        max: largest difference, in parts of the largest absolute value; 1 where any integer differs.
        mean: mean difference, in parts of the mean absolute value; of integers the part that differs.
    """

    name: str
    max: float
    mean: float


@dataclass
class SparsifyReport:
    """What was done to a model.

    Attributes:
        pattern: as it was asked for.
        scores: by what weights were ranked.
        layers: the weights that were pruned, in the order of the graph.
        left: weights that were not, with the reason.
        outputs: how far they moved; empty where that was not measured.
        data: what they were measured on: `calibration` or `random`.
        samples: how many of them.
    """

    pattern: str
    scores: str
    layers: list[LayerChange] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    outputs: list[OutputChange] = field(default_factory=list)
    data: str = ""
    samples: int = 0

    @property
    def density(self) -> float:
        """Part of the elements of all pruned weights that are not zero."""
        sizes = [prod(layer.shape) for layer in self.layers]
        kept = sum(size * layer.density for size, layer in zip(sizes, self.layers, strict=True))
        return kept / sum(sizes) if sum(sizes) else 0.0

    def __str__(self) -> str:
        """A table: layers, what stayed as it was and why, outputs."""
        head = f"{self.pattern} by {self.scores}: {len(self.layers)} of {len(self.layers) + len(self.left)} weights, "
        lines = [head + f"{self.density:.1%} of their elements stay"]
        rows = [("layer", "operator", "weight", "shape", "density", "score kept")]
        rows += [_row(layer) for layer in self.layers]
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        for reason in dict.fromkeys(self.left.values()):
            names = [name for name, why in self.left.items() if why == reason]
            more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"not pruned, {reason}: {', '.join(names[:_SHOWN])}{more}")
        what = f"{self.samples} sample{'' if self.samples == 1 else 's'} of {self.data} data"
        lines += [
            f"output {change.name}: relative change mean {change.mean:.3g}, max {change.max:.3g} ({what})"
            for change in self.outputs
        ]
        return "\n".join(lines)


def _row(layer: LayerChange) -> tuple[str, ...]:
    before = "" if layer.density_before == 1 else f" (of {layer.density_before:.1%})"
    shape = "x".join(map(str, layer.shape))
    return layer.name, layer.operator, layer.weight, shape, f"{layer.density:.1%}{before}", f"{layer.score:.1%}"
