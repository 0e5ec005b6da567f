# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which outputs of a graph share memory, and how they are made then. Skipped where torch is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright.core.errors import UnsupportedError  # noqa: E402
from tilewright.frontend.torch import graph as conversion  # noqa: E402
from tilewright.frontend.torch.layouts import laid_out, order_of  # noqa: E402


def traced(function: Callable[..., Sequence[Any]], *examples: Any, mode: str = "fake") -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function, tracing_mode=mode)(*examples)


def outputs(function: Callable[..., Sequence[Any]], *arguments: Any, mode: str = "fake") -> tuple[int, list[Any]]:
    """The number of results that a model would compute, and the outputs made of what PyTorch computes for them."""
    module = traced(function, *arguments, mode=mode)
    nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
    results, made = conversion._outputs(module.graph, [node.name for node in nodes], conversion._sizes(nodes))
    orders = [order_of(node.meta["val"]) for node in results]
    module.recompile()
    found = [laid_out(value.contiguous(), order) for value, order in zip(module(*arguments), orders, strict=True)]
    return len(results), [output(found, arguments) for output in made]


def views(x: Any) -> Any:
    y = x + 1
    return x.T, y.view(-1), y[1:].T, y, y * 2


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_views_are_views(mode: str) -> None:
    x = torch.randn(3, 4)
    results, found = outputs(views, x, mode=mode)
    expected = views(x)
    assert results == 2  # y, y * 2
    assert found[0].data_ptr() == x.data_ptr()
    for each in (found, expected):
        each[3][1:] = 7  # seen in those before
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.stride() == theirs.stride()


def test_views_of_a_tensor_that_is_no_output_and_of_a_part_of_an_argument() -> None:
    def parts(x: Any) -> Any:
        return (*(x.T * 2).chunk(2, 1), x[1:])

    x = torch.randn(6, 4)[1:]  # its memory begins before it
    results, found = outputs(parts, x)
    assert results == 1
    for ours, theirs in zip(found, parts(x), strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.stride() == theirs.stride()
    assert found[0].untyped_storage().data_ptr() == found[1].untyped_storage().data_ptr()


def test_one_view_alone_is_a_result() -> None:
    results, (found,) = outputs(lambda x: ((x + 1).T,), torch.ones(2, 3))
    assert results == 1 and found.stride() == (1, 3)


def test_memory_of_two_dtypes_is_refused() -> None:
    def halves(x: Any) -> Any:
        y = x + 1
        return y, y.view(torch.int32)

    with pytest.raises(UnsupportedError, match="share memory of add"):
        outputs(halves, torch.ones(2, 3))


def test_what_draws_random_numbers_is_refused() -> None:
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    q = torch.ones(1, 1, 4, 8)
    conversion._refuse_random(traced(lambda q: attention(q, q, q), q).graph)
    conversion._refuse_random(traced(lambda x: torch.nn.functional.dropout(x, 0.5, training=False), q).graph)
    for function in (
        lambda x: attention(x, x, x, 0.5),
        torch.rand_like,
        lambda x: torch.multinomial(x[0, 0], 1),
        lambda x: torch.nn.functional.dropout(x, 0.5, training=True),
    ):
        with pytest.raises(UnsupportedError, match="draws random numbers"):
            conversion._refuse_random(traced(function, q).graph)
