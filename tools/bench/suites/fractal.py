# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on nested lists beside the same lists in eager PyTorch and the best form that a library has of them.

Ours compiles the program of `examples/fractal`, its weights held as constants. `torch_lists` runs the same lists as
Python loops. The others run the model of `models.lists`: recurrent layers as LSTM operators (dilated ones on batches of
every 2^t-th element), the grid as one step for each diagonal, attention as one operator, and products of whole
matrices. The programs are those of FractalTensor (SOSP 2024). The dilated LSTM has 64 steps, not 50: the largest
distance must divide them. A batch of 32 stands where a run on lists takes less than two seconds.

The two on trees have a random binary tree of 64 words, and a complete one (the recursive autoencoder of Cocktailer,
OSDI 2023). Their models know the tree beforehand (`models.trees`); ours and `torch_lists` learn of it in each run.
"""

from __future__ import annotations

from bench.case import Case, Suite
from models.lists import INPUTS

_PEERS = ("torch_lists", "torch", "onnxruntime", "openvino")  # and Inductor, where the model is not all LSTM operators
_OVER_LISTS = 2.0  # ours takes at most half of the time of lists in eager PyTorch
_OVER_TREES = 5.0  # and a fifth of recursion over trees
_LIBRARY = ("stacked_lstm", "b2b_gemm", "attention")  # PyTorch has an operator for them


def _recurrent(layers: int, hidden: int, sequence: int, batch: int) -> int:
    """Four gates, each of an input and a state."""
    return layers * sequence * batch * 4 * 2 * 2 * hidden**2


def _grid(layers: int, hidden: int, rows: int, columns: int, batch: int) -> int:
    """Two states for each point, each of an input and of two states before."""
    return layers * rows * columns * batch * 2 * 2 * 3 * hidden**2


def _products(m: int, k: int, n: int, p: int, block: int) -> int:
    return 2 * m * n * (k + p)


def _attention(heads: int, sequence: int, depth: int, block: int, batch: int) -> int:
    return 4 * batch * heads * sequence**2 * depth


def _bigbird(sequence: int, block: int, hidden: int, batch: int) -> int:
    """The first and last two blocks of queries read all blocks, others five."""
    blocks = sequence // block
    return 4 * batch * block**2 * hidden * ((blocks - 4) * 5 + 4 * blocks)


#: Operations of the matrix products of a run.
_WORK = {
    "stacked_lstm": _recurrent,
    "dilated_lstm": _recurrent,
    "grid_rnn": _grid,
    "b2b_gemm": _products,
    "attention": _attention,
    "bigbird": _bigbird,
}


def list_case(program: str, about: str, **sizes: int) -> Case:
    """Twice as fast as lists, and as fast as the library's form where PyTorch has one."""
    gains = {"torch_lists": _OVER_LISTS, **({"torch": 1.0} if program in _LIBRARY else {})}
    peers = _PEERS if program.endswith("lstm") else (*_PEERS, "torch_compile")
    name = "_".join(filter(None, [program, about, f"b{sizes['batch']}" if "batch" in sizes else ""]))
    inputs = (program, {}) if program in INPUTS else None
    work = _WORK[program](**sizes) / 1e9
    return Case(name, f"list_{program}", sizes, peers=peers, inputs=inputs, program=program, gains=gains, gflop=work)


def _batches(program: str, about: str, most: int = 32, **sizes: int) -> tuple[Case, ...]:
    return tuple(list_case(program, about, batch=batch, **sizes) for batch in (1, 32) if batch <= most)


def _tree(program: str, about: str, **sizes: int) -> Case:
    """At least five times as fast as recursion in eager PyTorch; a tree is new to each run of ours."""
    return Case(
        f"{program}_{about}",
        f"list_{program}",
        sizes,
        peers=_PEERS,
        program=program,
        gains={"torch_lists": _OVER_TREES},
    )


SUITE = Suite(
    "fractal",
    "programs on nested lists beside lists in eager PyTorch and the best form that libraries have",
    (
        *_batches("stacked_lstm", "d4", layers=4, hidden=256, sequence=64),
        *_batches("stacked_lstm", "d8", layers=8, hidden=256, sequence=64, most=1),
        *_batches("dilated_lstm", "d6", layers=6, hidden=256, sequence=64),
        *_batches("grid_rnn", "d4", layers=4, hidden=256, rows=10, columns=10),
        list_case("b2b_gemm", "", m=8192, k=64, n=256, p=64, block=64),
        *_batches("attention", "s512", heads=8, sequence=512, depth=128, block=64),
        *_batches("attention", "s1024", heads=8, sequence=1024, depth=128, block=64, most=1),
        *_batches("bigbird", "s1024", sequence=1024, block=64, hidden=512),
        _tree("tree_lstm", "n127", words=300, hidden=150, leaves=64),
        _tree("recursive_autoencoder", "d7", hidden=512, leaves=64),
    ),
)
