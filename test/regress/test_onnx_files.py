# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damaged ONNX files that once made the front end fail as if it had a bug, each as small as it could be made."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx
from tilewright.frontend.onnx.inference import InferenceFailed, inferred

LARGE = 1 << 40
LARGEST = (1 << 63) - 1


def model(
    nodes: onnx.NodeProto | list[onnx.NodeProto],
    shapes: dict[str, Sequence[int]],
    constants: dict[str, object] | None = None,
    kind: int = TensorProto.FLOAT,
    version: int = 22,
    shape: Sequence[int] | None = None,
) -> bytes:
    """A file of a graph with inputs of these shapes and the output `y`, which is declared with `shape`."""
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    known = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    nodes = nodes if isinstance(nodes, list) else [nodes]
    graph = helper.make_graph(nodes, "case", inputs, [helper.make_tensor_value_info("y", kind, shape)], known)
    imports = [helper.make_opsetid("", version), helper.make_opsetid("ai.onnx.ml", 5)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString()


def node(kind: str, *inputs: str, **attributes: object) -> onnx.NodeProto:
    """A node that makes `y`."""
    return helper.make_node(kind, inputs, ["y"], **attributes)


def tree(yes: int) -> onnx.NodeProto:
    """A tree of one node and one leaf; the node's child is `yes` where its condition holds."""
    one = numpy_helper.from_array(np.ones(1, np.float32))
    modes = numpy_helper.from_array(np.zeros(1, np.uint8))
    sides = {"nodes_truenodeids": [yes], "nodes_trueleafs": [0], "nodes_falsenodeids": [0], "nodes_falseleafs": [1]}
    leaf = {"leaf_weights": one, "leaf_targetids": [0], "tree_roots": [0]}
    return node(
        "TreeEnsemble",
        "x",
        domain="ai.onnx.ml",
        nodes_splits=one,
        nodes_featureids=[0],
        nodes_modes=modes,
        **sides,
        **leaf,
    )


# What is wrong -> a part of the message, and the file.
BROKEN = {
    # The blocks of a reshape were sought beyond the end of its shapes.
    "a shape that does not divide": (
        "elements do not fit",
        model(node("SpaceToDepth", "x", blocksize=2), {"x": [1, 1, 3, 3]}),
    ),
    "a norm of order 0": ("no norm of order 0", model(node("GlobalLpPool", "x", p=0), {"x": [1, 1, 3, 3]})),
    # The number of elements in a window was a sum of none.
    "an empty window": ("must be positive", model(node("AveragePool", "x", kernel_shape=[2, 0]), {"x": [1, 1, 3, 3]})),
    "a stride of 0": (
        "must be positive",
        model(node("MaxPool", "x", kernel_shape=[2], strides=[0]), {"x": [1, 1, 3]}),
    ),
    # Only the dimensions of the first input were looked at.
    "ranks of a cache": (
        "inputs of 3 and 4 dimensions",
        model(
            node("Attention", "x", "x", "x", "", "z", "z"),
            {"x": [1, 1, 2, 2], "z": [1, 1, 2]},
            version=24,
        ),
    ),
    # An infinity for masked places was made an integer.
    "attention on integers": (
        "type int64",
        model(node("Attention", "x", "x", "x", is_causal=1), {"x": [1, 1, 2, 2]}, kind=TensorProto.INT64, version=24),
    ),
    # The shape that was added to the statistics' ones was asserted to fit.
    "statistics of a normalization": (
        "does not fit into",
        model(
            node("BatchNormalization", "x", "s", "s", "s", "s"),
            {"x": [1, 2, 3]},
            {"s": np.ones(3, np.float32)},
        ),
    ),
    "a resize of nothing": (
        "no elements to resize",
        model(node("Resize", "x", "", "", "n"), {"x": [1, 0]}, {"n": np.array([1, 3])}),
    ),
    "a parameter without elements": (
        "no elements",
        model(
            node("NonMaxSuppression", "x", "z", "", "t"),
            {"x": [1, 2, 4], "z": [1, 1, 2]},
            {"t": np.zeros(0, np.float32)},
        ),
    ),
    "weights of a loss": (
        "instead of one",
        model(
            node("NegativeLogLikelihoodLoss", "x", "t", "w"),
            {"x": [2, 3]},
            {"t": np.zeros(2, np.int64), "w": np.float32(1)},
        ),
    ),
    # Each part was compared with that dimension of what the model declares.
    "a declared rank": (
        "1 dimensions that the model declares",
        model(node("Split", "x", axis=1, num_outputs=1), {"x": [2, 3]}, shape=[2]),
    ),
    "columns of less than a channel": (
        "do not make one channel",
        model(node("Col2Im", "x", "i", "k"), {"x": [1, 1, 1]}, {"i": np.array([2, 2]), "k": np.array([2, 2])}),
    ),
    "a bias of a recurrent layer": (
        "instead of 2",
        model(
            node("RNN", "x", "w", "r", "x"),
            {"x": [1, 1, 1]},
            {"w": np.ones((1, 2, 1), np.float32), "r": np.ones((1, 2, 2), np.float32)},
        ),
    ),
    "an absent input among many": ("is missing", model(node("Mean", "", "x"), {"x": [2]})),
    "places of n-grams": (
        "ngram_indexes for 2 n-grams",
        model(
            node(
                "TfIdfVectorizer",
                "x",
                mode="TF",
                min_gram_length=1,
                max_gram_length=1,
                max_skip_count=0,
                ngram_counts=[0],
                ngram_indexes=[0],
                pool_int64s=[3, 4],
            ),
            {"x": [3]},
            kind=TensorProto.INT64,
        ),
    ),
    "heads without elements": (
        "heads have no elements",
        model(node("Attention", "x", "x", "z"), {"x": [1, 1, 2, 0], "z": [1, 1, 2, 1]}, version=24),
    ),
    "a scan of what is absent": (
        "none may be absent",
        model(node("Scan", "", body=helper.make_graph([], "body", [], []), num_scan_inputs=1), {"x": [2]}),
    ),
    "a region of interest that is none": (
        "region of interest of 8 numbers",
        model(
            node("Resize", "x", "roi", "s", coordinate_transformation_mode="tf_crop_and_resize"),
            {"x": [1, 1, 3, 3]},
            {"roi": np.zeros(2, np.float32), "s": np.ones(4, np.float32)},
        ),
    ),
    "a stage of attention that there is none": (
        "no qk_matmul_output_mode 7",
        model(
            helper.make_node("Attention", ["x", "x", "x"], ["a", "k", "v", "y"], qk_matmul_output_mode=7),
            {"x": [1, 1, 2, 2]},
            version=24,
        ),
    ),
    "an initial state of another size": (
        "an initial state",
        model(
            node("RNN", "x", "w", "r", "", "", "h", hidden_size=2),
            {"x": [3, 1, 2], "h": [1, 1, 3]},
            {"w": np.zeros((1, 2, 2), np.float32), "r": np.zeros((1, 2, 2), np.float32)},
        ),
    ),
    "a part of a negative size": (
        "does not make 2 parts",
        model(helper.make_node("Split", ["x", "s"], ["y", "z"]), {"x": [4]}, {"s": np.array([-1, 5])}),
    ),
    "a negative number of heads": (
        "would be made",
        model(node("RotaryEmbedding", "x", "c", "c", num_heads=-1), {"x": [2, 3, 8], "c": [2, 3, 1]}, version=23),
    ),
    "a negative window": (
        "would be made",
        model(
            node("MaxUnpool", "x", "i", kernel_shape=[2, -5], strides=[2, 2]), {"x": [1, 1, 2, 2], "i": [1, 1, 2, 2]}
        ),
    ),
    # Numbers that no integer, and no integer of 32 bits, can hold.
    "a seed without end": ("infinity", model(node("Bernoulli", "x", seed=math.inf), {"x": [2]})),
    "positions of queries": (
        "out of bounds",
        model(
            [
                helper.make_node("Cast", ["m"], ["n"], to=7),
                node("Attention", "q", "k", "k", "", "", "", "n", is_causal=1),
            ],
            {"q": [1, 2, LARGE, 8], "k": [1, 2, 4, 8], "m": [1]},
            version=24,
        ),
    ),
    # The sizes of the result are read off the offsets.
    "ranks of offsets": (
        "need 4 dimensions",
        model(node("DeformConv", "x", "w", "o"), {"x": [1, 1, 3, 3], "w": [1, 1, 2, 2], "o": [1, 8, 2]}),
    ),
    "a sequence as a position": (
        "position is a sequence",
        model([helper.make_node("SequenceConstruct", ["x"], ["s"]), node("SequenceErase", "s", "s")], {"x": [1]}),
    ),
    # Divided by the length of a frame.
    "frames without samples": (
        "a frame has 0 samples",
        model(node("STFT", "x", "s", "w"), {"x": [1, 8, 1], "w": [0]}, {"s": np.int64(2)}),
    ),
    # A negative size went to a type.
    "padding that leaves nothing": (
        "leaves a result of",
        model(
            node("ConvTranspose", "x", "w", pads=[LARGE, 0]), {"x": [1, 1, 3]}, {"w": np.zeros((1, 1, 1), np.float32)}
        ),
    ),
    # A walk that had no end, in the front end and in the compiled model.
    "a tree with a cycle": ("child of two others", model(tree(yes=0), {"x": [1, 1]}, version=22)),
    "a tree with nodes that are not there": ("none of the nodes", model(tree(yes=5), {"x": [1, 1]}, version=22)),
    # ONNX's own functions take 32 bits.
    "an opset version": ("asks for version", model(node("Relu", "x"), {"x": [2]}, version=LARGE)),
}

TOO_LARGE = {
    # Positions of a window, all made as an array.
    "windows": (
        "too large to be computed",
        model(node("AveragePool", "x", kernel_shape=[1], pads=[0, LARGE]), {"x": [1, 1, 3]}),
    ),
    # Sizes beyond 64 bits went to types.
    "padding": (
        "larger than any memory",
        model(node("Conv", "x", "w", pads=[LARGEST, 0]), {"x": [1, 1, 3]}, {"w": np.zeros((1, 1, 1), np.float32)}),
    ),
    "inputs": ("larger than any memory", model(node("Relu", "x"), {"x": [0, LARGEST]})),
    "results": ("larger than any memory", model(node("MatMul", "x", "z"), {"x": [LARGE, 1], "z": [1, LARGE]})),
    # Shape inference, asked for the shapes of what could not be imported, had an entry for each element. And a
    # number of axes for each of which there would be code.
    "axes": (
        "of sizes or axes",
        model(
            [helper.make_node("Cast", ["z"], ["axes"], to=TensorProto.INT64), node("ReduceSum", "x", "axes")],
            {"x": [2], "z": [LARGE]},
        ),
    ),
    # Each was made a Python number.
    "a shape with many entries": (
        "of sizes or axes",
        model(
            [helper.make_node("ConstantOfShape", ["n"], ["s"]), helper.make_node("Cast", ["s"], ["i"], to=7)]
            + [node("Reshape", "x", "i")],
            {"x": [1]},
            {"n": np.array([5000])},
        ),
    ),
    "the length of a transform": (
        "too large to be computed",
        model(node("DFT", "x", "length"), {"x": [1, 3, 1]}, {"length": np.int64(LARGE)}),
    ),
    "a range": (
        "too large to be computed",
        model(
            [helper.make_node("Range", ["a", "b", "c"], ["r"]), node("Add", "x", "r")],
            {"x": [1]},
            {"a": np.float32(0), "b": np.float32(LARGE), "c": np.float32(1)},
        ),
    ),
}


def test_windows_wider_than_positions() -> None:
    """The width was added to 32-bit positions."""
    import_onnx(model(node("Attention", "x", "x", "x", left_window_size=LARGE), {"x": [1, 1, 2, 2]}, version=25))


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_the_users(case: str) -> None:
    message, data = BROKEN[case]
    with pytest.raises(UserError, match=message):
        import_onnx(data)


@pytest.mark.parametrize("case", TOO_LARGE)
def test_sizes_have_bounds(case: str) -> None:
    message, data = TOO_LARGE[case]
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(data)


def test_what_crashes_shape_inference() -> None:
    """ONNX's shape inference reads before an array for GatherND with a negative number of batch dimensions."""
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-128)
    inputs = [info("x", 1, [2, 2, 2]), info("i", 7, [2, 1])]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], "g", inputs, [info("y", 1, None)]),
        opset_imports=[onnx.helper.make_opsetid("", 13)],
    )
    for _ in range(2):
        with pytest.raises(UserError, match="1 coordinates after -128 batch dimensions do not fit"):
            import_onnx(model)
    with contextlib.suppress(InferenceFailed):  # what it reads there may crash its own process, or be refused
        inferred(model, strict=False, values=True)


