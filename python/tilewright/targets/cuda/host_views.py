# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on memrefs as operations on the views of a host program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.dtypes import name_of_mlir
from tilewright.core.errors import UnsupportedError
from tilewright.ir.diagnostics import located
from tilewright.mlir import ir
from tilewright.reference import types

if TYPE_CHECKING:
    from tilewright.targets.cuda.host_program import Exporter

Op = dict[str, Any]
#: What stands for a number that is known at run time only in lists of numbers.
DYNAMIC = ir.ShapedType.get_dynamic_stride_or_offset()


def buffer_type(kind: ir.Type) -> Op:
    """Return element type and shape of a memref, with -1 for sizes of the run."""
    memref = ir.MemRefType(kind)
    shape = [-1 if memref.is_dynamic_dim(d) else memref.get_dim_size(d) for d in range(memref.rank)]
    return {"dtype": element_name(memref.element_type), "shape": shape}


def element_name(kind: ir.Type) -> str:
    """Return the name of an element type, as in manifests; `index` is one of its own."""
    text = str(kind)
    return text if text == "index" else name_of_mlir(text)


def _alloc(exporter: Exporter, op: ir.Operation) -> list[Op]:
    kind = buffer_type(op.results[0].type)
    sizes = exporter.all(op.operands)[: sum(size < 0 for size in kind["shape"])]
    return [{"op": "alloc", "type": kind, "sizes": sizes, "result": exporter.define(op.results[0])}]


