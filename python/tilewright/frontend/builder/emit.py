# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Emission of single ops, constants, weights and `linalg.generic`: the lowest layer of the builder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.frontend.builder.dims import Size, marked, values
from tilewright.frontend.builder.dtypes import element_type, is_complex, is_float, storage
from tilewright.frontend.builder.limits import check_tensor, check_word
from tilewright.frontend.builder.scalars import IRMath, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.mlir import ir
from tilewright.passes.weights import INLINE_BYTES


@dataclass(frozen=True)
class At:
    """An index expression: a sum of loops times coefficients, plus an offset."""

    terms: tuple[tuple[int, int], ...]
    offset: int = 0


Index = int | None | At  # a loop, the constant 0, or an expression


@dataclass
class Space:
    """The loops of one generic op: extents, and which of them reduce."""

    sizes: Sequence[Size]
    reduced: frozenset[int] = frozenset()
    number: dict[int, int] = field(default_factory=dict)

    def arrange(self, order: Sequence[int]) -> list[int]:
        """Number the loops larger than 1: the parallel ones as in `order`, then the reductions. Returns them."""
        kept = [d for d in order if self.sizes[d] != 1]
        reduced = [d for d in range(len(self.sizes)) if d in self.reduced and self.sizes[d] != 1]
        self.number = {d: i for i, d in enumerate([*kept, *reduced])}
        return kept


