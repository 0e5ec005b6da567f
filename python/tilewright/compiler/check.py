# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What can be compiled of a model, before it is: `tw.check` and `tilewright check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import OpenShapesError, UnsupportedError, UserError

if TYPE_CHECKING:
    from tilewright.frontend.onnx.coverage import Row
    from tilewright.targets.base import Target

_WIDEST = 44


@dataclass
class Check:
    """The verdict on a model.

    Attributes:
        model: what it is called.
        target: for which target.
        rows: one for each node; see :class:`tilewright.frontend.onnx.coverage.Row`.
        problems: what is wrong with the model as a whole.
        assumed: symbolic dimensions without a size, which counted as 1.
        remarks: (node, text) for what is compiled, but not into tiles: it runs as scalar loops on one thread.
        pruned: what is decided of each weight with zeros that a sum reads: its pattern, density, cover and times.
    """

    model: str
    target: str
    rows: list[Row]
    problems: list[str]
    assumed: list[str] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    pruned: list[dict[str, Any]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the model can be compiled."""
        return not self.problems and not any(row.reason for row in self.rows)

    def __bool__(self) -> bool:
        """Whether the model can be compiled."""
        return self.complete

    def table(self, *, failing: bool = False) -> str:
        """Node, operator, lowering, and results or the reason why there are none; a line each.

        Args:
            failing: only the nodes that cannot be lowered.
        """
        rows = [row for row in self.rows if row.reason or not failing]
        cells = [(row.name, _operator(row), row.kind or "none", _outcome(row)) for row in rows]
        widths = [min(_WIDEST, max((len(cell[i]) for cell in cells), default=0)) for i in range(3)]
        return "\n".join("  ".join([*map(str.ljust, cell, widths), cell[3]]) for cell in cells)

    def summary(self) -> str:
        """The totals, problems and remarks."""
        kinds = Counter(row.kind or "no lowering" for row in self.rows)
        count = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
        nodes = _counted(len(self.rows), "node")
        lines = [f"{self.model}: {nodes} for target {self.target}{f' ({count})' if count else ''}"]
        if self.assumed:
            lines.append(f"without a size, taken as 1: {', '.join(self.assumed)}")
        missing = Counter(_operator(row) for row in self.rows if row.reason)
        if missing:
            lines.append("without a lowering: " + ", ".join(f"{op} ({n})" for op, n in missing.most_common()))
        lines += [f"problem: {text}" for text in self.problems]
        if self.remarks:
            loops = any("scalar loops" in text for _, text in self.remarks)
            meaning = " (scalar loops run on one thread, element by element)" if loops else ""
            lines.append(f"{_counted(len(self.remarks), 'remark')}{meaning}:")
            lines += [f"  {where}: {text}" if where else f"  {text}" for where, text in self.remarks]
        if self.pruned:
            used = sum(bool(entry["cover"]) for entry in self.pruned)
            lines.append(
                f"{_counted(len(self.pruned), 'weight')} with zeros, {used} of them used (times are predicted):"
            )
            lines += [f"  {_pruned(entry)}" for entry in self.pruned]
        lines.append("it can be compiled" if self.complete else "it cannot be compiled")
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the whole report."""
        table = self.table()
        return f"{table}\n\n{self.summary()}" if table else self.summary()


def check(
    model: Any, target: str = "cpu", *, shapes: Mapping[str, Any] | None = None, example_inputs: Any = None
) -> Check:
    """Say what of a model can be compiled, without generating code.

    Args:
        model: path of an ONNX file, its bytes, an onnx.ModelProto, or a torch.nn.Module.
        target: as for :func:`tilewright.compile`.
        shapes: sizes of symbolic dimensions; those that are left open count as 1.
        example_inputs: for a torch module.

    Raises:
        UserError: no such model or target, or not an ONNX model.
    """
    from tilewright.compiler.source import open_source
    from tilewright.frontend.onnx.coverage import collect
    from tilewright.targets.registry import checked

    machine = checked(target)
    source = open_source(model, example_inputs=example_inputs)
    if source.kind != "onnx":
        raise UserError("check is for ONNX models and torch modules: an MLIR module has no nodes to look up")
    value = str(source.value) if isinstance(source.value, Path) else source.value
    sizes = _with_ones(value, shapes)
    coverage = collect(value, sizes)
    assumed = sorted(set(sizes or {}) - set(shapes or {}))
    verdict = Check(source.name, machine.name, coverage.rows, coverage.problems, assumed)
    if verdict.complete and machine.compiles:
        verdict.remarks, verdict.pruned = _planned(source, machine.here(), sizes)
    return verdict


def _with_ones(value: Any, shapes: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The given sizes, and 1 for each symbolic dimension that they leave open."""
    from tilewright.frontend.onnx.load import load_model
    from tilewright.frontend.onnx.signature import graph_inputs
    from tilewright.frontend.onnx.text import lowered, of_code

    try:
        model, boundary = lowered(load_model(value)[0], shapes)
        graph_inputs(model, of_code(shapes, boundary))
    except UnsupportedError:  # said with the rest
        pass
    except OpenShapesError as error:
        names = {d for _, _, dims in error.inputs for d in dims or () if isinstance(d, str)} - set(shapes or {})
        if names:
            return _with_ones(value, {**(shapes or {}), **dict.fromkeys(names, 1)})
        raise
    return dict(shapes) if shapes else None


def _planned(
    source: Any, target: Target, sizes: dict[str, Any] | None
) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    """What the deciding passes say of the model, and what they decide of weights with zeros."""
    from tilewright.compiler.driver import Compilation, lower
    from tilewright.core.options import CompileOptions, shape_items

    work = Compilation(source, target, CompileOptions(shapes=shape_items(sizes), stop_after="plan"))
    lower(work)
    remarks = [(remark["location"].strip('"'), remark["message"]) for remark in work.remarks]
    return remarks, work.statistics.get("sparsity", [])


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _pruned(entry: Mapping[str, Any]) -> str:
    """One weight with zeros: its pattern, density, what is gained, or what keeps it dense."""
    from tilewright.report.sparsity import gain

    size = "x".join(str(n) for n in entry["shape"])
    about = f"{entry['location'] or 'unnamed'}: {size}, {entry['pattern']}, density {entry['density']:.1%}"
    if not entry["cover"]:
        return f"{about}: dense, {entry['reason']}"
    faster = f", {gain(entry)} as fast as dense" if gain(entry) else ""
    return f"{about}: {' + '.join(entry['cover'])} by {', '.join(entry['kernels']) or 'the first that can'}{faster}"


def _operator(row: Row) -> str:
    return f"{row.domain}.{row.op}" if row.domain else row.op


def _outcome(row: Row) -> str:
    return row.reason or ", ".join("?" if result is None else _shown(*result) for result in row.results)


def _shown(dtype: str, shape: tuple[int | None, ...]) -> str:
    return "x".join([*("?" if n is None else str(n) for n in shape), dtype])
