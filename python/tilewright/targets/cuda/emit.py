# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models for NVIDIA GPUs: the host function becomes a host program, each kernel a PTX module."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.core.errors import InternalError, UnsupportedError
from tilewright.core.options import PHASES
from tilewright.ir import decisions
from tilewright.ir.generics import nested
from tilewright.ir.units import Unit, split_kernels, symbol_of, twins
from tilewright.runtime.artifact import write_weights
from tilewright.runtime.gpu import gpu_code
from tilewright.targets import emitting
from tilewright.targets.cuda import ptxas
from tilewright.targets.cuda.host_program import HostProgram, export
from tilewright.targets.cuda.occupancy import remark_on, resident_ctas
from tilewright.targets.emission import unit_codes

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation
    from tilewright.mlir import ir

#: The host function after phase `schedule`.
HOST = "main"


@dataclasses.dataclass(frozen=True)
class Host:
    """The host program, and the types of each kernel's arguments as the kernel declares them."""

    exported: HostProgram
    arguments: dict[str, tuple[str, ...]]
    ranks: dict[str, int]


def export_host(work: Compilation) -> None:
    """Keep the host program of a scheduled module: phase `lower` takes the host function away."""
    assert work.imported is not None
    kernels = {symbol_of(op): op for op in nested(work.module.operation) if op.name == "tile.kernel"}
    work.kept_for_emit = Host(
        export(work.module, HOST, work.target.cpu),
        {name: _argument_types(op) for name, op in kernels.items()},
        {name: op.attributes["grid_rank"].value for name, op in kernels.items()},
    )


def host_as_text(work: Compilation) -> str:
    """The kept host program as JSON; "" before there is one. Its constants become weights."""
    host = work.kept_for_emit
    if host is None:
        return ""
    program = host.exported
    work.weights |= program.constants
    values = {**dataclasses.asdict(host), "exported": program.program, "kernels": program.kernels}
    return json.dumps({**values, "constants": list(program.constants)})


def keep_host(work: Compilation, text: str) -> None:
    """Keep the host program that :func:`host_as_text` told."""
    said = json.loads(text)
    constants = {name: work.weights[name] for name in said["constants"]}
    arguments = {name: tuple(types) for name, types in said["arguments"].items()}
    program = HostProgram(said["exported"], constants, tuple(said["kernels"]))
    work.kept_for_emit = Host(program, arguments, said["ranks"])


def emit(work: Compilation, folder: Path) -> None:
    """Make PTX of the lowered kernels and write the artifact.

    Raises:
        InternalError: LLVM or ptxas refuses a kernel, or a hot one spills.
    """
    with work.phase("emit") as entry, ThreadPoolExecutor(1) as beside:
        device = _device_module(work.module)
        units, shared = split_kernels(device) if device is not None else ([], {})
        emitting.dump_units(work.options.dump_ir, units)
        program = _program(work.kept_for_emit, device, shared)
        weights = {name: _weight(work, name) for name in _weight_names(program)}
        written = beside.submit(write_weights, folder, weights)  # while workers and ptxas make code
        target = work.target
        assert target.device is not None
        codes, found = _codes(work, units, _staying(device, shared, target.device.units.count))
        codes |= found.codes
        _dump_codes(work, found.codes)
        entry["passes"].append(["(ptxas: assemble each kernel)", found.seconds])
        work.remarks += [{"phase": "emit", **remark} for remark in found.remarks]
        for kernel in program["kernels"].values():
            if kernel["entry"] in found.cubins:
                kernel["cubin"] = f"{kernel['entry']}.cubin"
        written.result()
    manifest = emitting.manifest_of(work, [unit.symbol for unit in units], shared, weights)
    launched = {entry["entry"]: entry for entry in program["kernels"].values()}
    kernels = tuple(
        _with_resources(kernel, launched.get(kernel.symbol), found.resources.get(kernel.symbol, {}), work)
        for kernel in manifest.kernels
    )
    manifest.compile["units"] = target.device.units.count
    manifest = dataclasses.replace(manifest, kernels=kernels, entry="", arena_bytes=program["arena_bytes"])
    modules = {f"{symbol}.ptx": code for symbol, code in codes.items()}
    modules |= {f"{symbol}.cubin": code for symbol, code in found.cubins.items()}
    gpu_code.write(folder, manifest, program, modules, {}, emitting.report(work))


def _codes(work: Compilation, units: Sequence[Unit], staying: Mapping[str, int]) -> tuple[dict[str, bytes], Any]:
    """PTX of each kernel, and what ptxas says: each is assembled while LLVM makes that of others.

    Args:
        work: the compilation.
        units: the kernels.
        staying: CTAs on a multiprocessor of kernels whose blocks stay.
    """
    target = work.target

    def roomy(symbol: str, code: bytes) -> bytes:
        return ptxas.with_room(code, staying[symbol]) if symbol in staying else code

    firsts = twins(units)
    made = [unit for unit in units if firsts[unit.symbol] == unit.symbol]
    with ptxas.Check(target.cpu, len(made), work.options.cubin) as checking:
        codes = unit_codes(
            made,
            (target.cpu, target.features),
            work.options.opt_level,
            "ptx",
            lambda symbol, code: checking.add(symbol, roomy(symbol, code)),
        )
        codes = {symbol: roomy(symbol, ptxas.renamed(codes[first], first, symbol)) for symbol, first in firsts.items()}
        for symbol, first in firsts.items():
            if symbol != first:
                checking.add(symbol, codes[symbol])
        _dump_codes(work, codes)
        _check_calls(codes)
        return codes, checking.result(codes)


