# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Campaigns `programs`, `open`, `gpu`, `mesh`: random tensor programs, compiled, against the interpreter."""

from __future__ import annotations

import json
import os
import random
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .campaign import Campaign, describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx

_TOLERANCE = {"float64": 1e-6, "float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
_SMALL_CACHES = Path(__file__).parent / "small-caches.toml"
_NODES = (1, 1, 2, 3, 4, 6, 8, 12)


class Programs(Campaign):
    """One to twelve operators of all families on random shapes and types; see graphs.py and the tables at the
    ends of families.py, movement.py, networks.py, patterns.py, precision.py, control.py, vision.py.
    """

    name = "programs"
    suffix = ".onnx"
    seconds = 60

    def prepare(self) -> None:
        """Gather the operators. No case comes twice: a cache would only grow."""
        from .control import CONTROL
        from .families import COMPUTE
        from .movement import MOVE
        from .networks import NETWORKS
        from .patterns import PATTERNS
        from .precision import PRECISION
        from .vision import VISION

        os.environ.setdefault("TILEWRIGHT_CACHE", "0")
        self._operators = [*COMPUTE, *MOVE, *NETWORKS, *PATTERNS, *PRECISION, *CONTROL, *VISION]

    def case(self, choose: random.Random) -> bytes:
        """A model; the seed of its inputs stands in its doc string."""
        from .graphs import Graph, Misfit

        graph, wanted = Graph(choose), choose.choice(_NODES)
        for _ in range(200):
            try:
                choose.choice(self._operators)(graph)
            except Misfit:
                continue
            if len(graph.nodes) >= wanted:
                break
        return self.changed(graph.model(choose.randrange(1 << 32))).SerializeToString(deterministic=True)

    def changed(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """The model of a case, as this campaign wants it."""
        return model

    def compiled(self, model: onnx.ModelProto) -> Any:
        """The model, ready to be called."""
        import tilewright as tw

        return tw.compile(model, target=machine(model), threads=2)

    def execute(self, case: bytes) -> str | None:
        """Compile and interpret; compare."""
        import onnx

        import tilewright as tw

        model = onnx.load_from_string(case)
        inputs = feeds(model)
        kinds = ",".join(node.op_type for node in model.graph.node)
        try:
            expected = tw.compile(model, target="reference")(*inputs)
            found = self.compiled(model)(*inputs)
        except tw.UnsupportedError:
            return None
        except Exception as error:
            return f"{describe(error)} [{kinds}]"
        for output, got, want in zip(model.graph.output, found, expected, strict=True):
            wrong = difference(got, want)
            if wrong:
                return f"results differ: {wrong}, output {output.name} [{kinds}]"
        return None


class OnGpu(Programs):
    """The same programs as PTX for one of two architectures, which the emulator runs in a random order."""

    name = "gpu"
    seconds = 300

    def compiled(self, model: onnx.ModelProto) -> Any:
        """The model, ready to be called."""
        import tilewright as tw

        seed = int(model.doc_string)
        arch = ("sm_80", "sm_90a")[seed % 2]
        return tw.compile(model, target=f"cuda:{arch}", emulate={"seed": seed % 1000})


class OnMesh(Programs):
    """The same programs on a simulated mesh; gathers and integers are computed by its cores, too, doubles outside."""

    name = "mesh"
    seconds = 300

    def compiled(self, model: onnx.ModelProto) -> Any:
        """The model, ready to be called."""
        import tilewright as tw

        return tw.compile(model, target="mesh:toy8x8")


class OpenSizes(OnGpu):
    """The same programs, compiled without knowing any size of their inputs but 0 and 1; a quarter for a GPU."""

    name = "open"
    seconds = 120
    on_gpu = True  # some of them

    def changed(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """Let dimensions of one size have one name, which says the size; results have any sizes."""
        for value in model.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value > 1 and not value.doc_string:
                    dim.dim_param = f"n{dim.dim_value}"
        for value in model.graph.output:
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
        return model

    def compiled(self, model: onnx.ModelProto) -> Any:
        """The model, ready to be called; what breaks when sizes are open is not hidden by a compilation for one."""
        import tilewright as tw

        with strict_about_open_sizes():
            if self.on_gpu and int(model.doc_string) % 4 == 0:
                return super().compiled(model)
            return tw.compile(model, target=machine(model), threads=2)


@contextmanager
def strict_about_open_sizes() -> Iterator[None]:
    """A bug that comes up only where sizes are open is raised, although models could be compiled for given sizes."""
    import tilewright as tw
    from tilewright.compiler import dynamic_shapes

    lenient = dynamic_shapes.general_model

    def strict(build: Any, inputs: Any) -> Any:
        bugs = []

        def watched() -> Any:
            try:
                return build()
            except tw.InternalError as error:
                bugs.append(error)
                raise

        found = lenient(watched, inputs)
        if bugs:
            raise bugs[0]
        return found

    dynamic_shapes.general_model = strict
    try:
        yield
    finally:
        dynamic_shapes.general_model = lenient


def machine(model) -> str:
    """This machine, or (a third of the cases) one whose small caches make small programs run in blocks."""
    from tilewright.runtime.cpu.cpu_features import host_features

    return f"cpu:{_SMALL_CACHES}" if "avx512vl" in host_features() and int(model.doc_string) % 3 == 0 else "cpu"


def feeds(model) -> list:
    """Random inputs, by the seed in the doc string; those with a doc string of their own hold what it says."""
    import numpy as np
    from onnx import helper

    from .graphs import random_array

    data, arrays = np.random.default_rng(int(model.doc_string)), []
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [int(d.dim_param.removeprefix("n")) if d.dim_param else d.dim_value for d in kind.shape.dim]
        if value.doc_string:
            held = np.array(json.loads(value.doc_string), helper.tensor_dtype_to_np_dtype(kind.elem_type))
            arrays.append(held.reshape(shape))
        else:
            arrays.append(random_array(data, kind.elem_type, shape))
    return arrays


def difference(got, want) -> str | None:
    """What differs, or None. Integers must be equal, floats close for their type."""
    import numpy as np

    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} and {want.dtype}{list(want.shape)}"
    tolerance = _TOLERANCE.get(got.dtype.name, 0.0)
    wide = np.float64 if "float" in got.dtype.name else got.dtype
    a, b = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        close = np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True) if wide == np.float64 else a == b
    if close.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{int((~close).sum())} of {close.size} elements, {a[at]} and {b[at]}"
