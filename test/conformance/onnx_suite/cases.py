# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX's own backend tests as files: a model, the inputs and the outputs that it must give.

The onnx package makes most of them from Python when it is asked to; they are written once per version of onnx, to
`build/conformance/onnx-VERSION/SUITE/NAME/`: `model.onnx` and `data.pickle` (see :class:`Data`).
"""

from __future__ import annotations

import os
import pickle
import shutil
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SUITES = ("node", "pytorch-operator", "pytorch-converted", "simple", "light")
_FORMAT = "2"  # of the written files


@dataclass(frozen=True)
class Case:
    """One test: its suite, its name and the folder with its files."""

    suite: str
    name: str
    folder: Path

    @property
    def key(self) -> str:
        """How lists and results call it."""
        return f"{self.suite}/{self.name}"


@dataclass(frozen=True)
class Data:
    """Inputs (in the graph's order; None: absent) and expected outputs of each run, with the tolerances."""

    sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float


def load(suites: Iterable[str]) -> list[Case]:
    """All cases of some suites, written to disk where they are not yet."""
    found = []
    for suite in suites:
        folder = _folder(suite)
        found += [Case(suite, path.name, path) for path in sorted(folder.iterdir()) if path.is_dir()]
    return found


def of_operators(found: Sequence[Case], which: int) -> list[Case]:
    """One test of each operator: number `which`, counted round, of those with the fewest nodes."""
    import onnx

    users: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for number, case in enumerate(found):
        nodes = onnx.load(case.folder / "model.onnx", load_external_data=False).graph.node
        for operator in {(node.domain, node.op_type) for node in nodes}:
            users.setdefault(operator, []).append((len(nodes), number))
    chosen = set()
    for tests in users.values():
        least = min(tests)[0]
        few = [number for nodes, number in tests if nodes == least]
        chosen.add(few[which % len(few)])
    return [found[number] for number in sorted(chosen)]


def _folder(suite: str) -> Path:
    import onnx

    folder = ROOT / "build" / "conformance" / f"onnx-{onnx.__version__}-{_FORMAT}" / suite
    if not folder.is_dir():
        temporary = folder.with_name(f"{suite}.{os.getpid()}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, model, data in _light() if suite == "light" else _generated(suite):
                (temporary / name).mkdir(parents=True)
                (temporary / name / "model.onnx").write_bytes(model)
                (temporary / name / "data.pickle").write_bytes(pickle.dumps(data.__dict__))
        try:
            temporary.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(temporary)
    return folder


def _generated(suite: str) -> Iterator[tuple[str, bytes, Data]]:
    from onnx.backend.test.loader import load_model_tests

    for test in load_model_tests(kind=suite):
        if test.model is not None:
            assert test.data_sets is not None
            sets = [([_array(x) for x in inputs], [_array(x) for x in outputs]) for inputs, outputs in test.data_sets]
            model = test.model.SerializeToString()
        else:
            folder = Path(str(test.model_dir))
            model = (folder / "model.onnx").read_bytes()
            sets = [_stored(path, model) for path in sorted(folder.glob("test_data_set_*"))]
        yield test.name, model, Data(sets, test.rtol, test.atol)


def _light() -> Iterator[tuple[str, bytes, Data]]:
    """Real architectures with made-up weights; the inputs are ONNX's own (arange(n) / n)."""
    import numpy as np
    import onnx
    from onnx.backend.test.loader import DATA_DIR

    for path in sorted(Path(DATA_DIR, "light").glob("*.onnx")):
        model = onnx.load(path)
        known = {t.name for t in model.graph.initializer}
        inputs = []
        for info in model.graph.input:
            if info.name not in known:
                shape = [max(1, d.dim_value) for d in info.type.tensor_type.shape.dim]
                size = int(np.prod(shape))
                inputs.append((np.arange(size).reshape(shape) / size).astype(np.float32))
        outputs = [_read(path.with_name(f"{path.stem}_output_{i}.pb")) for i in range(len(model.graph.output))]
        yield path.stem, path.read_bytes(), Data([(inputs, outputs)], 1e-3, 1e-7)


def _stored(folder: Path, model: bytes) -> tuple[list[Any], list[Any]]:
    import onnx

    graph = onnx.load_from_string(model).graph
    kinds = {"input": [i.type for i in graph.input], "output": [o.type for o in graph.output]}
    both = []
    for what, types in kinds.items():
        count = len(list(folder.glob(f"{what}_*.pb")))
        both.append([_read(folder / f"{what}_{i}.pb", types[i]) for i in range(count)])
    return both[0], both[1]


def _read(path: Path, kind: Any = None) -> Any:
    import onnx

    proto = onnx.SequenceProto() if kind is not None and kind.HasField("sequence_type") else onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    return _array(proto)


def _array(value: Any) -> Any:
    """A NumPy array, or a list of them for a sequence, or None."""
    import numpy as np
    import onnx

    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return [_array(x) for x in onnx.numpy_helper.to_list(value)]
    if isinstance(value, onnx.OptionalProto):
        return _array(onnx.numpy_helper.to_optional(value))
    if isinstance(value, list):
        return [_array(x) for x in value]
    return value if value is None or isinstance(value, dict) else np.asarray(value)
