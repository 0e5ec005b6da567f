# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every target writes: weights, manifest, report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import InternalError, UserError
from tilewright.core.options import PHASES
from tilewright.core.version import VERSION
from tilewright.ir import decisions
from tilewright.ir.units import Unit, symbol_of
from tilewright.runtime.manifest import KernelInfo, Manifest, TensorSpec

if TYPE_CHECKING:
    from tilewright.compiler.driver import Compilation
    from tilewright.mlir import ir


def dump_units(folder: Path | None, units: Sequence[Unit]) -> None:
    """Write what each compile worker gets."""
    if folder is None:
        return
    inner = folder / f"{PHASES.index('emit')}-emit"
    inner.mkdir(parents=True, exist_ok=True)
    for unit in units:
        (inner / f"{unit.symbol}.mlir").write_bytes(unit.module)


def top_symbols(module: ir.Module, name: str) -> list[str]:
    """Return the symbols of the operations of that name at the top of a module, in order."""
    return [symbol_of(op) for op in module.body.operations if op.operation.name == name]


def weight(work: Compilation, name: str) -> np.ndarray:
    """The bytes of a weight, of the model's own or one that @init made."""
    if name not in work.weights:
        if work.options.start_from is not None:
            raise UserError(
                f"{work.source.name} has no elements of the weight {name}: they stand in the file that IR names "
                f"({decisions.WEIGHTS}) where dump_ir= (--dump-ir) wrote it; or give weights="
            )
        raise InternalError(f"the code needs the weight {name}, which neither the model nor @init holds")
    return work.weights[name]


def manifest_of(
    work: Compilation, symbols: Sequence[str], shared: dict[str, str], weights: dict[str, np.ndarray]
) -> Manifest:
    """The manifest, but for what depends on the kind of target.

    Args:
        work: the compilation.
        symbols: of the kernels' code.
        shared: the symbol whose code each kernel has.
        weights: in order.
    """
    assert work.imported is not None
    specs = tuple(TensorSpec(name, from_numpy(a.dtype), a.shape) for name, a in weights.items())
    details = work.statistics.get("kernels", {})
    kernels = []
    for symbol in symbols:
        merged = [details[name] for name, code in shared.items() if code == symbol and name in details]
        launches = sum(d["launches"] for d in merged) or 1
        info = merged[0] if merged else {}
        more = {key: value for key, value in info.items() if key not in ("launches", "tasks")}
        scratch = work.statistics.get("scratch", {}).get(symbol, 0)
        kernels.append(KernelInfo(symbol, symbol, launches, info.get("tasks"), scratch, more))
    return Manifest(
        inputs=work.imported.inputs,
        outputs=work.imported.outputs,
        weights=specs,
        kernels=tuple(kernels),
        target=work.target.name,
        cpu=work.target.cpu,
        producer=f"tilewright {VERSION}",
        compile={
            "model": work.source.name,
            "seconds": {p["name"]: round(p["seconds"], 4) for p in work.phases},
            "ranges": work.imported.ranges,
            "dims": work.imported.dims,
            **({"boundary": work.imported.boundary} if work.imported.boundary else {}),
            **({"form": work.source.form} if work.source.form else {}),
            **_rounding(work),
        },
    )


def _rounding(work: Compilation) -> dict[str, Any]:
    """What is known by now of the precision and accuracy that were asked for: not yet the error."""
    found: dict[str, Any] = {}
    if work.narrowed is not None:
        found["precision"] = {"name": work.options.precision, "products": work.narrowed}
    if work.options.accuracy != "exact":
        found["accuracy"] = {"name": work.options.accuracy}
    return found


def report(work: Compilation) -> dict[str, Any]:
    """What the artifact keeps for explain()."""
    device = work.target.device
    return {
        "phases": work.phases,
        "remarks": work.remarks,
        "open_loops": work.statistics.get("open_loops", []),
        "groups": work.statistics.get("groups", []),
        "sparsity": work.statistics.get("sparsity", []),
        "kernel_text": work.statistics.get("kernel_text", {}),
        "device": device.to_dict() if device is not None else {},
        "target": {"name": work.target.name, "cpu": work.target.cpu, "features": work.target.features},
    }
