# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the ladder into a pack::

ladder             the command
ladder.json        programs and probes of the rungs, what ptxas says of each kernel, why one could not be built
rungs/NAME/        compiled programs: PTX, cubins, host program, manifest
rungs/NAME.ptx     probes
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import models
import tilewright
from bench.gpu.far.ladder.setup import OperandSetup, WgmmaSetup, to_json
from bench.gpu.held import held_to, of_units
from bench.gpu.kernels import BUILDERS
from bench.gpu.ladder import descriptors, graphs, watched
from bench.gpu.ladder.cases import ENTRIES, Entry
from bench.gpu.ladder.echo import echo
from bench.gpu.ladder.products import Product
from bench.gpu.ladder.ring import ring
from bench.gpu.portable import portable
from tilewright.core.errors import InternalError, TilewrightError
from tilewright.kernels import read_kernel
from tilewright.kernels.launch import wrapped
from tilewright.targets.cuda import ptxas

FOLDER = "rungs"
#: Where B's slot begins in a probe's shared memory.
_RIGHT = 16384
_SWIZZLES = {0: 0, 1: 128, 2: 64, 3: 32}
_SHARED = re.compile(r"(\d+) bytes smem")


def build(folder: Path, arch: str, small: bool, names: Sequence[str] = ()) -> dict[str, Any]:
    """Compile the ladder into a pack and return what ladder.json holds.

    Args:
        folder: of the pack.
        arch: of the GPU, e.g. ``sm_90a``.
        small: the sizes of the emulator.
        names: of rungs; all where none is given.
    """
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    hopper = arch.startswith("sm_90")
    found: dict[str, Any] = {"version": 1, "arch": arch, "small": small, "programs": [], "probes": []}
    for entry in ENTRIES:
        if (hopper or not entry.hopper) and (not names or entry.rung in names):
            found["programs"].append(_program(folder, entry, arch, small))
    for name, rung, ptx in _probes() if hopper else ():
        if not names or rung in names:
            found["probes"].append(_probe(folder, name, rung, ptx, arch))
    for one in [one for one in found["programs"] if one["rung"].startswith("wgmma_") and one["failure"] is None]:
        found["probes"].append(_multiplication(folder, one, arch))
    (folder / "ladder.json").write_text(json.dumps(found))
    return found


def _probes() -> list[tuple[str, str, str]]:
    """Name, rung and PTX of the probes that take nothing from a compiled kernel."""
    boxes = [(f"box{rank}", "boxes", watched.box(rank)) for rank in range(1, 6)]
    return [("echo", "launches", echo()), *boxes, ("ring", "ring", ring())]


