# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-narrow-operands`: products read 16-bit floats that were widened on their way as memory has them.

Operators of several steps compute in f32 and round once, so a convolution of f16 comes as one of f32 that reads a
widened, padded, reordered image and widened filters. Matrix units multiply 16-bit floats and add in f32: what they
compute of the narrow operands is the same number for number, at many times the speed and half the bytes.

A normalization that is folded into filters (Jacob et al., 2018, section 3.2) leaves them no 16-bit numbers. Its scale
is one number per row of the result, so it is multiplied to the sums, in registers and in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import (
    body,
    constant_of,
    create,
    create_copy,
    create_fill,
    create_generic,
    create_number,
    create_scaled,
    is_zeros,
    kinds,
    maker,
    maps,
    open_sizes,
    place_of,
    positions,
    uses,
)
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, describe, linalg_ops
from tilewright.ir.views import consecutive, create_split, groups_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.passes.weights import known_array
from tilewright.plan.gpu.allow_tf32 import ATTRIBUTE
from tilewright.plan.model.implicit_padding import bound_windows, is_implicitly_padded, surround

_SAMPLE = 1024
_EXPAND = "tensor.expand_shape"
_VIEWS = (_EXPAND, "tensor.collapse_shape", "tensor.extract_slice")


@dataclass(frozen=True)
class _Scale:
    """Numbers in f32 that a tensor is multiplied by: one for each index along `dims` of that tensor."""

    tensor: ir.Value
    dims: tuple[int, ...]


@dataclass(frozen=True)
class _Narrow:
    """A tensor of 16-bit floats that, widened and scaled, is one of f32."""

    tensor: ir.Value
    scale: _Scale | None = None


