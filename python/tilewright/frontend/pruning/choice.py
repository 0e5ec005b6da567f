# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which weights are pruned: those that the user names, or by default those where it pays and is usually done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import onnx

from tilewright.core.errors import UserError
from tilewright.frontend.onnx.load import domain_of
from tilewright.frontend.pruning.products import Product, Products
from tilewright.frontend.pruning.requests import Pruning, Share

_SHOWN = 12
_FEW_CHANNELS = 4  # a first convolution reads the colours of a picture


@dataclass(frozen=True)
class Choice:
    """Weights that are pruned, by name, with the products that read them; the others, with the reason."""

    pruned: dict[str, list[Product]]
    left: dict[str, str]


def choose(
    graph: onnx.GraphProto,
    products: Products,
    request: Pruning,
    layers: Sequence[str] | None = None,
    skip: Sequence[str] = (),
) -> Choice:
    """Choose weights.

    Args:
        graph: of the model.
        products: its products.
        request: what is to be pruned; `channels` and `heads` look at what makes the inputs, too.
        layers: names of nodes or weights, with `*`, `?` and `[...]`; None: the default.
        skip: those that stay.

    Raises:
        UserError: a name fits nothing; no weight can be pruned.
    """
    for text in (*(layers or ()), *skip):
        if not any(_fits(text, weight, uses) for weight, uses in products.found.items()):
            raise _unknown(text, products)
    left = dict(products.refused)
    pruned: dict[str, list[Product]] = {}
    for weight, uses in products.found.items():
        if any(_fits(text, weight, uses) for text in skip):
            left[weight] = "skip= names it"
        elif layers is not None:
            if any(_fits(text, weight, uses) for text in layers):
                pruned[weight] = uses
            else:
                left[weight] = "layers= does not name it"
        else:
            reason = _unfit(products, request, uses)
            if reason:
                left[weight] = reason
            else:
                pruned[weight] = uses
    if layers is None:
        _leave_ends(graph, products, pruned, left)
    if not pruned:
        why = "\n".join(f"  {name}: {reason}" for name, reason in list(left.items())[:_SHOWN])
        raise UserError(f"{request.text}: no weight of the model can be pruned{':' if why else ''}\n{why}".rstrip())
    return Choice(pruned, left)


def _unfit(products: Products, request: Pruning, uses: Sequence[Product]) -> str:
    """Why a weight stays by default."""
    groups, _, inputs, _ = uses[0].view.sizes
    if groups > 1 and inputs == 1:
        return "a depthwise convolution sums over no channels"
    if not isinstance(request, Share) or request.kind not in ("channels", "heads"):
        return ""
    if groups > 1:
        return "its inputs are in groups"
    if request.kind == "heads" and not all(_joins_heads(products, use.x) for use in uses):
        return "no heads are joined before it"
    if not all(products.single(use.x) for use in uses):
        return "others read its inputs, too: they could not be left out"
    return ""


def _joins_heads(products: Products, name: str) -> bool:
    """Whether a value is what attention gives: heads transposed behind the tokens, and joined."""
    node = products.makers.get(name)
    while node is not None and node.op_type in ("Reshape", "Identity", "Cast") and not domain_of(node.domain):
        node = products.makers.get(node.input[0])
    if node is None:
        return False
    perm = next((tuple(a.ints) for a in node.attribute if a.name == "perm"), ())
    return node.op_type == "Attention" or perm == (0, 2, 1, 3)


def _leave_ends(
    graph: onnx.GraphProto, products: Products, pruned: dict[str, list[Product]], left: dict[str, str]
) -> None:
    """The first convolution of pictures and the layers that make the results stay, where others remain."""
    ends: dict[str, str] = {}
    for weight, uses in pruned.items():
        first = any(use.operator == "Conv" and products.is_input(use.x) for use in uses)
        if first and uses[0].view.sizes[2] <= _FEW_CHANNELS:
            ends[weight] = "the first layer: name it in layers= to prune it"
        elif any(products.is_result(use.y, graph) for use in uses):
            ends[weight] = "a layer that makes results: name it in layers= to prune it"
    if len(ends) < len(pruned):
        left.update(ends)
        for weight in ends:
            del pruned[weight]


def _fits(text: str, weight: str, uses: Sequence[Product]) -> bool:
    return any(fnmatchcase(name, text) for name in (weight, *(use.name for use in uses)))


def _unknown(text: str, products: Products) -> UserError:
    refused = products.refused.get(text)
    if refused:
        return UserError(f"weight {text!r} cannot be pruned: {refused}")
    known = [f"{uses[0].name} (weight {weight})" for weight, uses in products.found.items()]
    more = f", and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return UserError(f"no layer has the name {text!r}; there are {', '.join(known[:_SHOWN]) or 'none'}{more}")
