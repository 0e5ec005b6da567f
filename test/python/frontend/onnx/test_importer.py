# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loading, signatures, errors, weights and folding of the importer."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import check_numbers, import_onnx, interpret

from tilewright.compiler.external_data import external_files
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend.onnx import declared, signature


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(nodes, inputs, outputs, weights=None, opset=17):
    initializers = [numpy_helper.from_array(v, n) for n, v in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def product(batch="batch", weight=None):
    weight = np.ones((64, 32), np.float32) if weight is None else weight
    return model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        [value("x", TensorProto.FLOAT, [batch, 64])],
        [value("y", TensorProto.FLOAT, [batch, 32])],
        {"w": weight},
    )


def test_sources_give_the_same_module(tmp_path):
    model = product(3)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    texts = {str(import_onnx(source).module) for source in (model, model.SerializeToString(), path, str(path))}
    assert len(texts) == 1


def test_external_data(tmp_path):
    weight = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    path = tmp_path / "m.onnx"
    onnx.save(product(3, weight), path, save_as_external_data=True, location="m.bin", size_threshold=0)
    (array,) = import_onnx(path).weights.values()
    np.testing.assert_array_equal(array, weight)
    (tmp_path / "m.bin").unlink()
    with pytest.raises(UserError, match="initializer w: cannot read its data .element type 1, shape .64, 32"):
        import_onnx(path)


def test_missing_file():
    with pytest.raises(UserError, match=r"cannot read the ONNX model /nowhere/m.onnx: No such file"):
        import_onnx("/nowhere/m.onnx")


@pytest.mark.parametrize("data", [b"", b"garbage that is no protobuf", b"\x00" * 100])
def test_bytes_that_are_no_model(data):
    with pytest.raises(UserError, match="not an ONNX model"):
        import_onnx(data)


def test_truncated_model():
    data = product(3).SerializeToString()
    for length in range(1, len(data), 97):
        with pytest.raises((UserError, UnsupportedError)):
            import_onnx(data[:length])


@pytest.mark.parametrize("where", ["name", "input", "output"])
def test_names_that_are_not_text(where):
    data = product(3).SerializeToString()
    name = {"name": b"product", "input": b"x", "output": b"y"}[where]
    with pytest.raises(UserError, match="damaged|not an ONNX model"):
        import_onnx(data.replace(name, b"\xff" * len(name)))


def test_object_that_is_no_model():
    with pytest.raises(UserError, match="cannot read a model from int"):
        import_onnx(3)


def test_symbolic_dimension_by_name_and_by_input():
    assert import_onnx(product(), shapes={"batch": 5}).inputs[0].shape == (5, 64)
    assert import_onnx(product(), shapes={"x": (7, 64)}).outputs[0].shape == (7, 32)


def test_missing_size_says_how_to_give_it():
    with pytest.raises(UserError, match=r'batch \(dimension 0 of x\).*shapes=\{"batch": 1\}'):
        import_onnx(product())


def test_unknown_symbol_is_refused():
    with pytest.raises(UserError, match="shapes names bach, which is no symbolic dimension.*its inputs x"):
        import_onnx(product(2), shapes={"bach": 5})
    with pytest.raises(UserError, match="shapes names bach, .*its dimensions are batch"):
        import_onnx(product(), shapes={"bach": 5})


def test_a_whole_shape_beside_the_size_of_its_dimension():
    assert import_onnx(product(), shapes={"batch": 7, "x": (7, 64)}).outputs[0].shape == (7, 32)
    with pytest.raises(UserError, match=r"shapes gives x the shape \[7, 64\], but the model declares \[5, 64\]"):
        import_onnx(product(), shapes={"batch": 5, "x": (7, 64)})


def test_dimension_without_a_name_asks_for_the_whole_shape():
    model = product()
    model.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    with pytest.raises(UserError, match=r'shapes=\{"x": \[1, 64\]\} \(in a command: --shape x=1,64\)'):
        import_onnx(model)


def test_operators_are_looked_up_before_sizes_are_asked_for():
    model = product()
    model.graph.node[0].op_type = "NoSuchOp"
    with pytest.raises(UnsupportedError, match="operators without a lowering"):
        import_onnx(model)


def test_an_opset_of_the_future_is_a_remark():
    model = product(2)
    assert not import_onnx(model).remarks
    model.opset_import[0].version = 99
    assert "opset 99 is newer than" in import_onnx(model).remarks[""]


