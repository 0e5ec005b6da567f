# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `tile` dialect in Python: types, attributes, op classes, and builders for ops with regions or many options.

Op classes and enumerations are generated from ODS; here some get constructors with defaults. `kernel`, `program` and
`group` are context managers that fill the region of the op they make.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .._mlir_libs._tilewrightTile import *  # noqa: F403
from .._mlir_libs._tilewrightTile import TileType, TokenType
from ..ir import (
    DenseI64ArrayAttr,
    FunctionType,
    IndexType,
    InsertionPoint,
    IntegerAttr,
    Location,
    MemRefType,
    OpView,
    RankedTensorType,
    ShapedType,
    Type,
    TypeAttr,
    Value,
)
from . import _tile_ops_gen as _ods
from ._ods_common import _cext as _ods_cext
from ._tile_enum_gen import *  # noqa: F403
from ._tile_enum_gen import ReduceKind
from ._tile_ops_gen import *  # noqa: F403
from ._tile_ops_gen import _Dialect
from .arith import ConstantOp as _ConstantOp

Index = Value | OpView | int
"""An SSA value of type `index`, or an int that becomes an `arith.constant`."""


def _value(operand: Value | OpView) -> Value:
    """The value, or the single result of an op."""
    return operand.result if isinstance(operand, OpView) else operand


def _indices(operands: Sequence[Index]) -> list[Value]:
    """Values of type index, with constants for ints."""
    return [
        _ConstantOp(IndexType.get(), IntegerAttr.get(IndexType.get(), operand)).result
        if isinstance(operand, int)
        else _value(operand)
        for operand in operands
    ]


def _tile_type(value: Value | OpView) -> ShapedType:
    """The type of a tile. Raises TypeError for anything else."""
    type_ = _value(value).type
    if not isinstance(type_, TileType):
        raise TypeError(f"expected a tile, got a value of type {type_}")
    return type_


