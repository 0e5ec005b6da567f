# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Run the edits: `python -m bench.edited` from tools/, or tools/bench/run edited."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import records
from bench.edited.edits import CPU, EDITS, GPU, MESH, Edit

RESULTS = Path(__file__).resolve().parents[1] / "results"
_ROWS, _DEPTH, _WIDE = 64, 256, 512
_TURNS = 200


def model() -> Any:
    """An MLP with a softmax: two products, 64 x 256 x 512 and 64 x 512 x 256."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    shapes = {"w": (_DEPTH, _WIDE), "b": (_WIDE,), "v": (_WIDE, _DEPTH)}
    scale = _DEPTH**-0.5
    weights = [
        numpy_helper.from_array(rng.standard_normal(s, np.float32) * np.float32(scale), n) for n, s in shapes.items()
    ]
    steps = (
        ("MatMul", "x w", "a"),
        ("Add", "a b", "c"),
        ("Relu", "c", "d"),
        ("MatMul", "d v", "e"),
        ("Softmax", "e", "y"),
    )
    nodes = [helper.make_node(kind, inputs.split(), [output]) for kind, inputs, output in steps]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [_ROWS, _DEPTH]) for name in "xy"]
    graph = helper.make_graph(nodes, "mlp", values[:1], values[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


class Base:
    """The model as it is for a target, and its IR behind each phase."""

    def __init__(self, target: str, folder: Path) -> None:
        import tilewright as tw

        self.target, self.folder = target, folder
        self.model = tw.compile(model(), target, dump_ir=folder, threads=1, **_options(target))
        self.input = np.random.default_rng(1).standard_normal((_ROWS, _DEPTH), dtype=np.float32)
        self.wanted = self.model(self.input)["y"]
        self.time = cost(self.model, self.input, target)

    def ir(self, phase: str) -> Path:
        """The file of a phase."""
        return next(self.folder.glob(f"?-{phase}.mlir"))


def _options(target: str) -> dict[str, Any]:
    return {"emulate": True} if target == GPU else {}


def cost(made: Any, given: np.ndarray, target: str) -> float:
    """What a call costs: cycles of a mesh, instructions of warps on an emulated GPU; 0 for a CPU, which has a clock."""
    if target == MESH:
        return float(made._manifest.compile["mesh"]["cycles"]["calibrated"])
    if target == GPU:
        return float(instructions(made, given))
    return 0.0


def instructions(made: Any, given: np.ndarray) -> int:
    """Instructions that warps issue in a call, counted by the emulator."""
    import tilewright as tw
    from tilewright.sim.ptx.trace import Trace

    with tempfile.TemporaryDirectory() as place:
        trace = Trace()
        tw.load(made.save(Path(place) / "model.tw"), emulate={"trace": trace})(given)
    return sum(launch.total("warps") for launch in trace.launches)


def ratio(one: Any, other: Any, given: np.ndarray) -> float:
    """Time of `one` over that of `other`: the median over pairs of neighbouring calls, who comes first in turn."""
    ratios = []
    for turn in range(_TURNS):
        times = {}
        for each in (one, other) if turn % 2 else (other, one):
            start = time.perf_counter()
            each(given)
            times[each] = time.perf_counter() - start
        ratios.append(times[one] / times[other])
    return median(ratios)


def code(made: Any) -> tuple[str, int]:
    """A digest of the code of a model, and its bytes."""
    files = sorted(path for path in Path(made._artifact.path).rglob("*") if path.suffix in (".so", ".ptx", ".mlirbc"))
    data = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(data).hexdigest(), len(data)


def run(edit: Edit, base: Base, folder: Path) -> dict[str, Any]:
    """The row of one edit."""
    import tilewright as tw

    row: dict[str, Any] = {"target": edit.target, "phase": edit.phase, "edit": edit.what}
    source = base.ir(edit.phase)
    path = source.with_name(f"edited-{source.name}")
    path.write_text(edit.applied(source.read_text()))
    start = time.perf_counter()
    try:
        made = tw.compile(path, edit.target, start_from=edit.phase, threads=1, **_options(edit.target))
    except tw.TilewrightError as error:
        return row | {"refused": " ".join(str(error).split())[:300]}
    row["compile_s"] = round(time.perf_counter() - start, 2)
    result = made(base.input)["y"]
    row["error"] = float(f"{np.abs(result - base.wanted).max():.2g}")
    row["kernels"] = [len(base.model.kernels), len(made.kernels)]
    before, after = code(base.model), code(made)
    row["code_bytes"], row["code_changed"] = [before[1], after[1]], before[0] != after[0]
    if edit.target == CPU:
        row["time"] = round(ratio(made, base.model, base.input), 3)
    else:
        row["time"] = round(cost(made, base.input, edit.target) / base.time, 3)
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all edits, print and store a row for each."""
    from tilewright.runtime.cpu.cpu_features import cpuinfo

    parser = argparse.ArgumentParser(prog="bench.edited", description=__doc__)
    parser.add_argument("--json", type=Path, default=RESULTS / f"edited-{date.today()}.json")
    parser.add_argument("--target", action="append", choices=(CPU, GPU, MESH), help="only this one; repeatable")
    options = parser.parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for target in options.target or (CPU, GPU, MESH):
            base = Base(target, Path(place) / target.replace(":", "-"))
            for edit in (edit for edit in EDITS if edit.target == target):
                rows.append(run(edit, base, Path(place)))
                print(json.dumps(rows[-1]), flush=True)
    records.write(
        options.json,
        {"edited": True, "date": str(date.today()), "cpu": cpuinfo().get("model name", "unknown"), "rows": rows},
    )
    return sum("refused" in row for row in rows)
