# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The task dependence graph of a traced program, as `fractal.graph` says it, in plain Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.core.errors import UnsupportedError
from tilewright.mlir import ir

PASSES = "builtin.module(fractal-extract-graph,fractal-split-regions,fractal-find-wavefronts,fractal-find-merges)"
#: Of each dimension, the largest of the lower bounds and the least of the upper ones, which are exclusive.
Bounds = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True)
class Read:
    """A piece of a value, where it stands in a buffer.

    Attributes:
        source: name of an input, ``constant``, or ``block 0`` (``block 0.1`` is its result 1).
        target: which argument of the body (of the outputs: which result of the function) it is a piece of.
        place: index of each level, in terms of d0, d1, ...: the block's dimensions, then levels that are read whole.
        where: constraints, ``... >= 0`` or ``... == 0``; none where the read always takes place.
        dims: how many dimensions the place and the constraints are in terms of.
        indirect: whether a run chooses the element.
        own: whether it is of what the block itself writes.
    """

    source: str
    target: int
    place: tuple[str, ...]
    where: tuple[str, ...]
    dims: int
    indirect: bool = False
    own: bool = False


@dataclass(frozen=True)
class Order:
    """A sequential dimension, then parallel ones.

    Attributes:
        rows: each new dimension in terms of the block's.
        distances: what iterations wait for, in the new dimensions.
        steps: how many values the first one has, in terms of symbols; None if no one expression says it.
        bounds: of the new dimensions j0, j1, ..., over the whole domain.
        regions: the same for each region.
    """

    rows: tuple[str, ...]
    distances: tuple[tuple[int, ...], ...]
    steps: str | None
    bounds: Bounds
    regions: tuple[Bounds, ...]


@dataclass(frozen=True)
class Region:
    """Iterations that read the same: constraints, and the numbers of the reads."""

    where: tuple[str, ...]
    reads: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """Nested loops around a leaf computation.

    Attributes:
        kinds: of each dimension: ``map``, ``reduce``, ``fold left``, ...
        lengths: of each dimension, in terms of those before and of symbols.
        domain: constraints on the dimensions.
        reads: what its iterations read.
        results: types of the buffers that it writes.
        distances: the reading iteration minus the one that wrote, where that is the same everywhere.
        nonuniform: whether there are other distances besides.
        regions: first iterations and others.
        order: None where no iteration waits for another, or no order is known.
    """

    kinds: tuple[str, ...]
    lengths: tuple[str, ...]
    domain: tuple[str, ...]
    reads: tuple[Read, ...]
    results: tuple[str, ...]
    distances: tuple[tuple[int, ...], ...]
    nonuniform: bool
    regions: tuple[Region, ...]
    order: Order | None


@dataclass(frozen=True)
class Graph:
    """Blocks in an order in which none reads a later one.

    Attributes:
        symbols: what s0, s1, ... stand for.
        blocks: in order.
        outputs: where results of the function are, by their levels d0, d1, ...
        wide: pairs of blocks that may stand beside each other in the same loops.
        deep: a block, one that reads it, and in how many of their outer loops both may run.
        refused: why not, of other pairs.
    """

    symbols: tuple[str, ...]
    blocks: tuple[Block, ...]
    outputs: tuple[Read, ...]
    wide: tuple[tuple[int, ...], ...] = ()
    deep: tuple[tuple[int, ...], ...] = ()
    refused: tuple[str, ...] = ()


def graph_of(module_text: str, function: str = "main") -> Graph:
    """The graph of a function in a module of `fractal` ops.

    Raises:
        UnsupportedError: it has none; the message is the remark of the pass that finds it.
    """
    from tilewright.passes.run import run_pipeline

    with ir.Context():
        module = ir.Module.parse(module_text)
        run = run_pipeline(module, PASSES)
        for op in module.body.operations:
            if op.operation.name == "fractal.graph" and _text(op, "sym_name") == f"{function}_graph":
                return _graph(op)
    said = "; ".join(note.message for note in run.diagnostics if "no graph" in note.message)
    raise UnsupportedError(said or f"{function} holds no operation on lists, of which a graph could be made")