@pytest.mark.parametrize("attribute", ["group", "offset_group"])
@pytest.mark.parametrize("value", [0, -1])
def test_groups_that_are_none(attribute: str, value: int) -> None:
    """DeformConv divided its channels by the number of groups: by zero, or into negative sizes."""
    info = onnx.helper.make_tensor_value_info
    shapes = {"x": [1, 2, 3, 3], "w": [1, 2, 2, 2], "offset": [1, 16, 2, 2]}
    node = onnx.helper.make_node("DeformConv", list(shapes), ["y"], **{attribute: value})
    graph = onnx.helper.make_graph([node], "g", [info(n, 1, s) for n, s in shapes.items()], [info("y", 1, None)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=10)
    with pytest.raises(UserError, match="both are at least 1"):
        import_onnx(model)


def test_windows_over_padding_alone() -> None:
    """AveragePool of an input without columns: each window holds no element, and the factor was one over zero."""
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[2, 2, 2, 2])
    graph = onnx.helper.make_graph([node], "g", [info("x", 1, [1, 3, 28, 0])], [info("y", 1, None)])
    import_onnx(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=10))


def test_a_graph_attribute_without_outputs() -> None:
    """FlexAttention took the first of no results."""
    info = onnx.helper.make_tensor_value_info
    body = onnx.helper.make_graph([], "nothing", [info("p", 1, ["a", "b", "c", "d"])], [])
    node = onnx.helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", prob_mod=body)
    graph = onnx.helper.make_graph([node], "g", [info(n, 1, [1, 2, 3, 4]) for n in "qkv"], [info("y", 1, None)])
    opsets = [onnx.helper.make_opsetid("", 26), onnx.helper.make_opsetid("ai.onnx.preview", 1)]
    with pytest.raises(UserError, match="prob_mod has 0 outputs instead of one"):
        import_onnx(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10))