def _program(folder: Path, entry: Entry, arch: str, small: bool) -> dict[str, Any]:
    place = f"{FOLDER}/{entry.name}"
    product = entry.product(small)
    known = {
        "name": entry.name,
        "rung": entry.rung,
        "folder": place,
        "failure": None,
        "reference": entry.reference,
        "error": entry.error,
        "inputs": entry.inputs,
        "units": entry.units if small else 0,
        "arguments": _arguments(product, entry),
        "constants": _constants(entry, small),
    }
    try:
        model = _compiled(entry, product, arch, small)
        code = _code(model)
        _check(entry, code)
        model.save(folder / place)
        (folder / place / "report.json.gz").unlink(missing_ok=True)
        if entry.accuracy == "fast" and code == _code(
            _compiled(replace(entry, accuracy="exact"), product, arch, small)
        ):
            known["absent"] = "accuracy='fast' makes the same code as 'exact': there is no fast form of it yet"
        known["kernels"] = {name: _assembled(text.encode(), arch) for name, text in model.ptx().items()}
    except Exception as error:
        if not isinstance(error, TilewrightError):
            traceback.print_exc()
        known |= {"folder": None, "failure": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    print(f"ladder: {entry.name:20} {known['failure'] or 'ok'}", file=sys.stderr, flush=True)
    return known


def _compiled(entry: Entry, product: Product | None, arch: str, small: bool) -> Any:
    with held_to(entry.shape) if entry.shape else nullcontext():
        return tilewright.compile(
            _source(entry, product, small),
            target=f"cuda:{arch}",
            emulate=True,
            cubin=ptxas.find() is not None,
            accuracy="fast" if entry.accuracy == "fast" else "exact",
            pipeline=of_units(arch, entry.units if small else 0) if product is None else None,
        )


def _code(model: Any) -> str:
    return "".join(model.ptx().values())


def _source(entry: Entry, product: Product | None, small: bool) -> Any:
    """What `tilewright.compile` takes: a module's text, or a graph whose weights are inputs."""
    if product is not None:
        return wrapped(read_kernel(product.text), product.shapes, product.grid)
    sizes, name = entry.built(small), str(entry.source)
    if name in graphs.BUILDERS:
        return graphs.BUILDERS[name](**sizes)  # type: ignore[arg-type]
    model = BUILDERS[name](**sizes) if name in BUILDERS else models.build(name, **sizes)  # type: ignore[arg-type]
    return portable(model, {}, False).model


def _constants(entry: Entry, small: bool) -> list[tuple[str, list[Any]]]:
    """Type and shape of the model's constants that the reference takes behind the inputs."""
    sizes = entry.built(small)
    return [("f8e4m3fn", [sizes["k"], sizes["n"]])] if entry.source == "float8_product" else []


def _arguments(product: Product | None, entry: Entry) -> dict[str, Any]:
    """Of the reference on the other side."""
    if product is not None:
        return {"a_by_columns": product.a_by_columns, "b_by_rows": product.b_by_rows}
    if entry.reference == "attention":
        return {"causal": bool(entry.sizes.get("causal", False))}
    if entry.reference != "matmul":
        return {}
    return {"a_by_columns": False, "b_by_rows": True, "scale": 0.25 if entry.source == "float8_product" else 1.0}


def _check(entry: Entry, code: str) -> None:
    """Raise InternalError where the plan made another kind of kernel than the rung is to prove."""
    missing = [mark for mark in entry.marks if mark not in code]
    extra = [mark for mark in entry.lacks if mark in code]
    if missing or extra:
        raise InternalError(
            f"the PTX of {entry.name} has no {', '.join(missing) or '-'} and has {', '.join(extra) or '-'}: the "
            "compiler makes another kind of kernel now; change its sizes in tools/bench/gpu/ladder/cases.py"
        )


def _multiplication(folder: Path, program: dict[str, Any], arch: str) -> dict[str, Any]:
    """The probe that multiplies once with the descriptors of a compiled product."""
    entry = next(entry for entry in ENTRIES if entry.name == program["name"])
    product = entry.product(False)
    assert product is not None
    text = "".join(file.read_text() for file in (folder / program["folder"] / "code").glob("*.ptx"))
    n, dtype, left, right = descriptors.matrix_operands(text)
    steps = product.bk // 16
    setup = WgmmaSetup(
        n, dtype, _operand(left, 0) if left else None, _operand(right, _RIGHT), steps=steps,
        shared_bytes=watched.SHARED_BYTES,
    )  # fmt: skip
    text = watched.multiply(n, dtype, left is None or left.k_major, right.k_major, left is None, steps)
    probe = _probe(folder, f"{program['name']}_probe", program["rung"], text, arch)
    return {**probe, "setup": to_json(setup)}


def _operand(found: descriptors.Operand, address: int) -> OperandSetup:
    leading, stride = ((found.bits >> shift & 0x3FFF) << 4 for shift in (16, 32))
    base, swizzle = found.bits >> 49 & 7, _SWIZZLES[found.bits >> 62]
    return OperandSetup(address, leading, stride, base, swizzle, found.k_major, found.advance)


def _probe(folder: Path, name: str, rung: str, ptx: str, arch: str) -> dict[str, Any]:
    place = f"{FOLDER}/{name}.ptx"
    (folder / place).write_text(ptx)
    return {"name": name, "rung": rung, "ptx": place, "kernel": _assembled(ptx.encode(), arch)}


def _assembled(ptx: bytes, arch: str) -> dict[str, int]:
    """What ptxas says of a kernel; nothing where there is no ptxas.

    Raises:
        InternalError: ptxas refuses it.
    """
    program = ptxas.find()
    if program is None:
        return {}
    with tempfile.TemporaryDirectory(prefix="tilewright-ladder-") as made:
        source, target = Path(made) / "kernel.ptx", Path(made) / "kernel.cubin"
        source.write_bytes(ptx)
        command = [program, f"-arch={arch}", "-v", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise InternalError(f"ptxas refuses a kernel of the ladder: {done.stderr.strip()[:500]}")
        said = done.stdout + done.stderr
        shared = _SHARED.search(said)
        return {**ptxas.resources(said), "shared_bytes": int(shared[1]) if shared else 0}
