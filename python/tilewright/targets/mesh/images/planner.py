# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function's windows are planned as, and how what they read is best made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.ir.generics import kinds, maps, uses, walk
from tilewright.mlir import ir
from tilewright.sim.coremesh.machine import Machine
from tilewright.targets.mesh.attributes import ALGORITHM, BORDER, LOOPS, WAYS, Fixed
from tilewright.targets.mesh.computations import Product, computation, dims
from tilewright.targets.mesh.images.plan import Axes, Choice, Grid, plan, roles_of
from tilewright.targets.mesh.images.windows import Windows, windows

#: Ops between a result and who reads windows of it.
READERS = 6


class Images:
    """Plans what reads windows.

    Args:
        function: which, if some op of it reads windows, holds images, whose products are convolutions, too.
        side: cores along each side of the grid.
        beside: bytes of a core that others take while an op runs.
    """

    def __init__(
        self,
        function: ir.Operation,
        side: int,
        machine: Machine,
        fixed: Fixed,
        beside: Callable[[ir.Operation], int],
    ) -> None:
        known = map(windows, walk(function, "linalg.generic"))
        self.has_images = any(not isinstance(found, str) and _has_windows(found) for found in known)
        self.side, self.machine, self.fixed, self.beside = side, machine, fixed, beside

    def reads(self, op: ir.Operation) -> Windows | str:
        """What an op reads as windows; a text that says why it cannot be done so."""
        found = windows(op)
        return found if isinstance(found, str) or self._is_image(op, found) else ""

    def _is_image(self, op: ir.Operation, found: Windows) -> bool:
        """Whether windows are read, or a product has rows along several loops, as images have."""
        if _has_windows(found):
            return True
        product = computation(op) if self.has_images else ""
        if not isinstance(product, Product):
            return False
        left, right = (set(dims(maps(op)[number])) for number in (product.left, product.right))
        return any((loop in left) != (loop in right) for loop in product.batch)

    def choose(self, op: ir.Operation, found: Windows, axes: Mapping[ir.Value, Axes]) -> Choice | str:
        """How an op is done.

        Args:
            axes: how values on the grid lie.
        """
        whole = self.machine.sram_bytes - self.machine.mesh.code_bytes
        lies = [axes.get(source.value) for source in found.sources]
        combined = self._combined(op.results[0], READERS)
        made: Choice | str = ""
        for room in dict.fromkeys((whole - self.beside(op), whole)):  # what lies beside can wait outside
            made = plan(op, found, lies, combined, Grid(self.side, self.machine, self.fixed, room))
            if isinstance(made, Choice):
                break
        return made

    def _combined(self, value: ir.Value, most: int) -> set[int]:
        """Dimensions of a value that readers of windows combine, behind so many elementwise ops at most."""
        combined: set[int] = set()
        for user, number in uses(value):
            if user.name == "tensor.insert_slice" and number == 0 and most:
                combined |= self._combined(user.results[0], most - 1)
            if user.name != "linalg.generic" or number == len(user.operands) - 1:
                continue
            found = windows(user)
            if not isinstance(found, str) and self._is_image(user, found):
                combined |= {at for at, dim in enumerate(found.operands[number]) if dim.loop is None}
            elif most and not any(kinds(user)) and maps(user)[number] == maps(user)[-1]:
                combined |= self._combined(user.results[0], most - 1)
        return combined

    def wanted(self, value: ir.Value) -> Axes | None:
        """How the first that reads windows of a value wants it to lie; None: nobody does."""
        for user, _ in _readers(value):
            if user.name != "linalg.generic" or LOOPS in user.attributes:
                continue
            found = self.reads(user)
            if isinstance(found, str):
                continue
            number = next((at for at, source in enumerate(found.sources) if source.value == value), None)
            choice = None if number is None else self.choose(user, found, {})
            if number is not None and isinstance(choice, Choice):
                return axes_of_source(user, found, choice, number)
        return None


def axes_of_source(op: ir.Operation, found: Windows, choice: Choice, number: int) -> Axes:
    """How an input has to lie."""
    roles = roles_of(op, found) if choice.way == "im2col" else None
    if roles is not None and roles.image == number:
        return roles.axes(found)
    return tuple("" if dim.loop is None else choice.loops[dim.loop] for dim in found.operands[number])


def mark_borders(found: Windows) -> None:
    """Note which ops only make borders of windows that the grid reads, if no other op reads them."""
    for source in found.sources:
        for op in reversed(source.made):
            if all(_makes_borders(user, number) for user, number in uses(op.results[0])):
                op.attributes[BORDER] = ir.UnitAttr.get()


def _makes_borders(user: ir.Operation, number: int) -> bool:
    """Whether a reader needs no border: it makes one, or makes it as it reads windows on the grid."""
    if BORDER in user.attributes:
        return True
    way = ir.StringAttr(user.attributes[ALGORITHM]).value if ALGORITHM in user.attributes else ""
    return way in WAYS and number < len(user.operands) - 1


def _readers(value: ir.Value) -> list[tuple[ir.Operation, int]]:
    """Who reads a value, or a copy of it with a border."""
    found = []
    for user, number in uses(value):
        found.append((user, number))
        is_border = user.name == "tensor.insert_slice" and number == 0
        if is_border or (user.name == "linalg.generic" and number == 0 and len(user.operands) == 2):
            found += [pair for pair in uses(user.results[0]) if pair[0].name != "func.return"]
            found += [pair for next_, _ in uses(user.results[0]) for one in next_.results for pair in uses(one)]
    return found


def _has_windows(found: Windows) -> bool:
    """Whether anything but single elements is read."""
    read = [dim for dims_ in found.operands for dim in dims_]
    return any(len(dim.kernel) + (dim.loop is not None) > 1 or dim.stride != 1 for dim in read)
