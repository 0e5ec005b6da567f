# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Equal graphs are equal models, whatever their symbols are called and their values are said to be. Without torch."""

from __future__ import annotations

import onnx

from tilewright.frontend.torch.plain import make_plain


def model(rows: str, columns: str, said: str) -> onnx.ModelProto:
    """x of [rows, columns] in a branch, with a description of each part."""
    value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
    inner = [
        onnx.helper.make_graph([node("Relu", ["x"], ["r"])], name, [], [value("r", 1, [rows, columns])])
        for name in "ab"
    ]
    flag, x = value("flag", onnx.TensorProto.BOOL, []), value("x", 1, [rows, columns])
    branch = node("If", ["flag"], ["y"], then_branch=inner[0], else_branch=inner[1])
    last = node("Flatten", ["y"], ["z"])
    graph = onnx.helper.make_graph([branch, last], "g", [flag, x], [value("z", 1, [rows, f"{columns}*{rows}"])])
    for part in (graph, x, branch, last, *inner, *(each.node[0] for each in inner), *graph.input, *graph.output):
        part.doc_string = said
        part.metadata_props.add(key="stack_trace", value=said)
    return onnx.helper.make_model(graph)


def test_symbols_and_descriptions() -> None:
    first, second = model("s3", "s77", "line 5"), model("s40", "u1", "line 6")
    assert first != second
    make_plain(first)
    make_plain(second)
    assert first == second
    assert [size.dim_param for size in first.graph.output[0].type.tensor_type.shape.dim] == ["size0", "size1*size0"]


def test_symbols_that_are_the_same_stay_so() -> None:
    square, wide = model("s3", "s3", ""), model("s3", "s4", "")
    make_plain(square)
    make_plain(wide)
    assert square != wide
