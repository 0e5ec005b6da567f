# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From layer 1 to programs of single cores: the phases, each a list of passes with its reason."""

from __future__ import annotations

from tilewright.normalize import PASSES as NORMALIZE
from tilewright.passes.pipeline import PassSpec, Phase, Pipeline

#: These predict seconds of kernels that share a memory; a step on a grid takes what its programs take.
_OF_OTHERS = ("tile-plan-wavefronts", "tile-plan-shifts")
_TARGET = PassSpec("tile-verify-target", "border: the module says for which mesh", {"kind": "mesh"})
_NORMALIZE = [spec for spec in NORMALIZE if spec.name not in _OF_OTHERS]

PIPELINE = Pipeline(
    "mesh",
    [
        Phase("normalize", _NORMALIZE, summary="one form of each operation, static shapes, few reshapes"),
        Phase(
            "plan",
            [
                _TARGET,
                PassSpec("tile-bound-sizes", "programs of cores have buffers of known sizes"),
                PassSpec("canonicalize", "what known sizes leave of numbers is folded"),
                PassSpec("tile-plan-streams", "what no cores hold as a whole is cut into blocks"),
                PassSpec("tile-stream-blocks", "a loop over blocks is planned as any other: by what one turn does"),
                PassSpec("tile-plan-mesh", "layouts and algorithms are decided before anything is rewritten"),
            ],
            summary="lay out: blocks that stream, the axis along each loop, the algorithm of each product",
        ),
        Phase(
            "tile",
            [
                _TARGET,
                PassSpec("tile-distribute", "what is laid out becomes collectives and what cores compute alone"),
                PassSpec("canonicalize", "what the grid has taken over leaves empty tensors behind"),
                PassSpec("symbol-dce", "weights that nothing reads need no bytes"),
            ],
            summary="distribute: collectives on tensors whose type says where they lie",
        ),
        Phase(
            "schedule",
            [
                _TARGET,
                PassSpec("tile-plan-reductions", "how lines of cores reduce, by the model of each algorithm"),
                PassSpec("tile-expand-collectives", "the algorithm of each collective, core by core"),
                PassSpec("tile-expand-locals", "computations without communication are programs, too"),
                PassSpec("tile-fuse-programs", "what is elementwise follows where its operand is made"),
            ],
            summary="expand: programs of single cores, one after the other",
        ),
        Phase(
            "lower",
            [
                _TARGET,
                PassSpec("tile-fit-mesh", "colors, addresses and what is streamed; a machine's limits are errors"),
            ],
            summary="check: what the programs take of the machine",
        ),
    ],
    summary="layer 1 to programs of the cores of a mesh",
)
