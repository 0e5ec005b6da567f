# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of floats with weights of 2, 4 and 8 bits: kept so under few rows, widened with a remark under many."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from models import build
from models._inputs import random_inputs

RNG = np.random.default_rng(67)
F32 = np.float32


def _weights(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    info = ml_dtypes.iinfo(dtype)
    return RNG.integers(int(info.min), int(info.max) + 1, shape).astype(dtype)


def _tensor(array: np.ndarray, name: str) -> onnx.TensorProto:
    number = helper.np_dtype_to_tensor_dtype(array.dtype)
    plain = array.dtype in (F32, np.int8, np.uint8)
    return (
        numpy_helper.from_array(array, name)
        if plain
        else helper.make_tensor(name, number, array.shape, array.flatten())
    )


def _model(
    rows: list[int | str], w: np.ndarray, axis: int, block: int, zero: bool = True, transposed: bool = False
) -> onnx.ModelProto:
    """x [*rows, k] times weights that are dequantized: [k, n], or transposed [n, k]; `block` 0: a scale per column."""
    shape = list(w.shape)
    if block:
        shape[axis] = -(-shape[axis] // block)
    else:
        shape = [shape[axis]]
    constants = {"w": w, "s": RNG.uniform(0.01, 0.1, shape).astype(F32)}
    constants |= {"z": _weights(w.dtype.name, tuple(shape))} if zero else {}
    extra = {"block_size": block} if block else {}
    nodes = [helper.make_node("DequantizeLinear", [*constants], ["d"], axis=axis, **extra)]
    if transposed:
        nodes.append(helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]))
    nodes.append(helper.make_node("MatMul", ["x", "t" if transposed else "d"], ["y"]))
    k, n = w.shape[::-1] if transposed else w.shape
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [*rows, k])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [*rows, n])
    graph = helper.make_graph(nodes, "g", [x], [y], [_tensor(a, name) for name, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)


def _reference(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(y) for y in ReferenceEvaluator(proto).run(None, inputs)]


def _check(proto: onnx.ModelProto, x: np.ndarray, target: str = "cpu") -> tw.Model:
    """Right beside onnx's evaluator, and the same bits with any number of threads."""
    model = tw.compile(proto, target, threads=1)
    found = model(x)[0]
    (want,) = _reference(proto, {"x": x})
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * float(np.abs(want).max()))
    np.testing.assert_array_equal(tw.compile(proto, target, threads=2)(x)[0], found)
    return model


def _bits(proto: onnx.ModelProto, target: str = "cpu") -> list[int]:
    text = tw.compile(proto, target, stop_after="plan")
    return [int(bits) for bits in re.findall(r"tile.packed = {bits = (\d)", text)]


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize(
    ("kind", "bits"), [("int4", 4), ("uint4", 4), ("int8", 8), ("uint8", 8), ("int2", 2), ("uint2", 2)]
)
@pytest.mark.parametrize("zero", [False, True])
def test_kinds(target: str, kind: str, bits: int, zero: bool) -> None:
    proto = _model([1], _weights(kind, (128, 160)), axis=0, block=32, zero=zero)
    _check(proto, RNG.standard_normal((1, 128), F32), target)
    assert _bits(proto, target) == [bits]


def _of_bits(bits: int, unsigned: bool, shape: tuple[int, int]) -> np.ndarray:
    """Codes in bytes that need so many bits."""
    low, high = (0, 1 << bits) if unsigned else (-(1 << bits - 1), 1 << bits - 1)
    codes = RNG.integers(low, high, shape)
    codes[0, :2] = low, high - 1
    return codes.astype(np.uint8 if unsigned else np.int8)


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("bits", range(1, 9))
def test_bits_are_rounded_to_widths_that_machines_have(bits: int, unsigned: bool) -> None:
    """SparTA's bit rounding: codes take the next of 2, 4 and 8 bits, whatever type holds them in the model."""
    proto = _model([1], _of_bits(bits, unsigned, (128, 96)), axis=0, block=32, zero=False)
    _check(proto, RNG.standard_normal((1, 128), F32))
    assert _bits(proto) == [next(width for width in (2, 4, 8) if bits <= width)]


def test_widths_stay_apart() -> None:
    """Weights of two widths under one operand: neither is lifted to the other's."""
    one, other = (_model([1], _of_bits(bits, False, (128, 96)), axis=0, block=32, zero=False) for bits in (3, 8))
    for node in other.graph.node:
        node.input[:] = [name if name == "x" else f"{name}2" for name in node.input]
        node.output[:] = [f"{name}2" for name in node.output]
    for tensor in [*other.graph.initializer, *other.graph.output]:
        tensor.name += "2"
    one.graph.node.extend(other.graph.node)
    one.graph.initializer.extend(other.graph.initializer)
    one.graph.output.extend(other.graph.output)
    x = RNG.standard_normal((1, 128), F32)
    for found, want in zip(tw.compile(one, threads=1)(x), _reference(one, {"x": x}), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5 * float(np.abs(want).max()))
    assert sorted(_bits(one)) == [4, 8]


