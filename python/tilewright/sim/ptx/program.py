# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel made ready to run: every instruction decoded, registers in rows, variables with addresses."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.sim.ptx import ops  # noqa: F401 - importing it registers the opcodes
from tilewright.sim.ptx.syntax import registry
from tilewright.sim.ptx.syntax.decoder import Decoder
from tilewright.sim.ptx.syntax.definedness import spreading
from tilewright.sim.ptx.syntax.flow import CONTROL, Flow, leaves, targets
from tilewright.sim.ptx.syntax.tree import Instruction, Kernel, Register, Symbol, Variable

if TYPE_CHECKING:
    from tilewright.sim.ptx.memory.global_memory import GlobalMemory
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.registry import Run


@dataclass
class Op:
    """A decoded instruction.

    Attributes:
        ins: the instruction.
        run: its run function; branches and exits, which the scheduler does itself, have one that is never called.
        control: "bra", "brx", "exit", or None.
        sync: how many lanes must run it in step.
        spin: whether waiting loops are made of it.
        members: reader of the mask of lanes that must run it in step, instead of `sync`.
        table: where a branch goes. index: the register that chooses, for `brx.idx`.
    """

    ins: Instruction
    run: Run
    control: str | None
    sync: int
    spin: bool
    table: tuple[int, ...] = ()
    index: int = 0
    members: Callable[[Step], Any] | None = None

    def __post_init__(self) -> None:
        """See whether any lanes run it as they come, all of them."""
        self.plain = self.members is None and self.sync == 1 and self.ins.guard is None


class Program:
    """What a launch needs of a kernel.

    Attributes:
        ops: decoded code, with an exit at the end.
        row_of: row of each register; rows: type of each row (registers that are never alive together share one).
        tracked: registers that some path reads before it writes them; they are watched at run time.
        shared: offset of each variable in shared memory.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        end = kernel.code[-1].line if kernel.code else 0
        code = [*kernel.code, Instruction("exit", ["exit"], [], None, end, None, "exit")]
        flow = Flow(kernel, code)
        self.tracked = flow.tracked
        self.row_of, self.rows = flow.rows()
        self.ops = [_decode(kernel, ins, flow.tracked) for ins in code]
        self.shared: dict[str, int] = {}
        self.local: dict[str, int] = {}
        self.dynamic: list[Variable] = []
        self._layout()
        for instrument in registry.INSTRUMENTS:
            instrument(self)
        self._addresses: weakref.WeakKeyDictionary[GlobalMemory, dict[str, int]] = weakref.WeakKeyDictionary()

    def _layout(self) -> None:
        module = self.kernel.module
        module_variables = list(module.variables.values()) if module else []
        used = {name for ins in self.kernel.code for name in _symbols(ins)}
        shared = [v for v in module_variables if v.space == "shared" and v.name in used]
        shared += [v for v in self.kernel.variables.values() if v.space == "shared"]
        self.shared_static = _place([v for v in shared if v.size], self.shared)
        self.dynamic = [v for v in shared if not v.size]
        align = max([v.align for v in self.dynamic], default=1)
        if self.dynamic:
            self.shared_static = -(-self.shared_static // align) * align
        for variable in self.dynamic:
            self.shared[variable.name] = self.shared_static
        self.local_bytes = _place([v for v in self.kernel.variables.values() if v.space == "local"], self.local)

    def shared_used(self, dynamic: int) -> int:
        """Bytes of shared memory of a CTA with so much dynamic shared memory."""
        return self.shared_static + dynamic

    def addresses(self, memory: GlobalMemory) -> dict[str, int]:
        """Addresses of all symbols but shared ones; variables of the module are allocated at the first launch."""
        found = self._addresses.get(memory)
        if found is None:
            found = {p.name: p.offset for p in self.kernel.parameters}
            found.update(self.local)
            module = self.kernel.module
            if module:
                found.update(module_addresses(module, memory))
            self._addresses[memory] = found
        return found


def module_addresses(module, memory: GlobalMemory) -> dict[str, int]:
    """Place a module's .global and .const variables in a device's memory, once."""
    known = memory.modules
    if memory.holds(module):
        return known[id(module)][1]
    out = {}
    variables = [v for v in module.variables.values() if v.space != "shared"]
    for variable in variables:
        address = memory.alloc(variable.size, f"variable {variable.name}", defined=True)
        memory.range(address, 0)[0].constant = variable.space == "const"
        out[variable.name] = address
    for variable in variables:
        data = bytearray(variable.data or bytes(variable.size))
        for offset, name, extra in variable.references:
            data[offset : offset + 8] = (out[name] + extra).to_bytes(8, "little")
        if variable.size:
            memory.write(out[variable.name], data)
    known[id(module)] = (module, out)
    return out


def _place(variables: list[Variable], offsets: dict[str, int]) -> int:
    used = 0
    for variable in variables:
        used = -(-used // variable.align) * variable.align
        offsets[variable.name] = used
        used += variable.size
    return used


def _symbols(ins: Instruction) -> list[str]:
    return [leaf.name for leaf in leaves(ins.args) if isinstance(leaf, Symbol)]


def _decode(kernel: Kernel, ins: Instruction, tracked: frozenset[int]) -> Op:
    control = CONTROL.get(ins.parts[0])
    if control:
        index = ins.args[0].index if control == "brx" and isinstance(ins.args[0], Register) else 0
        return Op(ins, lambda step: None, control, 1, False, targets(ins), index)
    found = registry.entry(ins)
    run = found.decode(ins, Decoder(kernel, ins, frozenset() if found.pure else tracked))
    if found.pure and tracked:
        run = spreading(ins, run, tracked)
    sync, spin = getattr(run, "sync", found.sync), getattr(run, "spin", found.spin)
    return Op(ins, run, None, sync, spin, members=getattr(run, "members", None))
