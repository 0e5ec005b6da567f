# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of a host function a kernel can do: stretches of launches, loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, prod

from tilewright.ir import decisions
from tilewright.ir.constants import integer_constant
from tilewright.ir.units import kernel_of, symbol_of
from tilewright.mlir import ir
from tilewright.plan.cost.decide import prediction_of
from tilewright.plan.graph.host_costs import Limits, Loss, times
from tilewright.plan.graph.side_by_side import VIEWS, tasks_at_a_time

#: What holds launches.
CONTROL = frozenset(("scf.for", "scf.while", "scf.if"))
_ENDS = frozenset(("scf.yield", "scf.condition"))
_IN_KERNELS = CONTROL | VIEWS | _ENDS | {f"memref.{name}" for name in "load store copy dim get_global".split()}
#: What a kernel does, and what stands for it where it is decided about.
_MARKED = CONTROL | {"tile.launch", "memref.load", "memref.copy"}
#: Buffers that are no part of others.
_WHOLE = frozenset(("memref.alloc", "memref.get_global"))
_REGISTERS, _USUAL_WARPS = 65536, 4
#: Threads of the warpgroup that only loads.
_LOADING = 128


@dataclass
class Stretch:
    """Operations of one block that may be one kernel: launches, copies, loops, branches and reads of numbers."""

    marked: list[ir.Operation] = field(default_factory=list)


@dataclass
class Found:
    """The stretches of a block with a loop or a branch in them, why others are none, and what they keep all the same.

    Attributes:
        stretches: that may be kernels.
        reasons: why the host runs an operation.
        kept: why an operation that loses time is part of one.
    """

    stretches: list[Stretch]
    reasons: dict[ir.Operation, str]
    kept: dict[ir.Operation, str]


@dataclass(frozen=True)
class _Kernel:
    """What is to be known of a kernel.

    Attributes:
        obstacle: why blocks that stay cannot run it; "" where they can.
        threads: of a block.
        seconds: predicted, of a launch; 0 where nothing is.
        occupancy: blocks that a multiprocessor holds; 0 where that is not known.
    """

    obstacle: str
    threads: int
    seconds: float
    occupancy: int


def _look_at(name: str, kernel: ir.Operation) -> _Kernel:
    prediction = prediction_of(kernel)
    nanoseconds, occupancy = (int(str(prediction.get(key, 0))) for key in ("ns", "occupancy"))
    return _Kernel(_obstacle_in(name, kernel), _threads(kernel), nanoseconds * 1e-9, occupancy)


def _obstacle_in(name: str, kernel: ir.Operation) -> str:
    if "cluster" in kernel.attributes or decisions.ROUNDED.on(kernel):
        return f"kernel {name} has clusters of blocks"
    if any(op.name.startswith("tile.semaphore") for op in _walk(kernel)):
        return f"tasks of kernel {name} wait for each other"
    return ""