@pytest.mark.parametrize("kind", ["int4", "uint8"])
@pytest.mark.parametrize(
    ("shape", "axis", "block", "transposed"),
    [
        ((256, 96), 0, 16, False),
        ((96, 256), 1, 64, True),
        ((101, 77), 0, 16, False),  # the last block is a part of one, columns are no whole vectors
        ((101, 77), 1, 0, False),  # a scale of each column, sums of an odd length
        ((77, 101), 0, 0, True),
        ((101, 77), 0, 0, False),  # a scale of each row of the sums
        ((77, 102), 1, 32, True),
        ((90, 64), 0, 128, False),  # one block, longer than the sums
        ((1000, 5), 0, 8, False),
    ],
)
def test_shapes(kind: str, shape: tuple[int, int], axis: int, block: int, transposed: bool) -> None:
    proto = _model([1], _weights(kind, shape), axis, block, transposed=transposed)
    _check(proto, RNG.standard_normal((1, shape[transposed]), F32))
    assert _bits(proto) == [4 if kind == "int4" else 8]


@pytest.mark.parametrize("rows", [[1], [2], [3], [5], [8], [2, 3], [4, 1]], ids=str)
@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_rows(rows: list[int], kind: str) -> None:
    proto = _model([*rows], _weights(kind, (192, 208)), axis=0, block=32, zero=False)
    _check(proto, RNG.standard_normal((*rows, 192), F32))
    assert _bits(proto) == [4 if kind == "int4" else 8]


@pytest.mark.parametrize("kind", ["int4", "uint8"])
def test_rows_of_the_run(kind: str) -> None:
    """One artifact for a decode step and a prompt: weights stay small."""
    proto = _model(["rows"], _weights(kind, (128, 208)), axis=0, block=32)
    assert _bits(proto) == [4 if kind == "int4" else 8]
    for rows in (1, 2, 7, 33):
        _check(proto, RNG.standard_normal((rows, 128), F32))


def _remarks(model: tw.Model) -> list[str]:
    return [r["message"] for r in model.report_data().get("remarks", [])]


def test_many_rows_are_told() -> None:
    proto = _model([256], _weights("int4", (128, 160)), axis=0, block=32)
    model = _check(proto, RNG.standard_normal((256, 128), F32))
    assert not _bits(proto)
    (told,) = (text for text in _remarks(model) if "weights" in text)
    assert re.fullmatch(
        r"multiplies weights of 4 bits in f32, 8 times the memory: each meets 256 rows, and widening it for these "
        r"again and again would take \d\.\d times as long",
        told,
    )


def test_scales_of_lanes_are_told() -> None:
    """Blocks along the columns: neighbouring lanes would share a scale."""
    proto = _model([2], _weights("int8", (512, 512)), axis=1, block=32)
    model = _check(proto, RNG.standard_normal((2, 512), F32))
    assert not _bits(proto)
    told = "multiplies small weights in f32: neighbours along a row of the result share scales, and are lanes"
    assert told in _remarks(model)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_decoder(tmp_path: Path, kind: str) -> None:
    """A decode step in grouped-query attention: the artifact takes the bytes of the weights, not those of f32."""
    sizes = dict(layers=2, hidden=128, heads=4, kv_heads=2, intermediate=256, vocabulary=512, positions=64)
    proto = build("decoder", sequence=1, past=15, weights=kind, **sizes)
    inputs = random_inputs(proto)
    want = _reference(proto, inputs)
    model = tw.compile(proto, threads=1)
    found = model(**inputs)
    for mine, theirs in zip(found, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)
    for one, other in zip(tw.compile(proto, threads=2)(**inputs), found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(_bits(proto)) >= 7 * 2
    small, wide = tmp_path / "small.tw", tmp_path / "wide.tw"
    model.save(str(small))
    tw.compile(build("decoder", sequence=1, past=15, **sizes)).save(str(wide))
    saved = _size(wide) - _size(small)
    products = sum(
        a.size for t in proto.graph.initializer if t.name.endswith(".steps") for a in [numpy_helper.to_array(t)]
    )
    each = 4 - (0.5 if kind == "int4" else 1) - 4 / 32
    assert saved > 0.9 * products * each


def _size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*")) if path.is_dir() else path.stat().st_size
