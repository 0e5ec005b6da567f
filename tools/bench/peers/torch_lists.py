# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch, eager, as a program on nested lists would be written: Python lists of tensors, and loops."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from bench import list_programs
from bench.peers import Peer
from bench.torch_lists import PROGRAMS, nested, stacked, tree_of


class TorchLists(Peer):
    """The case's program; lists of arguments and weights are made once, those of results in each run."""

    settings = "eager, inference mode, nested lists of tensors, kept memory"

    def version(self) -> str:
        """The package's version."""
        return torch.__version__

    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Make the lists."""
        torch.set_num_threads(threads)
        program = list_programs.read(model, self.program)
        self._call = PROGRAMS[self.program]
        arrays = {**inputs, **program.weights}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        trees = {name: tree_of(tensors[name], children.tolist()) for name, children in program.trees.items()}
        lists = {name: nested(x, x.ndim - list_programs.LEAF_RANK) for name, x in tensors.items() if name not in trees}
        self._lists = [{**lists, **trees}[name] for name in arrays]
        self.run()

    def run(self) -> None:
        """Call it."""
        with torch.inference_mode():
            self._result = self._call(*self._lists)

    def outputs(self) -> list[np.ndarray]:
        """The latest results."""
        results = self._result if isinstance(self._result, tuple) else (self._result,)
        return [stacked(result).numpy() for result in results]


PEER = TorchLists
