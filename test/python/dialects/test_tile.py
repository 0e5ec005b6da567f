# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types, attributes and builders of the tile dialect in Python."""

from collections.abc import Iterator

import pytest

from tilewright.dialects import tile
from tilewright.mlir import ir
from tilewright.mlir.dialects import arith, func, math, memref


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with ir.Context(), ir.Location.unknown():
        yield


def f32() -> ir.Type:
    return ir.F32Type.get()


def tensor(*shape: int) -> ir.Type:
    return ir.RankedTensorType.get(shape, f32())


def buffer(*shape: int) -> ir.Type:
    return ir.MemRefType.get(shape, f32())


def module() -> tuple[ir.Module, ir.InsertionPoint]:
    made = ir.Module.create()
    return made, ir.InsertionPoint(made.body)


def checked(made: ir.Module) -> str:
    """The text of a module that verifies and survives printing and parsing."""
    made.operation.verify()
    text = str(made)
    assert str(ir.Module.parse(text)) == text
    return text


def test_tile_type() -> None:
    layout = tile.LayoutAttr.get(perm=[1, 0])
    plain, with_layout = tile.TileType.get([8, 32], f32()), tile.TileType.get([8, 32], f32(), layout)
    assert str(plain) == "!tile.tile<8x32xf32>"
    assert (plain.shape, plain.rank, plain.element_type, plain.layout) == ([8, 32], 2, f32(), None)
    assert with_layout.layout == layout and isinstance(with_layout.layout, tile.LayoutAttr)
    assert isinstance(ir.Type.parse("!tile.tile<f16>"), tile.TileType)
    assert isinstance(plain, ir.ShapedType)
    assert str(tile.TokenType.get()) == "!tile.token"