def test_whole_shape_that_does_not_fit():
    with pytest.raises(UserError, match=r"shapes gives x the shape \[7, 65\], but the model declares \[batch, 64\]"):
        import_onnx(product(), shapes={"x": (7, 65)})


def test_unsupported_operators_are_listed_at_once():
    nodes = [
        helper.make_node("ImageDecoder", ["s"], ["t"], name="first"),
        helper.make_node("Relu", ["x"], ["r"], name="fine"),
        helper.make_node("NoSuchOp", ["r"], ["y"], name="second", domain="my.domain"),
        helper.make_node("NoSuchOp", ["y"], ["z"], name="third", domain="my.domain"),
    ]
    model = model_of(nodes, [value("x", TensorProto.FLOAT, [2])], [value("z", TensorProto.FLOAT, [2])])
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(model)
    text = str(caught.value)
    assert "ImageDecoder: first" in text
    assert "my.domain.NoSuchOp: second, third" in text
    assert "Relu" not in text


def test_cycle_is_refused():
    nodes = [helper.make_node("Relu", ["b"], ["a"], name="n1"), helper.make_node("Relu", ["a"], ["b"], name="n2")]
    model = model_of(nodes, [value("x", TensorProto.FLOAT, [2])], [value("b", TensorProto.FLOAT, [2])])
    with pytest.raises(UserError, match="invalid|before any node"):
        import_onnx(model)