def _with_resources(kernel: Any, launched: Any, resources: Mapping[str, Any], work: Compilation) -> Any:
    """A kernel with what ptxas says of it, and a remark where that is not what its plan counted on."""
    details = {**kernel.details, **resources}
    if launched is not None and work.target.device is not None:
        held = resident_ctas(work.target.device, launched, resources)
        details |= {} if held is None else {"resident_ctas": held}
        text = remark_on(kernel.symbol, details.get("plan", {}), held, launched, resources.get("registers", 0))
        if text:
            work.remarks.append({"phase": "emit", "severity": "remark", "message": text, "location": kernel.symbol})
    return dataclasses.replace(kernel, details=details)


def _argument_types(kernel: ir.Operation) -> tuple[str, ...]:
    from tilewright.mlir import ir

    return tuple(str(kind) for kind in ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).inputs)


def _device_module(module: ir.Module) -> ir.Operation | None:
    """The kernels; None where a model has none (it returns its weights, or parts of its inputs)."""
    return next((op for op in nested(module.operation) if op.name == "gpu.module"), None)


def _dump_codes(work: Compilation, codes: Mapping[str, bytes]) -> None:
    if work.options.dump_ir is None:
        return
    for symbol, code in codes.items():
        (work.options.dump_ir / f"{PHASES.index('emit')}-emit" / f"{symbol}.ptx").write_bytes(code)


def _check_calls(codes: Mapping[str, bytes]) -> None:
    """Check that no kernel calls a library: none is in an artifact."""
    for symbol, code in codes.items():
        found = re.search(rb"\b__nv_\w+", code)
        if found is not None:
            raise UnsupportedError(
                f"kernel '{symbol}' calls {found[0].decode()} of NVIDIA's libdevice, for an operation that has no "
                "expansion into instructions on GPUs",
                location=symbol,
            )


# The program ---------------------------------------------------------------------------------------------------------


def _program(host: Host, device: ir.Operation | None, shared: Mapping[str, str]) -> dict[str, Any]:
    functions = {symbol_of(op): op for op in nested(device)} if device is not None else {}
    kernels = {}
    for name in host.exported.kernels:
        symbol = shared[name]
        kernels[name] = _kernel(symbol, functions[name], host.arguments[name], host.ranks[name])
    return {**host.exported.program, "kernels": kernels}


def _kernel(symbol: str, function: ir.Operation, arguments: Sequence[str], rank: int) -> dict[str, Any]:
    """How a kernel is launched, from the attributes that its lowering left."""
    abi = {name: plain(function.attributes[name]) for name in _abi_names(function)}
    if decisions.PARAMS not in abi or decisions.THREADS not in abi:
        raise InternalError(f"kernel '{symbol}' was lowered without tile.params and tile.threads", ir=str(function))
    params = []
    for param in abi[decisions.PARAMS]:
        kind = {"type": arguments[param["arg"]]} if param["kind"] == "scalar" else {}
        params.append({**param, **kind})
    return {
        "module": f"{symbol}.ptx",
        "entry": symbol,
        "threads": abi[decisions.THREADS],
        "shared_bytes": abi.get(decisions.SHARED_BYTES, 0),
        "cluster": abi.get(decisions.CLUSTER),
        "persistent": abi.get(decisions.PERSISTENT),
        "rounded": abi.get(decisions.ROUNDED),
        "waits": bool(abi.get(decisions.WAITS)),
        "blocks": abi.get(decisions.BLOCKS),
        "rank": rank,
        "params": params,
    }


_ABI = (
    decisions.PARAMS,
    decisions.THREADS,
    decisions.SHARED_BYTES,
    decisions.CLUSTER,
    decisions.PERSISTENT,
    decisions.ROUNDED,
    decisions.WAITS,
    decisions.BLOCKS,
)


def _abi_names(function: ir.Operation) -> list[str]:
    return [name for name in _ABI if name.on(function)]


def plain(attribute: ir.Attribute) -> Any:
    """Return an attribute of numbers, strings, arrays and dictionaries as Python values."""
    from tilewright.mlir import ir

    if isinstance(attribute, ir.UnitAttr):
        return True
    if isinstance(attribute, ir.DictAttr):
        return {attribute[i].name: plain(attribute[i].attr) for i in range(len(attribute))}
    if isinstance(attribute, ir.ArrayAttr):
        return [plain(part) for part in attribute]
    if isinstance(attribute, ir.DenseI64ArrayAttr | ir.DenseI32ArrayAttr):
        return list(attribute)
    if isinstance(attribute, ir.StringAttr | ir.BoolAttr | ir.IntegerAttr):
        return attribute.value
    raise InternalError(f"the attribute {attribute} of a kernel is none that a launch can read")


def _staying(device: ir.Operation | None, shared: Mapping[str, str], multiprocessors: int) -> dict[str, int]:
    """CTAs on a multiprocessor of kernels whose blocks stay until all is done: there are no more of them to wait."""
    operations = nested(device) if device is not None else ()
    held = {symbol_of(op): op for op in operations if decisions.BLOCKS.on(op)}
    ctas: dict[str, int] = {}
    for name, op in held.items():
        symbol = shared[name]
        ctas[symbol] = max(ctas.get(symbol, 1), ceil(decisions.BLOCKS.read(op) / multiprocessors))
    return ctas


def _weight_names(program: Mapping[str, Any]) -> list[str]:
    return [argument["name"] for argument in program["arguments"] if argument["kind"] == "weight"]


def _weight(work: Compilation, name: str) -> Any:
    constants = work.kept_for_emit.exported.constants
    return constants[name] if name in constants else emitting.weight(work, name)
