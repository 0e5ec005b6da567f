# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model multiplies and sums in one pass, as sizes: all that a sweep over machines needs of it."""

from __future__ import annotations

import dataclasses
import difflib
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import Reduce, reduction
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.program import Program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[no-redef]

#: ``gemm``: A B by MeshGEMM; ``gemm_t``: A B^T by dist-GEMM-T; ``gemv``: MeshGEMV; ``allreduce``: of a vector, over a
#: two-way K-tree.
Kind = Literal["gemm", "gemm_t", "gemv", "allreduce"]
KINDS = ("gemm", "gemm_t", "gemv", "allreduce")
Phase = Literal["prefill", "decode"]
PHASES = ("prefill", "decode")


@dataclass(frozen=True)
class Part:
    """One product or sum of a pass.

    Attributes:
        kind: of `KINDS`.
        m, k, n: sizes of a product [m, k] @ [k, n]; of an allreduce n counts the sums, which are spread over the rows
            of cores, and the others are 1.
        times: how often it runs in a pass.
        weights: how many different matrices [k, n] those runs read that must lie somewhere; 0: what the pass makes.
    """

    name: str
    kind: Kind
    m: int = 1
    k: int = 1
    n: int = 1
    times: int = 1
    weights: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"part '{self.name}' is of kind '{self.kind}': use one of {', '.join(KINDS)}")
        for field in ("m", "k", "n", "times"):
            size = getattr(self, field)
            if not isinstance(size, int) or size < 1:
                raise UserError(f"part '{self.name}': {field} must be a whole number of at least 1, not {size!r}")
        if not isinstance(self.weights, int) or self.weights < 0:
            raise UserError(f"part '{self.name}': weights is {self.weights!r}: give the number of matrices, or 0")

    def program(self, height: int, width: int, dtype: Any) -> Program:
        """The program of one run on a grid; sums are in float32."""
        if self.kind == "allreduce":
            return reduction(Reduce(height, width, -(-self.n // height), np.float32))
        if self.kind == "gemv":
            return matrix_vector(MatrixVector((self.k, self.n), height, width, dtype=dtype, accumulator=np.float32))
        product = Product(self.m, self.k, self.n, height, width, dtype, accumulator=np.float32)
        return transposed_product(product) if self.kind == "gemm_t" else shifted_product(product)

    def weight_bytes(self, height: int, width: int, itemsize: int) -> int:
        """Bytes that one core holds of all its matrices, padded."""
        if not self.weights:
            return 0
        if self.kind == "gemv":
            return self.weights * -(-self.k // height) * -(-self.n // width) * itemsize
        blocks = math.lcm(height, width)
        return self.weights * -(-self.k // blocks) * -(-self.n // width) * (blocks // height) * itemsize


@dataclass(frozen=True)
class Workload:
    """A model as a sweep takes it.

    Attributes:
        tokens: that a pass takes in.
        dtype: of weights and activations.
        cache_bytes: of a KV cache that lies beside the weights, of all cores.
    """

    name: str
    parts: tuple[Part, ...]
    tokens: int = 1
    dtype: str = "float16"
    cache_bytes: int = 0

    def __post_init__(self) -> None:
        if not self.parts:
            raise UserError(f"workload '{self.name}' has no parts: it needs a product at least")
        if self.dtype not in ("float16", "float32"):
            raise UserError(f"workload '{self.name}': dtype is '{self.dtype}': use float16 or float32")


@dataclass(frozen=True)
class Decoder:
    """A LLaMA-style decoder: RMSNorm, attention of grouped heads, SwiGLU.

    All heads share the rounds of one product, as WaferLLM's configurations have it: as many multiply-adds as the heads
    have, but fewer numbers to add up along the way than one product per head. Scores count as MeshGEMM of the same
    sizes: T1 takes minutes for dist-GEMM-T on large grids. In decode, products of one vector share an allreduce.

    Attributes:
        hidden, ffn: sizes of vectors between and inside layers.
        heads, kv_heads: of attention; each has ``hidden / heads`` numbers.
        tokens: of the prompt (prefill).
        context: tokens in the cache (decode).
    """

    name: str
    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    tokens: int = 4096
    context: int = 4096
    dtype: str = "float16"

    def __post_init__(self) -> None:
        for field in ("hidden", "ffn", "layers", "heads", "kv_heads", "tokens", "context"):
            size = getattr(self, field)
            if not isinstance(size, int) or size < 1:
                raise UserError(f"decoder '{self.name}': {field} must be a whole number of at least 1, not {size!r}")
        if self.hidden % self.heads or self.heads % self.kv_heads:
            raise UserError(
                f"decoder '{self.name}': {self.heads} heads must divide hidden = {self.hidden}, and {self.kv_heads} "
                "kv_heads must divide them"
            )

    def workload(self, phase: str) -> Workload:
        """One pass: of a prompt (prefill), or of one token (decode).

        Raises:
            UserError: there is no such phase.
        """
        if phase not in PHASES:
            raise UserError(f"there is no phase '{phase}': use one of {', '.join(PHASES)}")
        prefill = phase == "prefill"
        narrow, runs = self.hidden // self.heads * self.kv_heads, self.layers
        rows = self.tokens if prefill else 1
        seen = self.tokens if prefill else self.context
        product: Kind = "gemm" if prefill else "gemv"

        def weight(name: str, k: int, n: int, each: int = 1) -> Part:
            return Part(name, product, rows, k, n, each * runs, each * runs)

        def summed(name: str, length: int, each: int) -> Part:
            return Part(name, "allreduce", n=length, times=each * runs)

        if prefill:
            first = (weight("query", self.hidden, self.hidden), weight("key, value", self.hidden, narrow, 2))
            wide = weight("gate, up", self.hidden, self.ffn, 2)
        else:
            first = (weight("query, key, value", self.hidden, self.hidden + 2 * narrow),)
            wide = weight("gate, up", self.hidden, 2 * self.ffn)
        parts = (
            summed("norms", rows, 2),
            *first,
            Part("scores", product, rows, self.hidden, seen, runs),
            summed("softmax", self.heads * rows, 2),
            Part("mix", product, rows, seen, self.hidden, runs),
            weight("output", self.hidden, self.hidden),
            wide,
            weight("down", self.ffn, self.hidden),
        )
        cache = 2 * narrow * seen * runs * np.dtype(self.dtype).itemsize
        return Workload(f"{self.name}, {phase}", parts, rows, self.dtype, cache)


DECODERS = {
    "llama3-8b": Decoder("llama3-8b", 4096, 14336, 32, 32, 8),
    "llama2-13b": Decoder("llama2-13b", 5120, 13824, 40, 40, 40),
    "tiny": Decoder("tiny", 64, 172, 2, 4, 2, tokens=32, context=48),
}


def read_workload(which: str, phase: str = "decode") -> Workload:
    """Return the workload of a name of `DECODERS`, or of a ``.toml`` file.

    The file has the fields of `Decoder`, or a list ``[[parts]]`` with those of `Part` beside those of `Workload`.

    Raises:
        UserError: there is no such name or file, or it has other fields.
    """
    if which in DECODERS:
        return DECODERS[which].workload(phase)
    if not which.endswith(".toml"):
        raise UserError(f"there is no model '{which}': use one of {', '.join(DECODERS)}, or a .toml file of sizes")
    try:
        values = tomllib.loads(Path(which).read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{which}: {error}") from None
    values.setdefault("name", Path(which).stem)
    if "parts" not in values:
        return _made(Decoder, values, which).workload(phase)
    rows = values.pop("parts")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{which}: 'parts' must be a list of tables: [[parts]]")
    parts = tuple(_made(Part, {"name": f"part {number}", **row}, which) for number, row in enumerate(rows, 1))
    return _made(Workload, {**values, "parts": parts}, which)


def _made(kind: Any, values: Mapping[str, Any], where: str) -> Any:
    """A dataclass of named values."""
    fields = dataclasses.fields(kind)
    known = {field.name for field in fields}
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the fields are {', '.join(sorted(known))}"
            raise UserError(f"{where}: there is no field '{name}': {hint}")
    missing = [f.name for f in fields if f.name not in values and f.default is dataclasses.MISSING]
    if missing:
        raise UserError(f"{where}: {', '.join(missing)} is missing")
    return kind(**values)