def _graph(op: Any) -> Graph:
    inputs = [ir.StringAttr(name).value for name in op.attributes["inputs"]]
    body = op.regions[0].blocks[0]
    names: dict[Any, str] = dict(zip(body.arguments, inputs, strict=True))
    blocks, outputs = [], ()
    for inner in body.operations:
        if inner.operation.name == "fractal.block":
            several = len(inner.results) > 1
            for k, result in enumerate(inner.results):
                names[result] = f"block {len(blocks)}.{k}" if several else f"block {len(blocks)}"
            blocks.append(_block(inner, names))
        elif inner.operation.name == "fractal.outputs":
            outputs = _reads(inner, names)
        else:
            names |= dict.fromkeys(inner.results, "constant")
    symbols = tuple(ir.StringAttr(name).value for name in op.attributes["symbols"])
    wide, deep = (_vectors(_list(op, name)) for name in ("wide", "deep"))
    refused = tuple(ir.StringAttr(why).value for why in _list(op, "refused"))
    return Graph(symbols, tuple(blocks), outputs, wide, deep, refused)


def _block(op: Any, names: dict[Any, str]) -> Block:
    attributes = op.attributes
    domains, region_reads = (_list(op, name) for name in ("region_domains", "region_reads"))
    return Block(
        kinds=tuple(ir.StringAttr(kind).value for kind in attributes["kinds"]),
        lengths=_results(attributes["extents"]),
        domain=_constraints(attributes["domain"]),
        reads=_reads(op, names),
        results=tuple(str(result.type) for result in op.results),
        distances=_vectors(_list(op, "distances")),
        nonuniform="nonuniform" in attributes,
        regions=tuple(Region(_constraints(d), tuple(r)) for d, r in zip(domains, region_reads, strict=True)),
        order=_order(op) if "schedule" in attributes else None,
    )


def _order(op: Any) -> Order:
    attributes = op.attributes
    lower, upper = (_list(op, name) for name in ("region_lower", "region_upper"))
    return Order(
        rows=_results(attributes["schedule"]),
        distances=_vectors(_list(op, "schedule_distances")),
        steps=_results(attributes["hyperplanes"])[0] if "hyperplanes" in attributes else None,
        bounds=_bounds(attributes["schedule_lower"], attributes["schedule_upper"]),
        regions=tuple(_bounds(*pair) for pair in zip(lower, upper, strict=True)),
    )


def _reads(op: Any, names: dict[Any, str]) -> tuple[Read, ...]:
    lists = [op.attributes[name] for name in ("targets", "maps", "conditions", "indirect")]
    return tuple(
        Read(
            source=names[operand],
            target=target,
            place=_results(place),
            where=() if str(where) == "unit" else _constraints(where),
            dims=ir.AffineMapAttr(place).value.n_dims,
            indirect=indirect,
            own=operand in list(op.results),
        )
        for operand, target, place, where, indirect in zip(op.operands, *lists, strict=True)
    )


def _list(op: Any, name: str) -> Sequence[Any]:
    return list(op.attributes[name]) if name in op.attributes else []


def _text(op: Any, name: str) -> str:
    return ir.StringAttr(op.attributes[name]).value


def _vectors(attributes: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(vector) for vector in attributes)


def _results(attribute: Any) -> tuple[str, ...]:
    return tuple(str(expr) for expr in ir.AffineMapAttr(attribute).value.results)


def _bounds(lower: Any, upper: Any) -> Bounds:
    return tuple((_results(low), _results(up)) for low, up in zip(lower, upper, strict=True))


def _constraints(attribute: Any) -> tuple[str, ...]:
    """Of a set, by its text: the bindings do not give the value of the attribute. Nothing in it has a comma."""
    found = re.fullmatch(r"affine_set<.* : \((.*)\)>", str(attribute))
    assert found, attribute
    return tuple(text for text in found[1].split(", ") if text != "0 == 0")
