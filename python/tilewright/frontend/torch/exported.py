# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of `torch.export`: the form of their results, and the same program with results that are tensors alone."""

from __future__ import annotations

import copy
from typing import Any

from tilewright.frontend.torch.structure import Form


def without_constants(program: Any, form: Form) -> Any:
    """A program that returns each tensor once, and nothing else; what it was given returns may be constants, too.

    Args:
        program: a torch.export.ExportedProgram, which stays as it is.
        form: receives the form of the user's results.
    """
    from torch.export import graph_signature as signature

    specs = program.graph_signature.output_specs
    user = signature.OutputKind.USER_OUTPUT
    kept: list[int] = []
    leaves: list[dict[str, Any]] = []
    names: list[str] = []
    for place, spec in enumerate(specs):
        if spec.kind != user:  # what a buffer is afterwards
            continue
        if isinstance(spec.arg, signature.ConstantArgument):
            leaves.append({"value": spec.arg.value})
            continue
        if spec.arg.name not in names:
            kept.append(place)
            names.append(spec.arg.name)
        leaves.append({"result": names.index(spec.arg.name)})
    form.set(program.call_spec.out_spec, leaves)
    return program if len(kept) == len(specs) else _cut(program, kept)


def _cut(program: Any, kept: list[int]) -> Any:
    """The program with these outputs only."""
    import torch.utils._pytree as pytree
    from torch.export import ExportedProgram

    module = copy.deepcopy(program.graph_module)
    node = next(node for node in module.graph.nodes if node.op == "output")
    node.args = (tuple(node.args[0][place] for place in kept),)
    module.graph.eliminate_dead_code()
    module.recompile()
    specs = program.graph_signature
    entry = copy.copy(program.module_call_graph[0])
    entry.signature = copy.copy(entry.signature)
    entry.signature.out_spec = pytree.tree_flatten(tuple(range(len(kept))))[1]
    return ExportedProgram(
        root=module,
        graph=module.graph,
        graph_signature=type(specs)(specs.input_specs, [specs.output_specs[place] for place in kept]),
        state_dict=program.state_dict,
        range_constraints=program.range_constraints,
        module_call_graph=[entry],
        example_inputs=program.example_inputs,
        constants=program.constants,
    )