def _view(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source, shift, *sizes = exporter.all(op.operands)
    kind = buffer_type(op.results[0].type)
    result = exporter.define(op.results[0])
    return [{"op": "view", "source": source, "shift": shift, "type": kind, "sizes": sizes, "result": result}]


def _groups(op: ir.Operation) -> list[list[ir.Value]]:
    """The operands of an operation in their segments."""
    values, groups, start = list(op.operands), [], 0
    for size in op.attributes["operandSegmentSizes"]:
        groups.append(values[start : start + size])
        start += size
    return groups


def _subview(exporter: Exporter, op: ir.Operation) -> list[Op]:
    (source,), offsets, sizes, strides = _groups(op)
    kept = _kept(op)
    return [
        {
            "op": "subview",
            "source": exporter.register(source),
            "offsets": exporter.mixed(op, "static_offsets", offsets),
            "sizes": exporter.mixed(op, "static_sizes", sizes),
            "strides": exporter.mixed(op, "static_strides", strides),
            "keep": kept,
            "result": exporter.define(op.results[0]),
        }
    ]


def _kept(op: ir.Operation) -> list[int]:
    """The dimensions that a slice keeps; those that it drops have one element."""
    sizes = [-1 if n == DYNAMIC else n for n in ir.DenseI64ArrayAttr(op.attributes["static_sizes"])]
    wanted = buffer_type(op.results[0].type)["shape"]
    if len(wanted) == len(sizes):
        return list(range(len(sizes)))
    kept: list[int] = []
    for axis, size in enumerate(sizes):  # as MLIR infers it: sizes are matched from the left
        position = len(kept)
        if position < len(wanted) and size == wanted[position]:
            kept.append(axis)
        elif size != 1:
            raise located(UnsupportedError(f"the dropped dimensions of '{op}' cannot be told"), op)
    return kept


def _reinterpret(exporter: Exporter, op: ir.Operation) -> list[Op]:
    (source,), offsets, sizes, strides = _groups(op)
    return [
        {
            "op": "reinterpret",
            "source": exporter.register(source),
            "offset": exporter.mixed(op, "static_offsets", offsets)[0],
            "sizes": exporter.mixed(op, "static_sizes", sizes),
            "strides": exporter.mixed(op, "static_strides", strides),
            "result": exporter.define(op.results[0]),
        }
    ]


def _reassociation(op: ir.Operation) -> list[list[int]]:
    groups = ir.ArrayAttr(op.attributes["reassociation"])
    return [[ir.IntegerAttr(d).value for d in ir.ArrayAttr(group)] for group in groups]


def _collapse(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source = exporter.register(op.operands[0])
    result = exporter.define(op.results[0])
    return [{"op": "collapse", "source": source, "groups": _reassociation(op), "result": result}]


def _expand(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source, *dynamic = list(op.operands)
    return [
        {
            "op": "expand",
            "source": exporter.register(source),
            "groups": _reassociation(op),
            "sizes": exporter.mixed(op, "static_output_shape", dynamic),
            "result": exporter.define(op.results[0]),
        }
    ]


def _transpose(exporter: Exporter, op: ir.Operation) -> list[Op]:
    results = ir.AffineMapAttr(op.attributes["permutation"]).value.results
    order = [ir.AffineDimExpr(e).position for e in results]
    source = exporter.register(op.operands[0])
    return [{"op": "permute", "source": source, "order": order, "result": exporter.define(op.results[0])}]


def _reshape(exporter: Exporter, op: ir.Operation) -> list[Op]:
    """The shape lies in memory: its numbers are loaded first."""
    source, shape = exporter.all(op.operands)
    made: list[Op] = []
    sizes = []
    for axis in range(ir.MemRefType(op.results[0].type).rank):
        sizes.append(exporter.new())
        made.append({"op": "load", "source": shape, "indices": [exporter.constant(axis)], "result": sizes[-1]})
    return [*made, {"op": "reshape", "source": source, "sizes": sizes, "result": exporter.define(op.results[0])}]


def _dim(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source, axis = exporter.all(op.operands)
    return [{"op": "dim", "source": source, "axis": axis, "result": exporter.define(op.results[0])}]


def _address(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source = exporter.register(op.operands[0])
    return [{"op": "address", "source": source, "result": exporter.define(op.results[0])}]


def _metadata(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source = exporter.register(op.operands[0])
    return [{"op": "metadata", "source": source, "results": [exporter.define(r) for r in op.results]}]


def _load(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source, *indices = exporter.all(op.operands)
    return [{"op": "load", "source": source, "indices": indices, "result": exporter.define(op.results[0])}]


def _store(exporter: Exporter, op: ir.Operation) -> list[Op]:
    value, target, *indices = exporter.all(op.operands)
    return [{"op": "store", "value": value, "target": target, "indices": indices}]


def _copy(exporter: Exporter, op: ir.Operation) -> list[Op]:
    source, target = exporter.all(op.operands)
    return [{"op": "copy", "source": source, "target": target}]


def _global(exporter: Exporter, op: ir.Operation) -> list[Op]:
    """A tensor of the host function: an argument like a weight."""
    symbol = ir.FlatSymbolRefAttr(op.attributes["name"]).value
    name = f"constant.{symbol}"
    register = exporter.new()
    if name in exporter.tensors:
        register = next(a["register"] for a in exporter.arguments if a.get("name") == name)
    else:
        kind = buffer_type(op.results[0].type)
        exporter.tensors[name] = _tensor(exporter.module, symbol, kind)
        exporter.arguments.append({"kind": "weight", "name": name, "register": register, "type": kind})
    exporter.registers[op.results[0]] = register
    return []


def _tensor(module: ir.Module, symbol: str, kind: Op) -> np.ndarray:
    found = next(
        op.operation
        for op in module.body.operations
        if op.operation.name == "memref.global" and op.operation.attributes["sym_name"].value == symbol
    )
    array = np.asarray(types.constant(found.attributes["initial_value"]))
    return np.ascontiguousarray(np.broadcast_to(array, kind["shape"]))


MAKERS: Mapping[str, Callable[[Exporter, ir.Operation], list[Op]]] = {
    "memref.alloc": _alloc,
    "memref.view": _view,
    "memref.subview": _subview,
    "memref.reinterpret_cast": _reinterpret,
    "memref.collapse_shape": _collapse,
    "memref.expand_shape": _expand,
    "memref.transpose": _transpose,
    "memref.reshape": _reshape,
    "memref.dim": _dim,
    "memref.extract_aligned_pointer_as_index": _address,
    "memref.extract_strided_metadata": _metadata,
    "memref.load": _load,
    "memref.store": _store,
    "memref.copy": _copy,
    "memref.get_global": _global,
}
