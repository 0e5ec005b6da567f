# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module that launches one kernel once."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.errors import UserError
from tilewright.kernels.signature import Argument, Signature


def wrapped(signature: Signature, shapes: Sequence[tuple[int, ...] | None], grid: Sequence[int]) -> str:
    """Return the kernel's module with a @main that launches it on tensors of these shapes (None: a scalar).

    Inputs of @main are the arguments that the kernel reads, outputs those that it writes.

    Raises:
        UserError: a scalar comes after an argument that is written; a launch has no place for it.
    """
    tensors = [_tensor(argument, shape) for argument, shape in zip(signature.arguments, shapes, strict=True)]
    lines = [f"%g{i} = arith.constant {bound} : index" for i, bound in enumerate(grid)]
    inputs, operands = [], []
    for i, (argument, kind) in enumerate(zip(signature.arguments, tensors, strict=True)):
        if argument.reads:
            inputs.append(f'%t{i}: {kind} {{tile.name = "{argument.name}"}}')
        else:
            lines.append(f"%t{i} = tensor.empty() : {kind}")
        lines += _scalar(i, argument.element, kind) if argument.shape is None else []
        operands.append((f"%s{i}", argument.element) if argument.shape is None else (f"%t{i}", kind))
    lines += _launch(signature, operands, len(grid))
    outputs = [f'{tensors[i]} {{tile.name = "{signature.arguments[i].name}"}}' for i in _written(signature)]
    body = "\n  ".join(lines)
    main = f"func.func @main({', '.join(inputs)}) -> ({', '.join(outputs)}) {{\n  {body}\n}}"
    return f"module {{\n{signature.text}\n{main}\n}}\n"


def _tensor(argument: Argument, shape: tuple[int, ...] | None) -> str:
    element = "i64" if argument.element == "index" else argument.element
    return f"tensor<{''.join(f'{size}x' for size in shape or ())}{element}>"


def _scalar(i: int, element: str, kind: str) -> list[str]:
    """From a tensor of rank 0 to the scalar `%s{i}`."""
    if element != "index":
        return [f"%s{i} = tensor.extract %t{i}[] : {kind}"]
    return [f"%n{i} = tensor.extract %t{i}[] : {kind}", f"%s{i} = arith.index_cast %n{i} : i64 to index"]


def _written(signature: Signature) -> list[int]:
    return [i for i, argument in enumerate(signature.arguments) if argument.writes]


def _launch(signature: Signature, operands: list[tuple[str, str]], rank: int) -> list[str]:
    """The launch and the return. Operands from the first written one on are outputs of the launch, as it wants them."""
    written = _written(signature)
    if not written:
        raise UserError(f"kernel {signature} writes no argument: a call would do nothing")
    first = written[0]
    late = next((a for a in signature.arguments[first:] if a.shape is None), None)
    if late is not None:
        raise UserError(f"kernel {signature}: scalar {late.name} must come before all arguments that are written")
    ins, outs = operands[:first], operands[first:]
    grid = f" grid({', '.join(f'%g{i}' for i in range(rank))})" if rank else ""
    kinds = ", ".join(kind for _, kind in outs)
    call = f"tile.launch @{signature.name}{grid} {_part('ins', ins)} {_part('outs', outs)} -> ({kinds})"
    returned = ", ".join(f"%r#{i - first}" for i in written)
    return [f"%r:{len(outs)} = {call}", f"return {returned} : {', '.join(operands[i][1] for i in written)}"]


def _part(word: str, operands: list[tuple[str, str]]) -> str:
    if not operands:
        return ""
    return f"{word}({', '.join(name for name, _ in operands)} : {', '.join(kind for _, kind in operands)})"