@register
@dataclass(frozen=True)
class NarrowOperands(Pass):
    """Let products in f32 read the 16-bit floats that both of their operands are.

    Operands may be widened, copied, reshaped and padded on the way, and be scaled along loops that are not summed
    over; the sums are then scaled. Images of what units multiply that windows read get bounds (`tensor.pad` with
    `tile.implicit_padding`), whether they were narrow before or not.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<8x64xf16>, %w: tensor<64x32xf16>) -> tensor<8x32xf32> {
      %zero = arith.constant 0.0 : f32
      %d = tensor.empty() : tensor<8x64xf32>
      %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<8x64xf16>) outs(%d : tensor<8x64xf32>) {
      ^bb0(%p: f16, %o: f32):
        %u = arith.extf %p : f16 to f32
        linalg.yield %u : f32
      } -> tensor<8x64xf32>
      %d1 = tensor.empty() : tensor<64x32xf32>
      %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%w : tensor<64x32xf16>) outs(%d1 : tensor<64x32xf32>) {
      ^bb0(%p: f16, %o: f32):
        %u = arith.extf %p : f16 to f32
        linalg.yield %u : f32
      } -> tensor<64x32xf32>
      %e = tensor.empty() : tensor<8x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%g, %h : tensor<8x64xf32>, tensor<64x32xf32>) outs(%f : tensor<8x32xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<8x64xf16>, tensor<64x32xf16>) outs(%f : tensor<8x32xf32>) {
    ^bb0(%p: f16, %q: f16, %o: f32):
      %u = arith.extf %p : f16 to f32
      %v = arith.extf %q : f16 to f32
      %m = arith.mulf %u, %v : f32
    ```
    """

    name: ClassVar[str] = "tile-narrow-operands"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit the sums of products of two operands in f32."""
        weights = Weights()
        elements = [(element, _Fitting(str(element))) for element in (ir.F16Type.get(), ir.BF16Type.get())]
        for block in blocks(op):
            finders = [_Finder(element, fitting) for element, fitting in elements]
            for product in linalg_ops(block, weights):
                if product.kind is not Kind.CONTRACTION:
                    continue
                if _is_wide(product):
                    _visit(product, finders)
                if all(_is_multiplied(product, value) for value in list(product.op.operands)[:2]):
                    bound_windows(describe(product.op, product.position, forms=weights.forms))
            _sweep(block)


def _sweep(block: ir.Block) -> None:
    """Erase what nothing reads any more."""
    for op in reversed([op.operation for op in block.operations]):
        dead = op.results and not any(list(uses(result)) for result in op.results)
        if dead and op.name.startswith(("linalg.", "tensor.", "arith.constant")):
            op.erase()


def _is_wide(op: LinalgOp) -> bool:
    """Whether elements of f32 are multiplied as they are."""
    values = list(op.op.operands)
    return len(values) == 3 and all(_is_f32(value) for value in values)


def _is_multiplied(product: LinalgOp, value: ir.Value) -> bool:
    """Whether matrix units multiply the elements of an operand."""
    element = str(ir.RankedTensorType(value.type).element_type)
    return element in ("f16", "bf16", "i8") or (element == "f32" and ATTRIBUTE in product.op.attributes)


def _is_f32(value: ir.Value) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.F32Type)


def _visit(product: LinalgOp, finders: Sequence[_Finder]) -> None:
    """Let a product read narrow operands, of the first type that both of them have."""
    for finder in finders:
        narrow = [found for access in product.inputs if (found := finder.find(access.value)) is not None]
        if len(narrow) == 2 and _may_scale(product, narrow):
            _read(product, narrow, finder.element)
            return


def _may_scale(product: LinalgOp, operands: list[_Narrow]) -> bool:
    """Whether the sums can be scaled in place of the operands: along loops of the result, from zero on."""
    for access, operand in zip(product.inputs, operands, strict=True):
        if operand.scale is None:
            continue
        loops = [access.dims[d] for d in operand.scale.dims]
        if not all(d in product.output.dims for d in loops if d is not None) or None in loops:
            return False
        if not is_zeros(product.op.operands[2]) or place_of(product.op) is None:
            return False
    return True


def _read(product: LinalgOp, operands: list[_Narrow], element: ir.Type) -> None:
    """Let a product read narrow operands, and scale its sums as these are."""
    op, block = product.op, body(product.op)
    for number, operand in reversed([*enumerate(operands)]):  # what widens the first one then stands first
        argument = block.arguments[number]
        readers = list(uses(argument))
        op.operands[number] = operand.tensor
        argument.set_type(element)
        with op.location, ir.InsertionPoint.at_block_begin(block):
            wide = create("arith.extf", [argument], ir.F32Type.get())
        for reader, at in readers:
            reader.operands[at] = wide
    scales = [
        (access, operand.scale) for access, operand in zip(product.inputs, operands, strict=True) if operand.scale
    ]
    if not scales:
        return
    result, written = product.result, list(product.output.dims)
    readers = list(uses(result))
    reads = []
    for access, scale in scales:
        at = [ir.AffineDimExpr.get(written.index(access.dims[d])) for d in scale.dims]
        reads.append((scale.tensor, ir.AffineMap.get(len(written), 0, at)))
    with op.location, ir.InsertionPoint.after(op):
        made = create_scaled(result, reads, sizes=open_sizes(op))
    for reader, at in readers:
        reader.operands[at] = made


class _Fitting:
    """Which constants are numbers of a narrow type; a weight is looked at once, however many blocks read it."""

    def __init__(self, element: str) -> None:
        self._element = element
        self._globals: dict[str, bool] = {}

    def has(self, op: ir.Operation) -> bool:
        """Whether what an operation gives is known, and rounding it to the type changes no number."""
        if op.name != "ml_program.global_load_const":
            return self._looked_at(op)
        name = str(op.attributes["global"])
        if name not in self._globals:
            self._globals[name] = self._looked_at(op)
        return self._globals[name]

    def _looked_at(self, op: ir.Operation) -> bool:
        array = known_array(op.results[0])
        return array is not None and _fits(array, self._element)


class _Finder:
    """Makes narrow forms of tensors, each once."""

    def __init__(self, element: ir.Type, fitting: _Fitting) -> None:
        """`element` is the narrow type, `fitting` says which constants have it."""
        self.element = element
        self._fitting = fitting
        self._found: dict[ir.Value, _Narrow | None] = {}

    def find(self, value: ir.Value) -> _Narrow | None:
        """A tensor of f32 as one of narrow floats; None where it is none."""
        if value not in self._found:
            op = maker(value)
            self._found[value] = None if op is None or not _is_f32(value) else self._of(op)
        return self._found[value]

    def _of(self, op: ir.Operation) -> _Narrow | None:
        if len(op.results) != 1:
            return None
        if op.name == "linalg.generic":
            return self._of_generic(op)
        if op.name in _VIEWS:
            return self._of_view(op)
        if is_implicitly_padded(op.results[0]):
            return self._of_border(op)
        return self._of_insertion(op) if op.name == "tensor.insert_slice" else self._of_constant(op)

    def _kind(self, value: ir.Value) -> ir.RankedTensorType:
        return ir.RankedTensorType.get(ir.RankedTensorType(value.type).shape, self.element)

    def _of_generic(self, op: ir.Operation) -> _Narrow | None:
        """What widens, copies or scales."""
        own, terms = maps(op), _terms(op)
        if any(kinds(op)) or terms is None or not own[-1].is_permutation or sizes_of_place(op) is None:
            return None
        whole = [n for n in terms if own[n].is_permutation] if len(terms) > 1 else terms
        if len(whole) != 1:
            return None
        inner = self._operand(op, whole[0])
        others = [n for n in terms if n != whole[0]]
        if inner is None or (inner.scale is not None and others):
            return None
        read, written = own[whole[0]], positions(own[-1])
        scale = inner.scale
        if scale is not None:
            loops = [_loop(read.results[d]) for d in scale.dims]
            if None in loops:
                return None
            scale = _Scale(scale.tensor, tuple(written.index(d) for d in loops))
        for number in others:
            if not own[number].is_projected_permutation or not _is_f32(op.operands[number]):
                return None
            scale = _Scale(op.operands[number], tuple(written.index(d) for d in positions(own[number])))
        return _Narrow(self._copied(op, inner.tensor, read), scale)

    def _operand(self, op: ir.Operation, number: int) -> _Narrow | None:
        """An operand of an elementwise operation that is narrow as it stands, or in its narrow form."""
        value = op.operands[number]
        if ir.RankedTensorType(value.type).element_type == self.element:
            return _Narrow(value)
        return self.find(value)

    def _copied(self, op: ir.Operation, source: ir.Value, read: ir.AffineMap) -> ir.Value:
        """`source` as an elementwise operation reads and writes it; itself where each element keeps its place."""
        written, kind = maps(op)[-1], self._kind(op.results[0])
        if read == written and source.type == kind:
            return source
        with op.location, ir.InsertionPoint.after(op):
            target = create("tensor.empty", sizes_of_place(op) or [], kind)
            return create_generic([(source, read)], target, written, [False] * written.n_dims, lambda e: e[0])

    def _of_view(self, op: ir.Operation) -> _Narrow | None:
        inner = self.find(op.operands[0])
        others = list(op.operands)[1:]
        if inner is None or (inner.scale is not None and (op.name != _EXPAND or others)):
            return None  # a scale of sizes that only a run knows is not reshaped
        attributes = {name: op.attributes[name] for name in op.attributes}
        with op.location, ir.InsertionPoint.after(op):
            view = create(op.name, [inner.tensor, *others], self._kind(op.results[0]), attributes)
            return _Narrow(view, inner.scale and self._expanded(op, inner.scale))

    def _expanded(self, op: ir.Operation, scale: _Scale) -> _Scale:
        """The scale of a tensor in the shape that `op` gives this, at the current insertion point."""
        groups, shape = groups_of(op.attributes["reassociation"]), ir.RankedTensorType(op.results[0].type).shape
        dims = tuple(d for dim in scale.dims for d in groups[dim])
        if len(dims) == len(scale.dims):
            return _Scale(scale.tensor, dims)
        own = consecutive(len(groups[dim]) for dim in scale.dims)
        return _Scale(create_split(scale.tensor, own, [shape[d] for d in dims]), dims)

    def _of_border(self, op: ir.Operation) -> _Narrow | None:
        inner = self.find(op.operands[0])
        if inner is None or inner.scale is not None:
            return None
        low, high = (list(ir.DenseI64ArrayAttr(op.attributes[name])) for name in ("static_low", "static_high"))
        with op.location, ir.InsertionPoint.after(op):
            return _Narrow(
                surround(inner.tensor, self._kind(op.results[0]), low, high, create_number(0.0, self.element))
            )

    def _of_insertion(self, op: ir.Operation) -> _Narrow | None:
        """An image inserted into zeros that lie in memory."""
        fill, made = maker(op.operands[1]), maker(op.operands[0])
        empty = maker(fill.operands[1]) if fill is not None and fill.name == "linalg.fill" else None
        if fill is None or empty is None or empty.name != "tensor.empty" or constant_of(fill.operands[0]) != 0:
            return None
        inner = self.find(op.operands[0])
        if inner is None or inner.scale is not None:
            return None
        with op.location, ir.InsertionPoint.after(op):
            kind = self._kind(op.results[0])
            whole = create_fill(create_number(0.0, self.element), create("tensor.empty", list(empty.operands), kind))
            image = inner.tensor
            place = maker(made.operands[len(made.operands) - 1]) if made is not None and made.operands else None
            if place is not None and place.name == "tensor.extract_slice":  # copied into its place at once
                attributes = {name: place.attributes[name] for name in place.attributes}
                operands = [whole, *list(place.operands)[1:]]
                slice_ = create("tensor.extract_slice", operands, self._kind(place.results[0]), attributes)
                image = create_copy(image, slice_)
            attributes = {name: op.attributes[name] for name in op.attributes}
            return _Narrow(create(op.name, [image, whole, *list(op.operands)[2:]], whole.type, attributes))

    def _of_constant(self, op: ir.Operation) -> _Narrow | None:
        """Known numbers, each of which has the narrow type; they are rounded at compile time."""
        if not self._fitting.has(op):
            return None
        with op.location, ir.InsertionPoint.after(op):
            empty = create("tensor.empty", [], self._kind(op.results[0]))
            return _Narrow(create_copy(op.results[0], empty, "arith.truncf"))


def sizes_of_place(op: ir.Operation) -> list[ir.Value] | None:
    """The sizes known in the run only of what an operation makes; None where nothing before it tells them."""
    if ir.RankedTensorType(op.results[0].type).has_static_shape:
        return []
    if place_of(op) is not None:
        return open_sizes(op)
    place = maker(op.operands[len(op.operands) - 1])
    if place is None or place.name != "tensor.extract_slice":
        return None
    dynamic = ir.ShapedType.get_dynamic_size()
    sizes, offsets = (list(ir.DenseI64ArrayAttr(place.attributes[f"static_{name}"])) for name in ("sizes", "offsets"))
    if ir.RankedTensorType(place.results[0].type).rank != len(sizes):
        return None
    first = 1 + offsets.count(dynamic)
    return list(place.operands)[first : first + sizes.count(dynamic)]


def _fits(array, element: str) -> bool:
    """Whether rounding numbers in f32 to a narrow type changes none."""
    import numpy as np

    wide = np.ascontiguousarray(array, np.float32)
    if wide.size > _SAMPLE and not _fits(wide.reshape(-1)[:_SAMPLE], element):
        return False  # as of nearly all weights that are not narrow
    if element == "bf16":
        return not np.any(wide.view(np.uint32) & 0xFFFF)
    with np.errstate(over="ignore"):
        return bool(np.array_equal(wide.astype(np.float16).astype(np.float32), wide))


def _terms(op: ir.Operation) -> list[int] | None:
    """The inputs that an elementwise operation gives or multiplies, as they are or widened; None for others."""
    operations, arguments = body(op).operations, list(body(op).arguments)[:-1]
    value = operations[len(operations) - 1].operands[0]
    made, count = maker(value), 1
    terms = [value]
    if made is not None and made.name == "arith.mulf":
        terms, count = list(made.operands), 2
    numbers = []
    for term in terms:
        widening = maker(term)
        if widening is not None and widening.name == "arith.extf":
            term, count = widening.operands[0], count + 1
        if not isinstance(term, ir.BlockArgument) or term not in arguments:
            return None
        numbers.append(term.arg_number)
    known = len(operations) == count and len(set(numbers)) == len(numbers) == len(arguments)
    return numbers if known else None


def _loop(expr: ir.AffineExpr) -> int | None:
    return ir.AffineDimExpr(expr).position if isinstance(expr, ir.AffineDimExpr) else None