class Emitter:
    """Creates ops at the current insertion point of one module.

    Attributes:
        weights: the bytes of the module's globals, by name.
        discarded: ops that were built in vain, see iteration.attempt.
        remarks: what a user should know of slow code, by the node's name.
        many_threads: whether the machine has thousands: what runs in parallel is then worth more work.
    """

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.weights: dict[str, np.ndarray] = {}
        self.math = IRMath(self.op, self.element_type)
        self.entry: ir.Block | None = None  # constants and weights go to its start
        self._kept: dict[int, tuple[np.ndarray, ir.Value]] = {}
        self._iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{k}>") for k in ("parallel", "reduction")]
        self._dims: list[ir.AffineExpr] = []
        self._zero = ir.AffineExpr.get_constant(0)
        self._types: dict[np.dtype, ir.Type] = {}
        self.discarded: list[ir.Operation] = []
        self.remarks: dict[str, str] = {}
        self.many_threads = False
        self._checks: list[tuple[ir.Location, Callable[[], None]]] = []
        self._entries: dict[ir.Value, list[Scalar]] = {}  # elements of vectors made from scalars
        self._sizes: dict[ir.Value, Size] = {}  # int64 scalars that are sizes

    def remark(self, message: str) -> None:
        """Say something of the node at hand that ends up in the report."""
        here = ir.Location.current
        self.remarks[here.name_str if here.is_a_name() else ""] = message

    def op(
        self,
        name: str,
        operands: Sequence[ir.Value],
        result: ir.Type,
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> ir.Value:
        """Create an op with one result and no region."""
        return ir.Operation.create(name, results=[result], operands=operands, attributes=attributes).result

    def element_type(self, dtype: np.dtype) -> ir.Type:
        """The MLIR type of a NumPy dtype. Raises UnsupportedError for strings and the like."""
        dtype = np.dtype(dtype)
        if dtype not in self._types:
            self._types[dtype] = element_type(dtype)
        return self._types[dtype]

    def tensor_type(self, shape: Sequence[Size], dtype: np.dtype) -> ir.Type:
        """The ranked tensor type. Raises UnsupportedError for one that no memory holds."""
        check_tensor([n for n in shape if isinstance(n, int)], np.dtype(dtype).itemsize)
        return ir.RankedTensorType.get(marked(shape), self.element_type(dtype))

    def index(self, value: int) -> ir.Value:
        """A constant of type index."""
        check_word(value)
        kind = ir.IndexType.get()
        return self.op("arith.constant", [], kind, {"value": ir.IntegerAttr.get(kind, value)})

    def empty(self, shape: Sequence[Size], dtype: np.dtype) -> ir.Value:
        """tensor.empty."""
        return self.op("tensor.empty", values(shape), self.tensor_type(shape, dtype))

    def fill(self, value: Scalar | float, target: ir.Value, dtype: np.dtype) -> ir.Value:
        """linalg.fill of `target` with a constant."""
        scalar = self.math.scalar(value, dtype)
        fill = ir.Operation.create(
            "linalg.fill",
            results=[target.type],
            operands=[scalar.value, target],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
            regions=1,
        )
        kind = self.element_type(dtype)
        block = ir.Block.create_at_start(fill.regions[0], [kind, kind])
        with ir.InsertionPoint(block):
            ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
        return fill.result

    def filled(self, value: Scalar | float, shape: Sequence[Size], dtype: np.dtype) -> ir.Value:
        """A new tensor filled with a constant."""
        return self.fill(value, self.empty(shape, dtype), dtype)

    # Stored data ----------------------------------------------------------------------------------------------

    def stored(self, x: Tensor) -> Tensor:
        """`x` with an SSA value as its data: known elements become a constant or a global."""
        if not isinstance(x.data, np.ndarray):
            return x
        shape = x.data.shape
        dims = tuple(d for d, n in zip(x.dims, shape, strict=True) if n != 1) or (None,)
        found = self._kept.get(id(x.data))
        if found is None:
            squeezed = x.data[tuple(slice(None) if n != 1 else 0 for n in shape)]
            found = (x.data, self.constant(np.atleast_1d(squeezed)))
            self._kept[id(x.data)] = found  # the array is kept so that its id stays its own
        return Tensor(x.dtype, x.shape, found[1], dims)

    def constant(self, array: np.ndarray) -> ir.Value:
        """Known elements as they stand, as a constant or a global at the start of the entry block."""
        with ir.InsertionPoint.at_block_begin(self._entry()), ir.Location.unknown():
            if array.size == 0:
                return self.empty(array.shape, array.dtype)
            splat = array.strides == (0,) * array.ndim or array.size == 1
            array = array.astype(storage(array.dtype), copy=False)
            if (splat or array.nbytes <= INLINE_BYTES) and not is_complex(array.dtype):
                return self._constant(array, splat)
            return self._weight(np.ascontiguousarray(array))

    def _entry(self) -> ir.Block:
        assert self.entry is not None
        return self.entry

    def _constant(self, array: np.ndarray, splat: bool) -> ir.Value:
        kind = self.tensor_type(array.shape, array.dtype)
        if splat:
            one = self.math.number(array.flat[0], array.dtype)
            return self.op("arith.constant", [], kind, {"value": ir.DenseElementsAttr.get_splat(kind, one)})
        if array.dtype == np.bool_:
            ones = [ir.BoolAttr.get(bool(v)) for v in array.flat]
            return self.op("arith.constant", [], kind, {"value": ir.DenseElementsAttr.get(ones, kind)})
        plain = np.ascontiguousarray(array)
        if is_float(array.dtype) and array.dtype.itemsize < 4:
            plain = plain.view(np.dtype(f"u{array.itemsize}"))
        elif array.dtype.kind == "u":
            plain = plain.view(np.dtype(f"i{array.itemsize}"))
        value = ir.DenseElementsAttr.get(plain, type=kind.element_type, shape=array.shape)
        return self.op("arith.constant", [], kind, {"value": value})

    def _weight(self, array: np.ndarray) -> ir.Value:
        digest = hashlib.sha256(f"{array.dtype.name}{array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8))
        name = "w_" + digest.hexdigest()[:16]
        kind = self.tensor_type(array.shape, array.dtype)
        if name not in self.weights:
            self.weights[name] = array
            with ir.InsertionPoint.at_block_begin(self.module.body):
                ir.Operation.create(
                    "ml_program.global",
                    attributes={
                        "sym_name": ir.StringAttr.get(name),
                        "type": ir.TypeAttr.get(kind),
                        "value": ir.Attribute.parse(f"#ml_program.extern : {kind}"),
                        "sym_visibility": ir.StringAttr.get("private"),
                    },
                )
        return self.op("ml_program.global_load_const", [], kind, {"global": ir.FlatSymbolRefAttr.get(name)})

    # Generic --------------------------------------------------------------------------------------------------

    def affine(self, index: Index, space: Space) -> ir.AffineExpr:
        """An index as an affine expression over the numbered loops; loops of size 1 are 0."""
        if index is None:
            return self._zero
        if isinstance(index, int):
            number = space.number.get(index)
            return self._zero if number is None else self._dim(number)
        result: ir.AffineExpr | None = None
        for loop, coefficient in index.terms:
            if loop not in space.number:
                continue
            term = self._dim(space.number[loop])
            term = term if coefficient == 1 else term * coefficient
            result = term if result is None else result + term
        if result is None:
            return ir.AffineExpr.get_constant(index.offset)
        return result + index.offset if index.offset else result

    def _dim(self, number: int) -> ir.AffineExpr:
        while len(self._dims) <= number:
            self._dims.append(ir.AffineExpr.get_dim(len(self._dims)))
        return self._dims[number]

    def input_map(self, x: Tensor, indices: Sequence[Index], space: Space, rank: int) -> ir.AffineMap:
        """The map of a stored tensor whose logical dimensions are read at `indices`."""
        exprs = [self._zero if d is None or x.shape[d] == 1 else self.affine(indices[d], space) for d in x.dims]
        return ir.AffineMap.get(rank, 0, exprs)

    def raw_generic(
        self,
        kinds: Sequence[int],
        inputs: Sequence[tuple[Tensor, ir.AffineMap]],
        init: ir.Value,
        init_map: ir.AffineMap,
        dtype: np.dtype,
        body: Callable[..., Scalar],
    ) -> ir.Value:
        """linalg.generic with one result; `kinds` holds 1 for each reduction loop.

        The body gets (m, *inputs, accumulator) as scalars, with the generic's block as insertion point.
        """
        maps = [m for _, m in inputs] + [init_map]
        op = ir.Operation.create(
            "linalg.generic",
            results=[init.type],
            operands=[*(x.data for x, _ in inputs), init],
            attributes={
                "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
                "iterator_types": ir.ArrayAttr.get([self._iterators[k] for k in kinds]),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
            },
            regions=1,
        )
        dtypes = [x.dtype for x, _ in inputs] + [dtype]
        block = ir.Block.create_at_start(op.regions[0], [self.element_type(d) for d in dtypes])
        with ir.InsertionPoint(block):
            arguments = [Scalar(self.math, v, d) for v, d in zip(block.arguments, dtypes, strict=True)]
            result = self.math.scalar(body(self.math, *arguments), dtype)
            ir.Operation.create("linalg.yield", operands=[result.value])
        return op.result

    def generic(
        self,
        space: Space,
        inputs: Sequence[tuple[Tensor, Sequence[Index]]],
        out: Sequence[int | None],
        dtype: np.dtype,
        body: Callable[..., Scalar],
        neutral: float | None = None,
        order: Sequence[int] | None = None,
        into: ir.Value | None = None,
    ) -> Tensor:
        """A new tensor computed by one linalg.generic.

        Args:
            space: extents of the loops; those of `out` are parallel, `space.reduced` are reductions.
            inputs: each tensor with one index per logical dimension.
            out: the loop along each logical dimension of the result, or None for a dimension of size 1.
            dtype: of the result.
            body: see raw_generic; the accumulator is the result's initial value.
            neutral: initial value of a reduction.
            order: the loops of `out` in the order in which the result is stored (default: as in `out`).
            into: a tensor of the stored shape whose place the result takes (default: a new one).
        """
        for x, at in inputs:
            _check_sizes(x, at, space)
        kept = space.arrange([d for d in out if d is not None] if order is None else order)
        spare = not kept  # no rank-0 tensors: one loop of size 1 instead
        if spare:
            space.number = {d: n + 1 for d, n in space.number.items()}
        shape = [1] if spare else [space.sizes[d] for d in kept]
        rank = len(space.number) + spare
        stored = [self.stored(x) for x, _ in inputs]
        pairs = [(s, self.input_map(s, at, space, rank)) for s, (_, at) in zip(stored, inputs, strict=True)]
        init = into or self.empty(shape, dtype)
        init = init if neutral is None else self.fill(neutral, init, dtype)
        init_map = ir.AffineMap.get(rank, 0, [self._dim(i) for i in range(len(shape))])
        kinds = [0] * len(shape) + [1] * (rank - len(shape))
        value = self.raw_generic(kinds, pairs, init, init_map, dtype, body)
        place = {d: i for i, d in enumerate(out) if d is not None}
        logical = tuple(1 if d is None else space.sizes[d] for d in out)
        return Tensor(np.dtype(dtype), logical, value, (None,) if spare else tuple(place[d] for d in kept))


def _check_sizes(x: Tensor, indices: Sequence[Index], space: Space) -> None:
    """Raises ValueError where loops read outside of x. A size of 1 meets any other."""
    for n, index in zip(x.shape, indices, strict=True):
        if index is None or not isinstance(n, int) or n == 1:
            continue
        terms = [(index, 1)] if isinstance(index, int) else index.terms
        steps = [(space.sizes[loop], by) for loop, by in terms]
        if not all(isinstance(size, int) for size, _ in steps):
            continue
        first = 0 if isinstance(index, int) else index.offset
        low = first + sum(min(0, by) * (size - 1) for size, by in steps)
        high = first + sum(max(0, by) * (size - 1) for size, by in steps)
        exact = isinstance(index, int) and steps[0][0] not in (1, n)
        if exact or low < 0 or high >= n:
            raise ValueError(f"a size of {n} does not fit elements {low} to {high}")
