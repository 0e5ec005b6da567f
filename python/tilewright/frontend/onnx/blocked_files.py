# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files in which ONNX Runtime stored images in blocks of channels (com.microsoft.nchwc): their filters made plain.

At its highest level the optimizer lays out filters for the machine that it runs on: [o / B, i / B, window..., B, B], or
[o / B, i, window..., B] for depthwise convolutions and for images with fewer channels than a block. The file says
nothing of B, which is 8 on CPUs with AVX2 and 16 with AVX-512. Its operators are in `ops/contrib/blocked.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.core.errors import UnsupportedError, UserError

DOMAIN = "com.microsoft.nchwc"
_KEY = "nchwc_block"
_SIZES = (8, 16)


def with_plain_filters(model: onnx.ModelProto, folder: str) -> onnx.ModelProto:
    """The model with filters [o, i, window...], and the block's size as an attribute of what pads channels to it.

    Raises:
        UnsupportedError: the size of blocks does not follow from the file, or filters are no initializers.
        UserError: the model's metadata state a size that does not fit.
    """
    _refuse_bodies(model.graph.node)
    if not any(node.domain == DOMAIN for node in model.graph.node):
        return model
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    nodes = [node for node in plain.graph.node if node.domain == DOMAIN]
    stored = {t.name: t for t in plain.graph.initializer}
    convolutions = [node for node in nodes if node.op_type == "Conv"]
    outputs = {n.output[0]: stored[n.input[1]].dims[0] for n in convolutions if n.input[1] in stored}
    block = _block(plain, outputs, [n for n in nodes if n.op_type == "ReorderOutput"])
    done: dict[tuple[str, bool], str] = {}
    for node in convolutions:
        _make_plain(plain.graph, node, stored, block, folder, done)
    for node in nodes:
        if node.op_type == "ReorderInput":
            node.attribute.append(helper.make_attribute("block", block))
    return plain


def _refuse_bodies(nodes: Iterable[onnx.NodeProto]) -> None:
    """Filters are looked for in the main graph alone: taken for plain ones elsewhere, they would give wrong numbers."""
    for node in nodes:
        for graph in [g for a in node.attribute for g in (*a.graphs, *([a.g] if a.HasField("g") else []))]:
            found = next((n for n in graph.node if n.domain == DOMAIN), None)
            if found is not None:
                raise UnsupportedError(
                    f"{DOMAIN}.{found.op_type} in a body of {node.op_type} {node.name or node.output[0]}: blocks of "
                    "channels have a lowering in the main graph alone; write the file again with "
                    "GraphOptimizationLevel.ORT_ENABLE_EXTENDED"
                )
            _refuse_bodies(graph.node)


def _block(model: onnx.ModelProto, outputs: dict[str, int], ends: Iterable[onnx.NodeProto]) -> int:
    """Channels of a block: what the numbers of filters allow, or the model's metadata state.

    Args:
        model: the model.
        outputs: the filters of each convolution, by its result.
        ends: what keeps of a result the channels that are no padding.
    """
    possible = [n for n in _SIZES if all(count % n == 0 for count in outputs.values())]
    for node in ends:
        kept, count = next(a.i for a in node.attribute if a.name == "channels"), outputs.get(node.input[0])
        possible = [n for n in possible if count is None or -(-kept // n) * n == count]
    stated = next((p.value for p in model.metadata_props if p.key == _KEY), None)
    if stated is not None:
        if stated not in map(str, possible):
            raise UserError(f"the model's metadata state {_KEY}={stated}; its filters allow {possible}")
        return int(stated)
    if len(possible) == 1:
        return possible[0]
    raise UnsupportedError(
        f"{DOMAIN}.Conv: the filters lie in blocks for the machine that ran ONNX Runtime's optimizer, of "
        f"{' or '.join(map(str, possible)) or 'an unknown number of'} channels, and the file does not say which. Write "
        f"it again with GraphOptimizationLevel.ORT_ENABLE_EXTENDED, or state {_KEY} (8: AVX2, 16: AVX-512) in the "
        "model's metadata_props"
    )


def _make_plain(
    graph: onnx.GraphProto,
    node: onnx.NodeProto,
    stored: dict[str, onnx.TensorProto],
    block: int,
    folder: str,
    done: dict[tuple[str, bool], str],
) -> None:
    name = node.input[1]
    if name not in stored:
        raise UnsupportedError(f"{DOMAIN}.Conv {node.name or node.output[0]}: filters that are not in the file")
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    inputs = stored[name].dims[1]
    whole = inputs == 1 if groups > 1 else inputs < block
    if (name, whole) not in done:
        done[name, whole] = f"{name}/plain" + ("/whole" if whole else "")
        array = plain_filter(numpy_helper.to_array(stored[name], folder), block, whole)
        graph.initializer.append(numpy_helper.from_array(array, done[name, whole]))
    node.input[1] = done[name, whole]


def plain_filter(w: np.ndarray, block: int, whole: bool) -> np.ndarray:
    """Filters [o, i, window...] whose elements lie in blocks of outputs and, unless `whole`, of inputs."""
    outputs, inputs, *window = w.shape
    rank = len(window)
    if whole:
        split = w.reshape(outputs // block, inputs, *window, block)
        order = [0, 2 + rank, 1, *range(2, 2 + rank)]
    else:
        split = w.reshape(outputs // block, inputs // block, *window, block, block)
        order = [0, 3 + rank, 1, 2 + rank, *range(2, 2 + rank)]
    return np.ascontiguousarray(split.transpose(order)).reshape(w.shape)
