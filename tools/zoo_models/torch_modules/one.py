# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One module in three sizes, with torch.compile and without. Prints one JSON object.

In an environment with PyTorch, a process of its own: python -m zoo_models.torch_modules.one NAME
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import torch

SIZES = (2, 3, 5)


def measured(name: str) -> dict[str, Any]:
    """Run a module of the table.

    Returns:
        `graphs` of Dynamo (several where it broke one), the `sizes` of the inputs, `builds`: how many models were
        compiled after each size; `error`: the largest difference, of the largest number of a result; `pytorch`: what
        the backend left to PyTorch, and why; `status`: ok, or what is wrong.
    """
    import tilewright.torch  # noqa: F401
    from tilewright.compiler import driver
    from zoo_models.torch_modules.cases import CASES

    case, told, builds, build = CASES[name], _Told(), [], driver.build

    def counted(*args: Any) -> Any:
        done = build(*args)
        builds.append(name)
        return done

    driver.build = counted
    logging.getLogger("tilewright").addHandler(told)
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    row: dict[str, Any] = {"module": name, "sizes": [], "builds": [], "error": 0.0}
    try:
        plain, fast = (_made(case) for _ in range(2))
        fast = torch.compile(fast, backend="tilewright", options={"threads": 1})
        for size in SIZES:
            x = case.inputs(size)
            expected = plain(x)
            for axis in case.axes:
                torch._dynamo.mark_dynamic(x, axis)
            found = fast(x)
            row["sizes"].append(list(x.shape))
            row["builds"].append(len(builds))
            row["error"] = max(row["error"], difference(found, expected))
    finally:
        driver.build = build
        logging.getLogger("tilewright").removeHandler(told)
    row |= {"graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"], "pytorch": told.lines}
    row["status"] = _status(row, case)
    return row


def _made(case: Any) -> Any:
    torch.manual_seed(0)
    return case.make().eval()


def _status(row: dict[str, Any], case: Any) -> str:
    if row["error"] > case.tolerance:
        return f"wrong: off by {row['error']:.1e}"
    if row["pytorch"]:
        return "runs in PyTorch in part"
    if not row["builds"][0] or len(set(row["builds"])) > 1:
        return f"compiled again: {row['builds']}"
    if case.breaks and row["graphs"] < 2:
        return "its graph was not broken"
    return "ok"


class _Told(logging.Handler):
    """What the backend says of graphs that it leaves to PyTorch."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        if "in PyTorch" in record.getMessage():
            self.lines.append(record.getMessage())


def difference(found: Any, expected: Any) -> float:
    """How far results of the same form are apart: of the largest number of each tensor, at least 1.

    Raises:
        ValueError: their forms, shapes or dtypes differ.
    """
    ours, theirs = list(_tensors(found)), list(_tensors(expected))
    kinds = [[(tuple(tensor.shape), tensor.dtype) for tensor in each] for each in (ours, theirs)]
    if type(found) is not type(expected) or kinds[0] != kinds[1]:
        raise ValueError(f"results differ in their form: {kinds[0]}, without torch.compile {kinds[1]}")
    pairs = [(a.double(), b.double()) for a, b in zip(ours, theirs, strict=True) if a.numel()]
    return max((float((a - b).abs().max() / b.abs().max().clamp(min=1)) for a, b in pairs), default=0.0)


def _tensors(value: Any) -> Iterator[Any]:
    """The tensors of a result, in order: of containers, dataclasses and caches of keys and values."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _tensors(getattr(value, field.name))
    elif hasattr(value, "layers"):
        for layer in value.layers:
            yield from (layer.keys, layer.values)


if __name__ == "__main__":
    with torch.inference_mode():
        print(json.dumps(measured(sys.argv[1])))
