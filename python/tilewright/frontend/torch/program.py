# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph as the torch.export.ExportedProgram that torch's exporter takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.frontend.torch.conversion import explained


def is_tensor(node: Any) -> bool:
    """Whether the value of a node is a tensor."""
    import torch

    return isinstance(node.meta.get("val"), torch.Tensor)


def program_of_graph(module: Any, arguments: Sequence[Any], results: Sequence[Any]) -> Any:
    """The graph as a torch.export.ExportedProgram: all its arguments are inputs of the user.

    Raises:
        UnsupportedError: torch refuses the graph, one that is not functional, say.
    """
    import torch.utils._pytree as pytree
    from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
    from torch.export import graph_signature as signature

    def described(node: Any) -> Any:
        kind = signature.TensorArgument if is_tensor(node) else signature.SymIntArgument
        return kind(name=node.name)

    inputs = [signature.InputSpec(signature.InputKind.USER_INPUT, described(node), None) for node in arguments]
    outputs = [signature.OutputSpec(signature.OutputKind.USER_OUTPUT, described(node), None) for node in results]
    _, in_spec = pytree.tree_flatten((tuple(node.meta["val"] for node in arguments), {}))
    _, out_spec = pytree.tree_flatten(tuple(results))
    try:
        return ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=signature.ExportGraphSignature(inputs, outputs),
            state_dict={},
            range_constraints={},
            module_call_graph=[ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec))],
        )
    except Exception as error:  # of its verifier
        raise explained(error, "a graph") from error