@pytest.mark.parametrize(
    ("shape", "element", "message"),
    [
        ([8, 0], "f32", "tile sizes must be positive, got 0"),
        ([8], "complex<f32>", "signless integers, floats or index"),
    ],
)
def test_tile_type_errors(shape: list[int], element: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tile.TileType.get(shape, ir.Type.parse(element))


def test_cast_errors() -> None:
    with pytest.raises(ValueError, match="Cannot cast type to TileType"):
        tile.TileType(f32())
    with pytest.raises(ValueError, match="Cannot cast attribute to LevelAttr"):
        tile.LevelAttr(ir.StringAttr.get("l1"))


def test_rtile() -> None:
    rtile = tile.RTileAttr.get({"register": [8, 32, 1], "l2": [128, 32, 384]}, order=[1, 0, 2])
    text = "#tile.rtile<l2 = [128, 32, 384], register = [8, 32, 1], order = [1, 0, 2]>"
    assert str(rtile) == text and ir.Attribute.parse(text) == rtile
    assert rtile.sizes == {"l2": [128, 32, 384], "register": [8, 32, 1]}
    assert rtile.order == [1, 0, 2]
    with pytest.raises(ValueError, match="level 'register' has 1 sizes where another level has 2"):
        tile.RTileAttr.get({"l2": [1, 2], "register": [1]})


def test_layout() -> None:
    layout = tile.LayoutAttr.get([1, 0], [1], [32], swizzle=128, interleave=2, storage=ir.F16Type.get())
    assert str(layout) == (
        "#tile.layout<perm = [1, 0], inner = [1], tiles = [32], swizzle = 128, interleave = 2, storage = f16>"
    )
    assert (layout.perm, layout.inner, layout.tiles) == ([1, 0], [1], [32])
    assert (layout.swizzle, layout.interleave, layout.storage) == (128, 2, ir.F16Type.get())
    identity = tile.LayoutAttr.get()
    assert (identity.perm, identity.swizzle, identity.interleave, identity.storage) == ([], None, None, None)
    with pytest.raises(ValueError, match="perm is no permutation"):
        tile.LayoutAttr.get([1, 1])


def test_level_kind_device() -> None:
    assert tile.LevelAttr.get("shared").name == "shared"
    with pytest.raises(ValueError, match="name must not be empty"):
        tile.LevelAttr.get("")
    assert tile.ReduceKindAttr.get("and").value == "and"
    with pytest.raises(ValueError, match="'sum' is no kind of reduction"):
        tile.ReduceKindAttr.get("sum")
    entries = ir.Attribute.parse('{name = "host", levels = [{name = "l1", bytes = 49152}]}')
    device = tile.DeviceAttr.get(entries)
    assert device.entries == entries and ir.Attribute.parse(str(device)) == device
    with pytest.raises(ValueError, match="a device needs a name"):
        tile.DeviceAttr.get(ir.DictAttr.get({}))


def test_kernel_and_launch() -> None:
    made, ip = module()
    with ip:
        with tile.kernel("softmax", [buffer(8, 64), buffer(8, 64)], grid_rank=1) as kernel:
            (source, target), (row,) = kernel.inputs, kernel.grid_ids
            values = tile.load(tile.TileType.get([1, 64], f32()), source, [row, 0])
            shifted = arith.subf(values, tile.broadcast(values.type, tile.reduce("max", values, [1])))
            powers = math.exp(shifted)
            total = tile.reduce(tile.ReduceKind.add, powers, [1])
            tile.store(arith.divf(powers, tile.broadcast(values.type, total)), target, [row, 0])

        @func.FuncOp.from_py_func(tensor(8, 64), tensor(8, 64))
        def main(x, y):
            return tile.launch("softmax", [8], [x], [y])

    text = checked(made)
    assert "tile.kernel @softmax(%arg0: memref<8x64xf32>, %arg1: memref<8x64xf32>) grid(%arg2) {" in text
    assert "tile.reduce max %0 dims [1] : !tile.tile<1x64xf32> -> !tile.tile<1x1xf32>" in text
    assert "outs(%arg1 : tensor<8x64xf32>) -> (tensor<8x64xf32>)" in text
    assert isinstance(made.body.operations[0], tile.KernelOp)
    assert len(made.body.operations[0].inputs) == 2


def test_memory_options() -> None:
    made, ip = module()
    with ip, tile.kernel("k", [buffer(8, 64), ir.IndexType.get()], 2, cluster=[2, 1]) as kernel:
        (m, n), (i, j) = kernel.inputs, kernel.grid_ids
        index_type = tile.TileType.get([4], ir.IndexType.get())
        rows = tile.iota(index_type, 0)
        pad = arith.constant(f32(), 1.0)
        gathered = tile.load(
            tile.TileType.get([4, 8], f32()), m, [0, j], indices=rows, along=0, valid=[n, 8], pad=pad, steps=[1, 2]
        )
        transposed = tile.transpose(gathered, [1, 0])
        tile.store(transposed, m, [i, j], dims=[1, 0], reduce="add", atomic=True)
        level = ir.MemRefType.get([64], f32(), memory_space=tile.LevelAttr.get("shared"))
        slot = tile.alloc(level, alignment=128)
        row = memref.subview(m, [0, 0], [1, 64], [1, 1])
        flat = buffer(64)
        with tile.async_() as movement:
            line = memref.collapse_shape(flat, row, [[0, 1]])
            tile.copy(line, slot, [])
        tile.await_([movement.token])
    text = checked(made)
    assert "grid(%arg2, %arg3) cluster [2, 1]" in text
    assert "steps [1, 2] indices %0 along 0 valid(%arg1, %c8) pad %cst" in text
    assert "dims [1, 0] reduce add atomic" in text
    assert 'tile.alloc {alignment = 128 : i64} : memref<64xf32, #tile.level<"shared">>' in text


def test_transpose_error() -> None:
    made, ip = module()
    with ip, tile.kernel("k", [buffer(4, 8)]) as kernel:
        value = tile.load(tile.TileType.get([4, 8], f32()), kernel.inputs[0], [0, 0])
        with pytest.raises(ValueError, match="is no permutation of the dimensions"):
            tile.transpose(value, [1, 1])
        with pytest.raises(TypeError, match="expected a tile"):
            tile.transpose(kernel.inputs[0], [1, 0])
    checked(made)


def test_group() -> None:
    made, ip = module()
    with ip:

        @func.FuncOp.from_py_func(tensor(8, 64))
        def main(x):
            with tile.group("l2", [x], [x.type]) as outer:
                with tile.group("register", outer.arguments, [x.type]) as inner:
                    result = math.exp(inner.arguments[0])
                    result.owner.attributes["test.rtile"] = tile.RTileAttr.get({"register": [8, 16]})
                    tile.yield_([result])
                tile.yield_(inner.results)
            return outer.results

    text = checked(made)
    assert 'tile.group "l2" (%arg1 = %arg0 : tensor<8x64xf32>) -> (tensor<8x64xf32>) {' in text
    assert "test.rtile = #tile.rtile<register = [8, 16]>" in text


def test_program() -> None:
    made, ip = module()
    with ip:
        with tile.kernel("step", [buffer(8)], 1):
            pass
        with tile.program("two", [buffer(8)], units=2) as (x,):
            tile.place("step", [0, 4], [8], 0, [x])
            tile.signal(0, 0)
            tile.wait(0, 1, 1)
            tile.place("step", [4, 8], [8], 1, [x])
    text = checked(made)
    assert "tile.place @step tasks [4, 8] of [8] on 1(%arg0 : memref<8xf32>)" in text


def test_verifier_error() -> None:
    made, ip = module()
    with ip, tile.kernel("k", [buffer(4, 8)]) as kernel:
        tile.load(tile.TileType.get([4, 8], f32()), kernel.inputs[0], [0])
    with pytest.raises(ir.MLIRError, match="gives 1 offsets for a memref of rank 2"):
        made.operation.verify()
