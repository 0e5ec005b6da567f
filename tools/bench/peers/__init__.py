# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who is timed: one module per peer, each with a class `PEER`."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import numpy as np


class Peer(ABC):
    """Something that runs an ONNX model. An instance lives in a process of its own and sees one model.

    `load` may take its time; `run` is what is timed, and must reuse its input and output arrays.
    `settings` says in a few words how the peer is configured; `accuracy`, `target`, `cover`,
    `without` and `padded` are what is asked of ours. `program` is the one on nested lists that the model stands for,
    where it does.
    """

    settings = "defaults"
    accuracy = "exact"
    target = "cpu"
    cover = ""
    without: tuple[str, ...] = ()
    padded = ""
    program = ""
    #: What is said beside the measured time, once the model is loaded.
    expected = ""

    @abstractmethod
    def version(self) -> str:
        """The version, for the record."""

    @abstractmethod
    def load(self, model: Path, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32") -> None:
        """Make `run` ready for these inputs with this many threads.

        `precision` is what the case asks for (f32, bf16, int8); who has no such choice runs the model as it is.
        """

    @abstractmethod
    def run(self) -> None:
        """Run the model once."""

    @abstractmethod
    def outputs(self) -> list[np.ndarray]:
        """The results of the latest run, in the model's order."""


def make(name: str) -> Peer:
    """The peer of that name. Raises ModuleNotFoundError for an unknown one."""
    return importlib.import_module(f"bench.peers.{name}").PEER()
