# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent attentions' operators: LinearAttention and its gate, causal convolutions with a state, gated norms."""

from __future__ import annotations

from tilewright.frontend.builder.dtypes import F32
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widen, widened
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN, as_standard, wanted
from tilewright.frontend.onnx.ops.contrib.normalization import rms_of
from tilewright.frontend.onnx.ops.math.activations import swish_of
from tilewright.frontend.onnx.ops.math.elementwise import activation_body
from tilewright.frontend.onnx.ops.nn.convolution import causal_conv
from tilewright.frontend.onnx.ops.nn.linear_attention import linear_attention
from tilewright.frontend.onnx.registry import Builder, Node, op

#: attributes with a meaning that only CUDA's kernels have, and their values for none
_CONV_DEFAULTS = {
    "dilation": 1,
    "ndim": 1,
    "channels_last": 0,
    "state_window": 0,
    "state_update_capacity": 0,
    "state_length": 0,
    "input_channel_offset": 0,
    "input_channels": 0,
}


def _only_defaults(node: Node, defaults: dict[str, int]) -> None:
    for name, value in defaults.items():
        if node.attr(name, value) != value:
            node.unsupported(f"{name}={node.attr(name)}; export the model with {name}={value}")


@op("CausalConvWithState", domain=DOMAIN)
def old_causal_conv(
    b: Builder, node: Node, x: Tensor, w: Tensor, bias: Tensor | None = None, past: Tensor | None = None
) -> list[Tensor]:
    """The standard's, for one spatial dimension behind the channels."""
    _only_defaults(node, _CONV_DEFAULTS)
    return causal_conv(b, as_standard(node), x, w, bias, past)


@op("LinearAttention", domain=DOMAIN)
def old_linear_attention(b: Builder, node: Node, q: Tensor, k: Tensor, v: Tensor, *rest: Tensor | None) -> list[Tensor]:
    """The standard's, with one state at a time."""
    _only_defaults(node, {"state_window": 0})
    return linear_attention(b, as_standard(node), q, k, v, *rest)


@op("LinearAttentionGate", domain=DOMAIN)
def linear_attention_gate(
    b: Builder, node: Node, x: Tensor, bias: Tensor, scale: Tensor, rate: Tensor | None = None
) -> list[Tensor]:
    """scale * softplus(x + bias), the decay; sigmoid of the rate."""
    softplus, sigmoid = activation_body("Softplus"), activation_body("Sigmoid")
    assert softplus is not None and sigmoid is not None
    wide = [b.cast(v, F32) for v in (x, bias, scale)]
    results = [b.cast(b.elementwise(lambda m, x, v, s: s * softplus(m, x + v), *wide), x.dtype)]
    if wanted(node, 1):
        if rate is None:
            node.wrong("the output beta needs the input b")
        results.append(b.cast(b.elementwise(sigmoid, widen(b, rate)), rate.dtype))
    return results


@op("GatedRMSNorm", domain=DOMAIN)
@widened
def gated_rms_norm(b: Builder, node: Node, x: Tensor, scale: Tensor, gate: Tensor) -> Tensor:
    """RMSNormalization of groups of the last dimension, as long as the scale, times the gate's activation."""
    name, size = node.attr("activation", "silu"), scale.shape[0]
    if name not in ("silu", "swish", "sigmoid"):
        node.wrong(f"activation {name} is none of silu, swish and sigmoid")
    columns = x.shape[-1]
    if scale.rank != 1 or (isinstance(columns, int) and columns % size):
        node.wrong(f"{columns} columns do not divide into groups of {list(scale.shape)}")
    split = (*x.shape[:-1], columns // size, size)
    y, _ = rms_of(b, b.reshape(x, split), scale, [len(split) - 1], node.attr("epsilon", 1e-5))

    def body(m, y, g):
        return y * (swish_of(m, g, 1.0) if name != "sigmoid" else 1.0 / (1.0 + m.exp(-g)))

    return b.elementwise(body, b.reshape(y, x.shape), gate)


@op("BranchwiseRMSNorm", domain=DOMAIN)
@widened
def branchwise_rms_norm(b: Builder, node: Node, x: Tensor, scale: Tensor | None = None) -> Tensor:
    """RMSNormalization of each branch of [..., branches, size], or of [..., branches * size] by num_branches."""
    count, shape = node.attr("num_branches", 0), x.shape
    if count:
        if isinstance(shape[-1], int) and shape[-1] % count:
            node.wrong(f"{shape[-1]} columns do not divide into {count} branches")
        x = b.reshape(x, (*shape[:-1], count, shape[-1] // count))
    factor = Tensor.known(1.0, x.dtype) if scale is None else scale
    if factor.rank == 1 and factor.shape[0] != x.shape[-1]:
        factor = b.reshape(factor, x.shape[-2:])
    y, _ = rms_of(b, x, factor, [x.rank - 1], node.attr("epsilon", 1e-5))
    return b.reshape(y, shape)


@op("ScaledSiLU", domain=DOMAIN)
def scaled_silu(b: Builder, node: Node, x: Tensor, scale: Tensor | None = None) -> Tensor:
    """z * sigmoid(z) of z = scale * x, each step rounded to the type of x."""
    dtype = x.dtype
    factor = Tensor.known(node.attr("alpha", 1.0), F32) if scale is None else b.cast(b.reshape(scale, ()), F32)
    z = b.elementwise(lambda m, x, s: m.cast(m.cast(x, F32) * s, dtype), x, factor, dtype=dtype)
    gate = b.elementwise(lambda m, z: m.cast(1.0 / (1.0 + m.exp(-m.cast(z, F32))), dtype), z, dtype=dtype)
    return b.elementwise(lambda m, z, g: z * g, z, gate)


@op("GatedAdd", domain=DOMAIN)
def gated_add(b: Builder, node: Node, x: Tensor, y: Tensor, gate: Tensor, w: Tensor | None = None) -> Tensor:
    """x + y * gate, the gate [..., 1] of each row."""
    if w is not None:
        node.unsupported("a gate that is projected inside (gate_weight); export the projection as MatMul and Sigmoid")
    return b.elementwise(lambda m, x, p: x + p, x, b.elementwise(lambda m, y, g: y * g, y, gate))