def test_resize_of_nothing() -> None:
    """Resize divided by the size of an axis without elements."""
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="cubic", antialias=1)
    inputs = [info("x", 1, [1, 1, 0, 4]), info("scales", 1, [4])]
    graph = onnx.helper.make_graph([node], "g", inputs, [info("y", 1, [1, 1, 2, 2])])
    with pytest.raises(UserError, match="dimension 2 has no elements to resize"):
        import_onnx(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10))


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_to_nothing(mode: str, target: str) -> None:
    """Resize to a size of 0 divided by it."""
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Resize", ["x", "", "", "n"], ["y"], mode=mode, antialias=int(mode != "nearest"))
    inputs = [info("x", 1, [1, 1, 4, 4]), info("n", 7, [4])]
    graph = onnx.helper.make_graph([node], "g", inputs, [info("y", 1, [0, 1, 3, 3])])
    imports = [onnx.helper.make_opsetid("", 19)]
    compiled = tw.compile(onnx.helper.make_model(graph, opset_imports=imports, ir_version=10), target=target)
    results = compiled(np.ones((1, 1, 4, 4), np.float32), np.array([0, 1, 3, 3]))
    assert results[0].shape == (0, 1, 3, 3)


def test_a_scan_of_scalars() -> None:
    """Scan asked a scalar for the size of its first dimension."""
    info = onnx.helper.make_tensor_value_info
    body = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["a", "b"], ["c"])], "body", [info(n, 1, []) for n in "ab"], [info("c", 1, [])]
    )
    node = onnx.helper.make_node("Scan", ["x", "z"], ["y"], body=body, num_scan_inputs=2)
    graph = onnx.helper.make_graph([node], "g", [info("x", 1, []), info("z", 1, [5])], [info("y", 1, None)])
    with pytest.raises(UserError, match="a scalar has no dimension to scan"):
        import_onnx(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10))


def test_what_only_the_checker_cannot_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that protobuf's Python parser takes and the checker's C++ parser does not ended in a ValueError."""

    def refuse(model: object) -> None:
        raise ValueError("Unable to parse proto from the given bytes")

    monkeypatch.setattr(onnx.checker, "check_model", refuse)
    info = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [info("x", 1, [2])], [info("y", 1, [2])])
    with pytest.raises(UserError, match="the ONNX model is invalid: Unable to parse"):
        import_onnx(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10))