class Kernels:
    """The kernels of a module, and which of them blocks can run that stay. Each kernel is looked at once."""

    def __init__(self, module: ir.Operation, units: int) -> None:
        self._units = units
        top = [op.operation for op in module.regions[0].blocks[0].operations]
        self._kernels = {symbol_of(op): op for op in top if op.name == "tile.kernel"}
        self._known: dict[str, _Kernel] = {}

    def controls(self, op: ir.Operation) -> bool:
        """Whether it is a loop or a branch around launches, or a launch of a kernel whose tasks run a loop."""
        if op.name == "tile.launch":
            kernel = self._kernels.get(kernel_of(op))
            return kernel is not None and decisions.LEVEL.on(kernel)
        return op.name in CONTROL and any(True for _ in launches_in(op))

    def obstacle(self, launch: ir.Operation) -> str:
        """Why a launch is none for blocks that stay; "" where it is one."""
        name = kernel_of(launch)
        return self._of(launch).obstacle if name in self._kernels else f"@{name} is a program"

    def loses(self, launch: ir.Operation, most: int, limits: Limits) -> Loss | None:
        """What a kernel that takes long loses without blocks of its own; None where as many are held anyway.

        Blocks that stay are held with the most registers, of which a kernel may want fewer. What is missing of its own
        blocks is taken for time that is lost.

        Args:
            launch: of a kernel.
            most: blocks that are held, which have the threads of the kernel with the most of them.
            limits: of what one may cost.
        """
        kernel = self._of(launch)
        if kernel.seconds <= limits.longest:
            return None
        what = f"kernel {kernel_of(launch)} takes {kernel.seconds * 1e6:.0f} us"
        tasks = _tasks(launch)
        if tasks is None or not kernel.occupancy:
            return Loss(f"{what}, beside which a launch is short", inf)
        own = max(1, min(tasks, kernel.occupancy * self._units))
        held = min(own, most)
        lost = kernel.seconds * (own / held - 1)
        if lost <= limits.launch:
            return None
        return Loss(
            f"{what}, and up to {lost * 1e6:.0f} us more with the {held} blocks that are surely held, of {own} that it "
            f"has alone; a launch takes {limits.launch * 1e6:.1f} us",
            lost,
        )

    def held(self, launches: Iterable[ir.Operation]) -> int:
        """Blocks that a GPU surely holds at a time, which run all of these launches."""
        threads = max(self._of(launch).threads for launch in launches)
        return self._units * max(1, _REGISTERS // (256 * threads))

    def rounds(self, launch: ir.Operation) -> tuple[int, float]:
        """Tasks of a launch, and the predicted seconds in which as many as there are blocks are done; 0: not known."""
        kernel, tasks = self._of(launch), _tasks(launch)
        tasks = self._units if tasks is None else tasks
        at_once = max(1, kernel.occupancy) * self._units
        return tasks, kernel.seconds / max(1, -(-tasks // at_once))

    def _of(self, launch: ir.Operation) -> _Kernel:
        name = kernel_of(launch)
        if name not in self._known:
            self._known[name] = _look_at(name, self._kernels[name])
        return self._known[name]

    def blocks(self, ops: Sequence[ir.Operation]) -> int:
        """Blocks that a GPU surely holds at a time, if there are tasks for them.

        Where the number of tasks is not known, there is one block on each multiprocessor. Launches beside each other
        have their tasks at the same time.

        Args:
            ops: that become one kernel.
        """
        held = self.held(launch for op in ops for launch in launches_in(op))

        def tasks(launch: ir.Operation) -> int:
            known = _tasks(launch)
            return self._units if known is None else known

        return max(1, min(held, max(tasks_at_a_time(ops, tasks))))


def visit_stretches(
    module: ir.Operation,
    units: int,
    take: Callable[[Stretch, Kernels], bool],
    leave: Callable[[ir.Operation, str], None] = lambda op, reason: None,
    tell: Callable[[Found, set[ir.Operation]], None] = lambda found, taken: None,
) -> None:
    """Show whoever decides each stretch of the host functions, from outside in.

    Args:
        module: with kernels and host functions.
        units: multiprocessors of the GPU.
        take: whether a stretch becomes a kernel; if not, what is in its loops and branches may.
        leave: told of each loop or branch with launches that stays with the host, and why it is in no stretch; "".
        tell: told of what was found in a block of which something is taken, and of what that is.
    """
    kernels = Kernels(module, units)

    def visit(op: ir.Operation) -> None:
        limits = Limits.of(op)
        for region in op.regions:
            for block in region.blocks:
                found = find_stretches(block, kernels, limits)
                taken = {each for stretch in found.stretches if take(stretch, kernels) for each in stretch.marked}
                for inner in (child.operation for child in block.operations):
                    if inner.name in CONTROL and inner not in taken:
                        leave(inner, found.reasons.get(inner, ""))
                        visit(inner)
                if taken:
                    tell(found, taken)

    for function in module.regions[0].blocks[0].operations:
        if function.operation.name == "func.func":
            visit(function.operation)


def find_stretches(block: ir.Block, kernels: Kernels, limits: Limits) -> Found:
    """Return what may become kernels of a block of the host function.

    Kernels that lose time in blocks that stay are left to the host where what it has to do then takes less: first
    those that lose whatever is beside them, then those that lose by the threads of others.

    Args:
        block: of the host function.
        kernels: of the module.
        limits: of what one may cost.
    """
    ops = [op.operation for op in block.operations]
    reasons = _with_ties(ops, {op: reason for op in ops if (reason := _obstacle(op, kernels))}, kernels)
    kept: dict[ir.Operation, str] = {}
    for beside in (False, True):
        while losers := _losers(_controlling(ops, reasons, kernels), beside, kept, kernels, limits):
            for lost in sorted(losers.values(), key=lambda found: -sum(loss.seconds for loss in found.values())):
                reasons = _weigh(ops, reasons, kept, lost, kernels, limits)
    return Found(_controlling(ops, reasons, kernels), reasons, kept)


def _weigh(
    ops: Sequence[ir.Operation],
    reasons: dict[ir.Operation, str],
    kept: dict[ir.Operation, str],
    losers: dict[ir.Operation, Loss],
    kernels: Kernels,
    limits: Limits,
) -> dict[ir.Operation, str]:
    """Leave operations that lose time to the host, with all that it must do then, or keep them; why it does what."""
    lost = {op: loss for op, loss in losers.items() if op not in reasons}
    then = _with_ties(ops, reasons | {op: loss.reason for op, loss in lost.items()}, kernels)
    spent = _host_seconds(ops, then, kernels, limits) - _host_seconds(ops, reasons, kernels, limits)
    if spent < sum(loss.seconds for loss in lost.values()):
        return then
    kept |= {op: f"{loss.reason}; the host would take {spent * 1e6:.0f} us" for op, loss in lost.items()}
    return reasons


def _host_seconds(
    ops: Iterable[ir.Operation], reasons: dict[ir.Operation, str], kernels: Kernels, limits: Limits
) -> float:
    """What the host takes to start kernels that run others, and for all that it does itself."""
    stretches = _controlling(ops, reasons, kernels)
    taken = {op for stretch in stretches for op in stretch.marked}
    left = sum(limits.host_seconds(op) for op in ops if op.name in _MARKED and op not in taken)
    return len(stretches) * limits.launch + left


def _with_ties(
    ops: Sequence[ir.Operation], reasons: dict[ir.Operation, str], kernels: Kernels
) -> dict[ir.Operation, str]:
    """All that the host runs if it runs some operations: also what takes or gives what it must know then."""
    while True:
        tied: dict[ir.Operation, str] = {}
        for stretch in _controlling(ops, reasons, kernels):
            marked = set(stretch.marked)
            tied |= {op: reason for op in stretch.marked if (reason := _ties(op, marked))}
        if not tied:
            return reasons
        reasons = reasons | tied


def _controlling(ops: Iterable[ir.Operation], reasons: dict[ir.Operation, str], kernels: Kernels) -> list[Stretch]:
    return [s for s in _split(ops, reasons) if any(kernels.controls(op) for op in s.marked)]


def _losers(
    stretches: Iterable[Stretch], beside: bool, kept: Collection[ir.Operation], kernels: Kernels, limits: Limits
) -> dict[str, dict[ir.Operation, Loss]]:
    """By the name of a kernel: operations that lose time by its launches, unless that is known already.

    Args:
        stretches: that may be kernels.
        beside: with the blocks that are held for all launches of a stretch, not those for one alone.
        kept: operations that stay.
        kernels: of the module.
        limits: of what one may cost.
    """
    found: dict[str, dict[ir.Operation, Loss]] = {}
    for stretch in stretches:
        held = kernels.held(launch for op in stretch.marked for launch in launches_in(op)) if beside else 0
        for op in stretch.marked:
            if op in kept:
                continue
            for launch in launches_in(op):
                loss = kernels.loses(launch, held or kernels.held([launch]), limits)
                if loss is not None:
                    lost = found.setdefault(kernel_of(launch), {})
                    before = lost[op].seconds if op in lost else 0.0
                    lost[op] = Loss(loss.reason, before + loss.seconds * times(launch, op))
    return found


def work_in(op: ir.Operation, names: frozenset[str]) -> Iterator[ir.Operation]:
    """An operation, if it has one of these names, and those in it."""
    return (inner for inner in _walk(op) if inner.name in names)


def launches_in(op: ir.Operation) -> Iterator[ir.Operation]:
    """An operation, if it is a launch, and those in it."""
    return work_in(op, frozenset(("tile.launch",)))


def team_blocks(op: ir.Operation) -> int:
    """Blocks that the teams of an operation, and of those in it, have together."""
    return max((sum(decisions.TEAM.read(inner)) for inner in _walk(op) if decisions.TEAM.on(inner)), default=0)


def _walk(op: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _threads(kernel: ir.Operation) -> int:
    threads = decisions.THREADS.get(kernel) or 32 * (decisions.WARPS.get(kernel) or _USUAL_WARPS)
    return threads + _LOADING if decisions.SPECIALIZED.on(kernel) else threads


def _tasks(launch: ir.Operation) -> int | None:
    rank = next(iter(launch.attributes["operandSegmentSizes"]))
    bounds = [integer_constant(launch.operands[i]) for i in range(rank)]
    return None if None in bounds else prod(bound for bound in bounds if bound is not None)


# Single operations ---------------------------------------------------------------------------------------------------


def _is_number(op: ir.Operation) -> bool:
    return op.name.startswith(("arith.", "affine.")) and not op.regions


def _obstacle(op: ir.Operation, kernels: Kernels) -> str:
    """Why an operation of the host function, with all in it, is none for a kernel; "" where it is one."""
    for inner in _walk(op):
        name = inner.name
        if name == "tile.launch":
            reason = kernels.obstacle(inner)
            if reason:
                return reason
        elif name == "memref.alloc":
            if inner == op or not _is_made_before(inner, op):
                return "a buffer in it is another one in each iteration, or its size is known only there"
        elif name == "memref.store" and inner == op:
            return "it is a number that the host writes"
        elif name not in _IN_KERNELS and not _is_number(inner):
            return f"'{name}' in it is work of the host"
    return ""


def _is_made_before(alloc: ir.Operation, outer: ir.Operation) -> bool:
    """Whether one buffer, made before the outer operation, serves all iterations: none hands it on to the next."""
    for size in alloc.operands:
        owner = size.owner
        maker = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
        if maker.name != "func.func" and _is_within(maker, outer):
            return False
    return not _is_carried(alloc)


def _is_carried(op: ir.Operation) -> bool:
    """Whether a loop carries a buffer, or a view of it."""
    for use in op.results[0].uses:
        user = use.owner.operation
        if user.name == "scf.condition" or (user.name == "scf.yield" and _parent(user).name != "scf.if"):
            return True
        if user.name == "scf.yield" or user.name in VIEWS:
            if _is_carried(_parent(user) if user.name == "scf.yield" else user):
                return True
    return False


def _parent(op: ir.Operation) -> ir.Operation:
    parent = op.parent
    assert parent is not None
    return parent.operation


def _split(ops: Iterable[ir.Operation], reasons: dict[ir.Operation, str]) -> list[Stretch]:
    """Cut a block where an operation must be the host's; buffers are made before the kernel."""
    stretches = [Stretch()]
    for op in ops:
        if op in reasons and op.name != "memref.alloc":
            stretches.append(Stretch())
        elif op.name in _MARKED:
            stretches[-1].marked.append(op)
    return stretches


# What a stretch takes and gives --------------------------------------------------------------------------------------


def _ties(op: ir.Operation, marked: set[ir.Operation]) -> str:
    """Why the host must run one of a stretch's operations: for what it takes, or for what it gives."""
    for inner in _walk(op):
        for value in inner.operands:
            if isinstance(value.type, ir.MemRefType) and not _is_known(value, op, marked):
                return "a buffer that it uses is one of several, by what the host decides"
    uses = [use.owner.operation for result in op.results for use in result.uses]
    if not uses or all(_stays(user, marked, op) for user in uses):
        return ""
    if op.name == "scf.for" and all(_is_repeated(inner) for inner in _walk(op)):
        return ""
    return "the host uses what it gives"


def _is_known(value: ir.Value, inside: ir.Operation, marked: set[ir.Operation]) -> bool:
    """Whether a buffer is a view of a whole one, or made in the stretch."""
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block):
            parent = owner.owner.operation
            return parent.name == "func.func" or _is_within(parent, inside) or _outermost(parent, marked) is not None
        made = owner.operation
        if made.name not in VIEWS:
            return made.name in _WHOLE or _outermost(made, marked) is not None or _is_within(made, inside)
        value = made.operands[0]


def _is_within(op: ir.Operation, outer: ir.Operation) -> bool:
    return _outermost(op, {outer}) is not None


def _outermost(op: ir.Operation, some: set[ir.Operation]) -> ir.Operation | None:
    """The one of some operations that an operation is, or stands in."""
    while op.name != "func.func":
        if op in some:
            return op
        parent = op.parent
        if parent is None:
            return None
        op = parent.operation
    return None


def _stays(user: ir.Operation, marked: set[ir.Operation], maker: ir.Operation) -> bool:
    """Whether who uses a number or a buffer is in the kernel, as are those who use what it makes of it."""
    if _outermost(user, marked) is not None:
        return True
    if not (_is_number(user) or user.name in VIEWS or user.name == "memref.dim"):
        return False
    return all(_stays(use.owner.operation, marked, maker) for result in user.results for use in result.uses)


def _is_repeated(op: ir.Operation) -> bool:
    """Whether the host can find out again, without the launches, which buffers a loop gives."""
    return op.name in ("scf.for", "scf.yield", "tile.launch") or op.name in VIEWS or _is_number(op)