@_ods_cext.register_operation(_Dialect, replace=True)
class KernelOp(_ods.KernelOp):
    """A `tile.kernel` with an empty entry block that has all its arguments."""

    def __init__(
        self,
        name: str,
        input_types: Sequence[Type],
        grid_rank: int = 0,
        *,
        cluster: Sequence[int] | None = None,
        visibility: str | None = None,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> None:
        function_type = TypeAttr.get(FunctionType.get(list(input_types), []))
        super().__init__(name, function_type, grid_rank, cluster=cluster, sym_visibility=visibility, loc=loc, ip=ip)
        self.body.blocks.append(*input_types, *[IndexType.get()] * grid_rank)

    @property
    def inputs(self) -> list[Value]:
        """The kernel's arguments inside its body."""
        arguments = list(self.body.blocks[0].arguments)
        return arguments[: len(arguments) - self.grid_rank.value]

    @property
    def grid_ids(self) -> list[Value]:
        """The coordinates of the task."""
        arguments = list(self.body.blocks[0].arguments)
        return arguments[len(arguments) - self.grid_rank.value :]


@contextmanager
def kernel(
    name: str,
    input_types: Sequence[Type],
    grid_rank: int = 0,
    *,
    cluster: Sequence[int] | None = None,
    loc: Location | None = None,
    ip: InsertionPoint | None = None,
) -> Iterator[KernelOp]:
    """Make a kernel and fill its body; `tile.return` is added at the end.

    with kernel("copy", [m, m], grid_rank=1) as k: (src, dst), (i,) = k.inputs, k.grid_ids; ...
    """
    op = KernelOp(name, input_types, grid_rank, cluster=cluster, loc=loc, ip=ip)
    with InsertionPoint(op.body.blocks[0]):
        yield op
        _ods.ReturnOp(loc=loc)


@_ods_cext.register_operation(_Dialect, replace=True)
class ProgramOp(_ods.ProgramOp):
    """A `tile.program` with an empty entry block that has all its arguments."""

    def __init__(
        self,
        name: str,
        input_types: Sequence[Type],
        units: int,
        *,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> None:
        function_type = TypeAttr.get(FunctionType.get(list(input_types), []))
        super().__init__(name, function_type, units, loc=loc, ip=ip)
        self.body.blocks.append(*input_types)


@contextmanager
def program(
    name: str,
    input_types: Sequence[Type],
    units: int,
    *,
    loc: Location | None = None,
    ip: InsertionPoint | None = None,
) -> Iterator[list[Value]]:
    """Make a program and fill its body; yields its arguments, `tile.return` is added at the end."""
    op = ProgramOp(name, input_types, units, loc=loc, ip=ip)
    with InsertionPoint(op.body.blocks[0]):
        yield list(op.body.blocks[0].arguments)
        _ods.ReturnOp(loc=loc)


@_ods_cext.register_operation(_Dialect, replace=True)
class GroupOp(_ods.GroupOp):
    """A `tile.group` with an empty block that has an argument per input."""

    def __init__(
        self,
        level: str,
        inputs: Sequence[Value],
        result_types: Sequence[Type],
        *,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> None:
        values = [_value(operand) for operand in inputs]
        super().__init__(list(result_types), level, values, loc=loc, ip=ip)
        self.body.blocks.append(*[value.type for value in values])

    @property
    def arguments(self) -> list[Value]:
        """The inputs inside the body."""
        return list(self.body.blocks[0].arguments)


@contextmanager
def group(
    level: str,
    inputs: Sequence[Value],
    result_types: Sequence[Type],
    *,
    loc: Location | None = None,
    ip: InsertionPoint | None = None,
) -> Iterator[GroupOp]:
    """Make a group and fill its body, which ends with a call of `yield_`."""
    op = GroupOp(level, inputs, result_types, loc=loc, ip=ip)
    with InsertionPoint(op.body.blocks[0]):
        yield op


@_ods_cext.register_operation(_Dialect, replace=True)
class LaunchOp(_ods.LaunchOp):
    """A `tile.launch`; its results are the tensors among the outputs."""

    def __init__(
        self,
        kernel: str,
        grid: Sequence[Index] = (),
        inputs: Sequence[Value] = (),
        outputs: Sequence[Value] = (),
        *,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> None:
        outs = [_value(output) for output in outputs]
        results = [out.type for out in outs if isinstance(out.type, RankedTensorType)]
        super().__init__(results, kernel, _indices(grid), [_value(operand) for operand in inputs], outs, loc=loc, ip=ip)


@_ods_cext.register_operation(_Dialect, replace=True)
class AllocOp(_ods.AllocOp):
    """A `tile.alloc` of this memref type."""

    def __init__(self, type_: MemRefType, *, alignment: int | None = None, loc=None, ip=None) -> None:
        super().__init__(type_, alignment=alignment, loc=loc, ip=ip)


@_ods_cext.register_operation(_Dialect, replace=True)
class LoadOp(_ods.LoadOp):
    """A `tile.load`; what is left out has its default."""

    def __init__(
        self,
        result: Type,
        memref: Value,
        offsets: Sequence[Index],
        *,
        dims: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
        indices: Value | None = None,
        along: int | None = None,
        valid: Sequence[Index] = (),
        pad: Value | None = None,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> None:
        super().__init__(
            result,
            memref,
            _indices(offsets),
            _indices(valid),
            dims=dims,
            steps=steps,
            indices=indices,
            along=along,
            pad=pad,
            loc=loc,
            ip=ip,
        )


@_ods_cext.register_operation(_Dialect, replace=True)
class StoreOp(_ods.StoreOp):
    """A `tile.store`; what is left out has its default. `reduce` is "add", "max", "min" or a ReduceKind."""

    def __init__(
        self,
        tile: Value,
        memref: Value,
        offsets: Sequence[Index],
        *,
        dims: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
        indices: Value | None = None,
        along: int | None = None,
        valid: Sequence[Index] = (),
        reduce: str | ReduceKind | None = None,
        atomic: bool = False,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> None:
        super().__init__(
            tile,
            memref,
            _indices(offsets),
            _indices(valid),
            dims=dims,
            steps=steps,
            indices=indices,
            along=along,
            reduce=reduce,
            atomic=atomic or None,
            loc=loc,
            ip=ip,
        )


@_ods_cext.register_operation(_Dialect, replace=True)
class TransposeOp(_ods.TransposeOp):
    """A `tile.transpose`; the result's type follows from the permutation."""

    def __init__(self, source: Value, permutation: Sequence[int], *, loc=None, ip=None) -> None:
        type_ = _tile_type(source)
        if sorted(permutation) != list(range(type_.rank)):
            raise ValueError(f"{list(permutation)} is no permutation of the dimensions of {type_}")
        result = TileType.get([type_.shape[dim] for dim in permutation], type_.element_type)
        super().__init__(result, source, DenseI64ArrayAttr.get(list(permutation)), loc=loc, ip=ip)


@_ods_cext.register_operation(_Dialect, replace=True)
class AsyncOp(_ods.AsyncOp):
    """A `tile.async` with an empty block; end it with `yield_([])`."""

    def __init__(self, *, loc: Location | None = None, ip: InsertionPoint | None = None) -> None:
        super().__init__(TokenType.get(), loc=loc, ip=ip)
        self.body.blocks.append()


@contextmanager
def async_(*, loc: Location | None = None, ip: InsertionPoint | None = None) -> Iterator[AsyncOp]:
    """Make a `tile.async` and fill its body; its token is `op.token`."""
    op = AsyncOp(loc=loc, ip=ip)
    with InsertionPoint(op.body.blocks[0]):
        yield op
        _ods.YieldOp([], loc=loc)


# The generated functions of these names call the generated constructors; these take the arguments of those above.


def launch(*args, **kwargs) -> list[Value]:
    """Make a LaunchOp and return its results."""
    return list(LaunchOp(*args, **kwargs).results)


def alloc(*args, **kwargs) -> Value:
    """Make an AllocOp and return its buffer."""
    return AllocOp(*args, **kwargs).result


def load(*args, **kwargs) -> Value:
    """Make a LoadOp and return its tile."""
    return LoadOp(*args, **kwargs).result


def store(*args, **kwargs) -> StoreOp:
    """Make a StoreOp."""
    return StoreOp(*args, **kwargs)


def transpose(*args, **kwargs) -> Value:
    """Make a TransposeOp and return its tile."""
    return TransposeOp(*args, **kwargs).result
