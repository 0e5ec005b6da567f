# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the weights of a module hold, for passes that look: external globals have names in the IR, not their elements.

A run of passes is given them as a value (``run_pipeline(op, text, weights=...)``): they belong to the op that it runs
on while it runs, so that other runs see nothing of them, whatever their weights are called. IR in a file names a file
with them in ``tile.weights``, a path from where it lies itself (safetensors, by names of globals).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes.per_run import PerRun, root_of

if TYPE_CHECKING:
    import numpy as np

    Weights = Mapping[str, np.ndarray]

FILE = decisions.WEIGHTS
INLINE_BYTES = 256
"""Bytes of a constant that stands as text, at most: larger ones are globals, named by their content."""

_runs: PerRun[Weights] = PerRun()


@contextmanager
def bound(op: ir.Operation, weights: Weights | None) -> Iterator[None]:
    """While passes run on `op`, let them see what the external globals around it hold; None: nothing new.

    Runs may be nested; they may be on other ops at the same time.
    """
    if weights is None:
        yield
        return
    with _runs.bound(op, weights):
        yield


def weight_at(op: ir.Operation | ir.OpView, name: str) -> np.ndarray | None:
    """Return what an external global of the module around `op` holds; None where that is not known.

    Raises:
        UserError: the module names a file of weights that is not there, or is damaged.
    """
    given = _runs.find(op)
    if given is not None:
        return given.get(name)
    root = root_of(op)
    if FILE not in root.attributes:
        return None
    return _read(_file_of(root)).get(name)


def known_array(value: ir.Value) -> np.ndarray | None:
    """The elements of a constant tensor, a weight for one; None where they are not known."""
    if isinstance(value, ir.BlockArgument):
        return None
    import numpy as np

    op = value.owner
    shape = tuple(ir.RankedTensorType(value.type).shape)
    if op.name == "ml_program.global_load_const":
        found = weight_at(op, ir.FlatSymbolRefAttr(op.attributes["global"]).value)
        return None if found is None or found.shape != shape else found
    if op.name in RESHAPES:
        inner = known_array(op.operands[0])
        return None if inner is None else inner.reshape(shape)
    if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.DenseElementsAttr):
        elements = ir.DenseElementsAttr(op.attributes["value"])
        if elements.is_splat:
            number = getattr(elements.get_splat_value(), "value", None)
            return None if number is None else np.full(shape, number)
        return np.array(elements)
    return None


def create_table(array: np.ndarray) -> ir.Value:
    """A constant for @init to read, at the current insertion point: a global of the module where it is large.

    Args:
        array: integers; signless in the IR.
    """
    import numpy as np

    from tilewright.ir.generics import create
    from tilewright.ir.units import symbol_of

    value = ir.DenseElementsAttr.get(np.ascontiguousarray(array))
    if array.nbytes <= INLINE_BYTES:
        return create("arith.constant", [], value.type, {"value": value})
    name = f"table_{hashlib.sha256(memoryview(_bytes(array))).hexdigest()[:16]}"
    block = root_of(ir.InsertionPoint.current.block.owner).regions[0].blocks[0]
    if name not in {symbol_of(op) for op in block.operations}:
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "type": ir.TypeAttr.get(value.type),
            "sym_visibility": ir.StringAttr.get("private"),
            "value": value,
        }
        with ir.InsertionPoint.at_block_begin(block):
            ir.Operation.create("ml_program.global", attributes=attributes)
    return create("ml_program.global_load_const", [], value.type, {"global": ir.FlatSymbolRefAttr.get(name)})


def write_weights(folder: Path, weights: Weights) -> str:
    """Write weights into a folder, in a file named by what they hold; returns its name, for ``tile.weights``."""
    from tilewright.core import safetensors

    digest = hashlib.sha256()
    for name, array in sorted(weights.items()):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(memoryview(_bytes(array)))
    path = folder / f"weights-{digest.hexdigest()[:16]}.safetensors"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".new")
        with open(temporary, "wb") as file:
            safetensors.write(file, dict(weights))
        temporary.replace(path)
    return path.name


def _bytes(array: np.ndarray) -> Any:
    import numpy as np

    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _file_of(root: ir.Operation) -> Path:
    """The file that a module names: as it stands there, else from the folder of the file that it was read from."""
    named = Path(ir.StringAttr(root.attributes[FILE]).value)
    source = getattr(root.location, "filename", None)
    choices = [named] if source is None else [Path(str(source).strip('"')).parent / named, named]
    for path in choices:
        if path.is_file():
            return path
    raise UserError(
        f"the module's weights are to be in '{named}' ({FILE}), and there is no such file beside it: put it there, or "
        f"take {FILE} away (passes then know nothing of weights, and may decide otherwise)"
    )


@functools.lru_cache(maxsize=4)
def _read(path: Path) -> Weights:
    from tilewright.core import safetensors

    return safetensors.read(path)
