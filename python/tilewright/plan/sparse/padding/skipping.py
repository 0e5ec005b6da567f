# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which mask's padding is left out: the one that the options name, or one of which nothing reads padding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from contextlib import suppress

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.ir.generics import uses
from tilewright.ir.target_info import device_of, find_device, options_of
from tilewright.mlir import ir
from tilewright.passes import remark
from tilewright.plan.sparse.padding.live import create_live, without_batch
from tilewright.plan.sparse.padding.meetings import find_meetings
from tilewright.plan.sparse.padding.norms import Norms
from tilewright.plan.sparse.padding.packing import Packing
from tilewright.plan.sparse.padding.readers import Readers, Unproved
from tilewright.plan.sparse.padding.sentences import run_by_sentence
from tilewright.plan.sparse.padding.tokens import Tokens, packed_steps, sorted_ops

#: Tokens of a batch, at least, where no option asks: lists and copies cost more than they save in small ones.
_LEAST = 256
#: Below what scores are in size where the option says that padding is not read.
_SCORES = 4e3


class Asserted(Norms):
    """Scores where the user says that no result at a token depends on padding: such as masks of -1e4 hide."""

    def product(self, op: ir.Operation) -> float:
        """How large a sum of products is, at most."""
        return _SCORES


def skip_padding(op: ir.Operation) -> None:
    """Pack the tokens of the function @main: of the mask that the options name, or of one that hides all padding."""
    name = options_of(op).padded
    for function in op.regions[0].blocks[0].operations:
        if (
            function.operation.name == "func.func"
            and ir.StringAttr(function.operation.attributes["sym_name"]).value == "main"
        ):
            if name:
                _skip(function.operation, name)
            else:
                _skip_unread(function.operation)


def _skip(function: ir.Operation, name: str) -> None:
    block = function.regions[0].blocks[0]
    mask = _mask(function, name)
    kind = ir.RankedTensorType(mask.type)
    if device_of(function, "tile-skip-padding").kind != "cpu":
        remark(function, f"padding by {name!r} is computed like tokens: it is left out on CPUs only")
        return
    if not kind.has_static_shape:
        remark(
            function, f"padding by {name!r} is computed like tokens: sizes of the batch are open, compile it for some"
        )
        return
    sizes = (kind.shape[0], kind.shape[1])
    back = without_batch(block, sizes)
    tokens = Tokens(block, sizes)
    members, after = packed_steps(tokens)
    if not members or 0 in kind.shape:
        back()
        remark(function, f"padding by {name!r} is computed like tokens: no product with a weight works token by token")
        return
    remark(function, f"{_products(tokens, members)} leave out tokens where {name!r} is 0")
    readers = Readers(tokens, mask, after, Asserted())
    with suppress(Unproved):  # what was seen before stands
        readers.prove(block)
    _pack(function, tokens, members, after, readers, lambda: mask)


def _skip_unread(function: ir.Operation) -> None:
    """Leave out tokens that nothing reads, where a mask says so for sure."""
    device = find_device(function)
    if device is None or device.kind != "cpu":
        return
    block = function.regions[0].blocks[0]
    norms = Norms() if options_of(function).precision == "f32" else None
    for mask, name in zip(list(block.arguments), _names(function), strict=True):
        kind = ir.RankedTensorType(mask.type) if isinstance(mask.type, ir.RankedTensorType) else None
        if kind is None or kind.rank != 2 or not kind.has_static_shape or kind.shape[0] * kind.shape[1] < _LEAST:
            continue
        if not isinstance(kind.element_type, ir.IntegerType | ir.FloatType):
            continue
        if _skip_hidden(function, mask, name, norms):
            return


def _skip_hidden(function: ir.Operation, mask: ir.Value, name: str, norms: Norms | None) -> bool:
    """Leave out tokens that this mask hides from all who read them; whether it does."""
    block, kind = function.regions[0].blocks[0], ir.RankedTensorType(mask.type)
    sizes = (kind.shape[0], kind.shape[1])
    back = without_batch(block, sizes)
    tokens = Tokens(block, sizes)
    members, after = packed_steps(tokens)
    readers = Readers(tokens, mask, after, norms)
    try:
        if members:
            readers.prove(block)
    except Unproved as why:
        readers.hidden = False
        if readers.near:
            remark(
                function,
                f"padding by {name!r} is computed like tokens: {why} (padded={name!r} says that outputs at padding "
                "are not read)",
            )
    if not members or not readers.hidden:
        back()
        return False
    remark(function, f"{_products(tokens, members)} leave out tokens where {name!r} is 0: nothing reads them")
    _pack(function, tokens, members, after, readers, lambda: create_live(mask, readers.places))
    return True


def _products(tokens: Tokens, members: Set[ir.Operation]) -> str:
    count = sum(tokens.steps[op].product for op in members if op in tokens.steps)
    return f"{count} products and what belongs to them"


def _pack(
    function: ir.Operation,
    tokens: Tokens,
    members: Set[ir.Operation],
    after: Set[ir.Operation],
    readers: Readers,
    live: Callable[[], ir.Value],
) -> None:
    """Make the packed form. `live` makes numbers [batch, places] that are zero at what is left out."""
    device = device_of(function, "tile-skip-padding")
    meetings, told = find_meetings(tokens, members, after, readers.kept, device)
    if meetings:
        remark(function, f"{len(meetings)} groups of operations where tokens meet run sentence by sentence")
    for why, count in Counter(told).items():
        remark(function, f"{count} operations where tokens meet run on padding, too: {why}")
    ends = {meeting.ops[-1]: meeting for meeting in meetings}
    met = {op for meeting in meetings for op in meeting.ops}
    order = [op for op in sorted_ops(tokens) if op in members]
    packing = Packing(tokens, live, order, met)
    everything = [op.operation for op in tokens.block.operations if op.operation in members or op.operation in met]
    for op in everything:
        if op in ends:
            run_by_sentence(ends[op], tokens, packing)
        elif op in members:
            packing.pack(op)
    for op in order:
        if op in after:
            packing.unpack(op)
    for op in reversed(everything):
        if not any(True for _ in uses(op.results[0])):
            op.erase()


def _names(function: ir.Operation) -> list[str]:
    """The names of inputs."""
    arguments = list(function.regions[0].blocks[0].arguments)
    given = function.attributes["arg_attrs"] if "arg_attrs" in function.attributes else [{}] * len(arguments)
    return [
        ir.StringAttr(held[decisions.NAME]).value if decisions.NAME in held else f"input {at}"
        for at, held in enumerate(given)
    ]


def _mask(function: ir.Operation, name: str) -> ir.Value:
    """The input of this name."""
    arguments, names = list(function.regions[0].blocks[0].arguments), _names(function)
    if name not in names:
        raise UserError(f"padded={name!r}: the model has no such input; it has {', '.join(names)}")
    mask = arguments[names.index(name)]
    if not isinstance(mask.type, ir.RankedTensorType) or mask.type.rank != 2:
        raise UserError(
            f"padded={name!r}: a mask of padding is a tensor [batch, tokens], and this input is {mask.type}"
        )
    return mask