def test_functions_of_the_model_are_inlined():
    body = [helper.make_node("Mul", ["a", "a"], ["s"]), helper.make_node("Relu", ["s"], ["b"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    function = helper.make_function("my", "Square", ["a"], ["b"], body, opsets[:1])
    nodes = [
        helper.make_node("Square", ["x"], ["t"], domain="my"),
        helper.make_node("Square", ["t"], ["y"], domain="my"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [3])])
    model = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=8)
    check_numbers(model, {"x": np.float32([1, -2, 3])})


def test_weights_are_globals_without_bytes():
    weight = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    imported = import_onnx(product(3, weight))
    (name,) = imported.weights
    text = str(imported.module)
    assert "#extern = #ml_program.extern : tensor<64x32xf32>" in text
    assert f"ml_program.global private @{name}(#extern) : tensor<64x32xf32>" in text
    assert "dense<" not in text
    assert name.startswith("w_")
    assert len(name) == 18


def test_equal_weights_share_a_global():
    nodes = [helper.make_node("MatMul", ["x", "v"], ["a"]), helper.make_node("MatMul", ["a", "w"], ["y"])]
    weights = {"v": np.eye(32, dtype=np.float32), "w": np.eye(32, dtype=np.float32)}
    kinds = [value(n, TensorProto.FLOAT, [2, 32]) for n in ("x", "y")]
    assert len(import_onnx(model_of(nodes, kinds[:1], kinds[1:], weights)).weights) == 1


def test_locations_and_names():
    text = import_onnx(product(3)).module.operation.get_asm(enable_debug_info=True)
    assert 'loc("product")' in text
    assert 'tile.name = "x"' in text
    assert 'tile.name = "y"' in text


def test_shape_arithmetic_leaves_no_ops():
    """The chain that exporters emit for `x.view(x.shape[0], -1)`."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axis"], ["m"]),
        helper.make_node("Concat", ["m", "rest"], ["t"], axis=0),
        helper.make_node("Cast", ["t"], ["u"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["u"], ["v"], to=TensorProto.INT64),
        helper.make_node("Equal", ["v", "rest"], ["e"]),
        helper.make_node("Where", ["e", "v", "v"], ["w"]),
        helper.make_node("Reshape", ["x", "w"], ["y"]),
    ]
    weights = {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1])}
    inputs, outputs = [value("x", TensorProto.FLOAT, [3, 4, 5])], [value("y", TensorProto.FLOAT, [3, 20])]
    model = model_of(nodes, inputs, outputs, weights)
    imported = import_onnx(model)
    main = imported.module.body.operations[0]
    names = [op.operation.name for op in main.regions[0].blocks[0].operations]
    assert names == ["tensor.collapse_shape", "func.return"]


def test_attention_transposes_become_maps():
    """Head split, transposes, product, merge: after normalize nothing but the products computes."""
    nodes = [helper.make_node("Reshape", [n, "split"], [f"{n}4"]) for n in ("q", "k")]
    nodes += [helper.make_node("Transpose", ["q4"], ["qt"], perm=[0, 2, 1, 3])]
    nodes += [helper.make_node("Transpose", ["k4"], ["kt"], perm=[0, 2, 3, 1])]
    nodes += [helper.make_node("MatMul", ["qt", "kt"], ["scores"])]
    nodes += [helper.make_node("MatMul", ["scores", "qt"], ["context"])]
    nodes += [helper.make_node("Transpose", ["context"], ["ct"], perm=[0, 2, 1, 3])]
    nodes += [helper.make_node("Reshape", ["ct", "merge"], ["y"])]
    kinds = {n: value(n, TensorProto.FLOAT, [2, 6, 32]) for n in ("q", "k", "y")}
    shapes = {"split": np.array([2, 6, 4, 8]), "merge": np.array([2, 6, 32])}
    model = model_of(nodes, [kinds["q"], kinds["k"]], [kinds["y"]], shapes)
    random = np.random.default_rng(0)
    imported = check_numbers(model, {n: random.standard_normal((2, 6, 32)).astype(np.float32) for n in ("q", "k")})
    assert str(imported.module).count("linalg.generic") == 2


@pytest.mark.parametrize("source", ["x", "w", "known"])
def test_outputs_that_nothing_computes(source):
    model = model_of(
        [helper.make_node("Identity", [source if source != "known" else "w"], ["y"])],
        [value("x", TensorProto.FLOAT, [4])],
        [value("y", TensorProto.FLOAT, [4]), value("z", TensorProto.FLOAT, [4])],
        {"w": np.arange(4, dtype=np.float32)},
    )
    model.graph.node.append(helper.make_node("Identity", ["y"], ["z"]))
    x = np.float32([5, 6, 7, 8])
    results = interpret(import_onnx(model), {"x": x})
    for result in results:
        np.testing.assert_array_equal(result, x if source == "x" else np.arange(4, dtype=np.float32))


def test_old_opset_broadcast():
    node = helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)
    kinds = [value(n, TensorProto.FLOAT, [2, 3, 4]) for n in ("x", "y")]
    model = model_of([node], kinds[:1], kinds[1:], {"b": np.float32([1, 2, 3])}, opset=6)
    x = np.zeros((2, 3, 4), np.float32)
    (y,) = interpret(import_onnx(model), {"x": x})
    np.testing.assert_array_equal(y, x + np.float32([1, 2, 3])[:, None])


# Weights of all kinds, and models that break the rules -----------------------------------------------------------


def sparse(name, dims, items, indices):
    values = numpy_helper.from_array(np.float32(items), name)
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices), "i"), dims)


@pytest.mark.parametrize("indices", [[0, 4], [[0, 0], [1, 1]]])
@pytest.mark.parametrize("kind", ["initializer", "constant"])
def test_sparse_weights(kind, indices):
    weight = sparse("w", [2, 3], [5, 7], indices)
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    kinds = [value(n, TensorProto.FLOAT, [2, 3]) for n in "xy"]
    if kind == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=weight))
    model = model_of(nodes, kinds[:1], kinds[1:])
    if kind == "initializer":
        model.graph.sparse_initializer.append(weight)
    (y,) = interpret(import_onnx(model), {"x": np.zeros((2, 3), np.float32)})
    np.testing.assert_array_equal(y, [[5, 0, 0], [0, 7, 0]])


@pytest.mark.parametrize("kind", ["initializer", "constant"])
@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize(
    ("dims", "indices", "message"),
    [
        ([2, 3], [0, 40], "out of range"),
        ([2, 3], [-1, 4], "out of range"),
        ([2, 3], [4, 4], "occurs twice|not in sorted order"),
        ([2, 3], [[1, 1], [0, 2]], "comes after|sorted order"),
        ([2, 3], [[0, 1], [0, 3]], "out of range"),
        ([2, 3], [0], "need integer indices|NNZ is 2"),
        ([2, 3], [[0, 1, 2], [1, 1, 2]], "need integer indices|does not match rank"),
        ([1 << 40, 1 << 40], [0, 1], "do not fit into 64 bits|out of range"),
        ([1 << 30, 3], [0, 1], "too large"),
    ],
)
def test_sparse_weights_that_are_not_sound(kind, heavy, dims, indices, message):
    weight = sparse("w", dims, [5, 7], indices)
    nodes = [helper.make_node("Add", ["x", "w"], ["z"]), helper.make_node("Add", ["z", "large"], ["y"])]
    if kind == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["w"], sparse_value=weight))
    large = np.zeros((1 << 19 if heavy else 1, 1, 1), np.float32)
    model = model_of(nodes, *[[value(n, TensorProto.FLOAT, None)] for n in "xy"], {"large": large})
    if kind == "initializer":
        model.graph.sparse_initializer.append(weight)
    with pytest.raises((UserError, UnsupportedError), match=message):
        import_onnx(model, {"x": (2, 3)})


def test_a_sparse_weight_of_external_data_is_found_and_read(tmp_path):
    weight = sparse("w", [2, 3], [5, 7], [1, 3])
    model = model_of(
        [helper.make_node("Add", ["x", "w"], ["y"])], *[[value(n, TensorProto.FLOAT, [2, 3])] for n in "xy"]
    )
    (tmp_path / "values.bin").write_bytes(weight.values.raw_data)
    onnx.external_data_helper.set_external_data(weight.values, "values.bin", length=8)
    weight.values.ClearField("raw_data")
    model.graph.sparse_initializer.append(weight)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert external_files((tmp_path / "m.onnx").read_bytes()) == ["values.bin"]
    (y,) = interpret(import_onnx(tmp_path / "m.onnx"), {"x": np.zeros((2, 3), np.float32)})
    np.testing.assert_array_equal(y, [[0, 5, 0], [7, 0, 0]])


NUMBERS = [
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.BFLOAT16,
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E5M2FNUZ,
    TensorProto.FLOAT8E8M0,
    TensorProto.FLOAT4E2M1,
    TensorProto.INT4,
    TensorProto.UINT4,
    TensorProto.INT8,
    TensorProto.UINT64,
    TensorProto.BOOL,
]


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("kind", NUMBERS)
def test_weights_of_every_type(kind, inline):
    count = 4 if inline else 1200
    numbers = np.tile(np.array([0 if kind != TensorProto.FLOAT8E8M0 else 1, 1, 2, 4]), count // 4)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    weight = numpy_helper.from_array(numbers.astype(dtype), "w")
    assert weight.data_type == kind
    nodes = [
        helper.make_node("Gather", ["w", "i"], ["g"]),
        helper.make_node("Cast", ["g"], ["y"], to=TensorProto.FLOAT),
    ]
    kinds = [value("i", TensorProto.INT64, [4]), value("y", TensorProto.FLOAT, [4])]
    model = model_of(nodes, kinds[:1], kinds[1:], opset=25)
    model.graph.initializer.append(weight)
    (y,) = interpret(import_onnx(model), {"i": np.array([3, 2, 1, 0])})
    np.testing.assert_array_equal(y, numbers.astype(dtype).astype(np.float32)[[3, 2, 1, 0]])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_weights(dtype):
    weight = np.array([1 + 2j, -3j], dtype)
    kinds = [value("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [2])]
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], [], kinds, {"w": weight})
    np.testing.assert_array_equal(interpret(import_onnx(model), {})[0], weight)


def test_strings_in_a_branch_are_refused():
    """Those of the graph itself are codes: see text/."""
    both = {
        name: helper.make_graph([helper.make_node("Identity", ["x"], [name])], name, [], [text_value(name)])
        for name in ("then_branch", "else_branch")
    }
    node = helper.make_node("If", ["c"], ["y"], **both)
    inputs = [value("c", TensorProto.BOOL, []), text_value("x")]
    with pytest.raises(UnsupportedError, match="If: a subgraph of it reads x, which holds strings"):
        import_onnx(model_of([node], inputs, [text_value("y")]))


def text_value(name: str):
    return value(name, TensorProto.STRING, [1])


def test_names_that_two_nodes_make_are_refused():
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])]
    kinds = [[value(n, TensorProto.FLOAT, [2])] for n in "xy"]
    with pytest.raises(UserError, match="y"):
        import_onnx(model_of(nodes, *kinds))


def test_declared_shapes():
    """Shapes that follow from data are found by inference, and by name where `shapes` fixes them."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["p"]),
        helper.make_node("Transpose", ["x"], ["t"]),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    inputs = [value("x", TensorProto.FLOAT, ["n", 3])]
    model = model_of(nodes, inputs, [value("y", TensorProto.FLOAT, None)], {"s": np.array([-1])})
    model.graph.value_info.append(value("p", TensorProto.INT64, [2, "found"]))
    found = declared.Declared(model, signature.graph_inputs(model, {"n": 4}), {"n": 4})
    assert [found.shape(n) for n in "pty"] == [(2, None), (3, 4), (12,)]
    assert found.shape("nowhere") is None
