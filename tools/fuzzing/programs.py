# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Campaign `programs`: random tensor programs, compiled for the CPU, against the reference interpreter."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

from .campaign import Campaign, describe

_TOLERANCE = {"float64": 1e-6, "float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
_SMALL_CACHES = Path(__file__).parent / "small-caches.toml"
_NODES = (1, 1, 2, 3, 4, 6, 8)


class Programs(Campaign):
    """One to eight operators of all families on random shapes and types; see graphs.py and the tables at the
    ends of families.py, movement.py, networks.py, precision.py, control.py, vision.py.
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
        from .precision import PRECISION
        from .vision import VISION

        os.environ.setdefault("TILEWRIGHT_CACHE", "0")
        self._operators = [*COMPUTE, *MOVE, *NETWORKS, *PRECISION, *CONTROL, *VISION]

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
        return graph.model(choose.randrange(1 << 32)).SerializeToString(deterministic=True)

    def execute(self, case: bytes) -> str | None:
        """Compile and interpret; compare."""
        import onnx

        import tilewright as tw

        model = onnx.load_from_string(case)
        inputs = feeds(model)
        kinds = ",".join(node.op_type for node in model.graph.node)
        try:
            expected = tw.compile(model, target="reference")(*inputs)
            found = tw.compile(model, target=machine(model), threads=2)(*inputs)
        except tw.UnsupportedError:
            return None
        except Exception as error:
            return f"{describe(error)} [{kinds}]"
        for output, got, want in zip(model.graph.output, found, expected, strict=True):
            wrong = difference(got, want)
            if wrong:
                return f"results differ: {wrong}, output {output.name} [{kinds}]"
        return None


def machine(model) -> str:
    """This machine, or (a third of the cases) one whose small caches make small programs run in blocks."""
    from tilewright.runtime.cpu_features import host_features

    return f"cpu:{_SMALL_CACHES}" if "avx512vl" in host_features() and int(model.doc_string) % 3 == 0 else "cpu"


def feeds(model) -> list:
    """Random inputs, by the seed in the doc string; those with a doc string of their own hold what it says."""
    import numpy as np
    from onnx import helper

    from .graphs import random_array

    data, arrays = np.random.default_rng(int(model.doc_string)), []
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value for d in kind.shape.dim]
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
