# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the model and of the standard."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from support import check_numbers, import_onnx, interpret

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend.onnx import functions, registry

F32 = np.float32


def model_of(body, functions_text, opset=20, extra=""):
    """A model y = ... of x (3 floats), with functions of domain `my` in ONNX's text syntax."""
    header = f'<ir_version: 10, opset_import: ["" : {opset}, "my" : 1{extra}]>'
    return parser.parse_model(f"{header} g (float[3] x) => (float[3] y) {{ {body} }} {functions_text}")


def value_of(model, x=(1, -2, 3)):
    (y,) = interpret(import_onnx(model), {"x": np.float32(x)})
    return y


SCALED = """
<domain: "my", opset_import: ["" : 17]>
Scaled <alpha, beta: float = 10.0> (a) => (b) {
  s = Constant<value_float: float = @alpha>()
  t = Constant<value_float: float = @beta>()
  u = Mul(a, s)
  b = Add(u, t)
}
"""


def test_attributes_and_defaults():
    model = model_of("z = my.Scaled<alpha = 2.0>(x)  y = my.Scaled<alpha = 1.0, beta = -1.0>(z)", SCALED)
    check_numbers(model, {"x": np.float32([1, -2, 3])})


def test_attribute_that_nobody_gives_is_absent():
    text = (
        '<domain: "my", opset_import: ["" : 17]> Leaky <slope> (a) => (b) { b = LeakyRelu<alpha: float = @slope>(a) }'
    )
    model = model_of("y = my.Leaky(x)", text)
    np.testing.assert_allclose(value_of(model), [1, -0.02, 3], rtol=1e-6)


def test_nested_calls_and_names():
    text = SCALED + '<domain: "my", opset_import: ["" : 17, "my" : 1]> Twice (a) => (b) {'
    text += " c = my.Scaled<alpha = 2.0>(a)  b = my.Scaled<alpha = 3.0>(c) }"
    model = model_of("y = my.Twice(x)", text)
    model.graph.node[0].name = "outer"
    assembly = import_onnx(model).module.operation.get_asm(enable_debug_info=True)
    assert 'loc("outer/c/u")' in assembly
    np.testing.assert_array_equal(value_of(model), 3 * (2 * np.float32([1, -2, 3]) + 10) + 10)


def test_a_function_has_its_own_opset_version():
    """Squeeze takes attributes in opset 11, inputs in 17."""
    text = """
    <domain: "my", opset_import: ["" : 11]>
    Widened (a) => (b) { w = Unsqueeze<axes = [0]>(a)  r = Relu(w)  b = Squeeze<axes = [0]>(r) }
    """
    np.testing.assert_array_equal(value_of(model_of("y = my.Widened(x)", text)), [1, 0, 3])


def test_overloads():
    model = model_of("y = my.Scaled<alpha = 2.0>(x)", SCALED)
    other = onnx.FunctionProto()
    other.CopyFrom(model.functions[0])
    other.overload = "negative"
    other.node[-1].op_type = "Sub"
    model.functions.append(other)
    np.testing.assert_array_equal(value_of(model), [12, 6, 16])
    model.graph.node[0].overload = "negative"
    np.testing.assert_array_equal(value_of(model), [-8, -14, -4])


def test_optional_inputs_and_fewer_outputs():
    text = """
    <domain: "my", opset_import: ["" : 17]>
    Bounded (a, low, high) => (b, c) { b = Clip(a, low, high)  c = Neg(b) }
    """
    model = model_of('one = Constant<value = float {1.0}>() y = my.Bounded(x, "", one)', text)
    np.testing.assert_array_equal(value_of(model), [1, -2, 1])


def test_an_input_that_the_body_needs_and_the_call_does_not_give():
    text = '<domain: "my", opset_import: ["" : 17]> Product (a, c) => (b) { b = Mul(a, c) }'
    with pytest.raises(UserError, match="Mul: the input B is missing"):
        value_of(model_of("y = my.Product(x)", text))


def test_control_flow_in_a_function_refers_to_attributes():
    text = """
    <domain: "my", opset_import: ["" : 17]>
    Chosen <alpha> (a) => (b) {
      total = ReduceSum<keepdims = 0>(a)
      zero = Constant<value = float {0.0}>()
      positive = Greater(total, zero)
      b = If (positive) <
        then_branch = t () => (p) { s = Constant<value_float: float = @alpha>()  p = Mul(a, s) },
        else_branch = e () => (q) { q = Identity(a) }
      >
    }
    """
    model = model_of("y = my.Chosen<alpha = 4.0>(x)", text)
    np.testing.assert_array_equal(value_of(model), [4, -8, 12])
    np.testing.assert_array_equal(value_of(model, (-1, -2, -3)), [-1, -2, -3])


def test_functions_without_end_are_refused():
    text = '<domain: "my", opset_import: ["" : 17, "my" : 1]> Again (a) => (b) { b = my.Again(a) }'
    with pytest.raises(UserError, match="without end|invalid"):
        import_onnx(model_of("y = my.Again(x)", text))


def test_what_functions_lack_is_listed_with_the_rest():
    text = '<domain: "my", opset_import: ["" : 17]> Bad (a) => (b) { c = StringNormalizer(a)  b = Relu(c) }'
    branch = """
    k = Constant<value = int64 {1}>()  c = Cast<to = 9>(k)
    z = my.Bad(x)
    y = If (c) <
      then_branch = t () => (float[3] p) { p = StringSplit(z) },
      else_branch = e () => (float[3] q) { q = Identity(z) }
    >
    """
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(model_of(branch, text))
    assert "StringNormalizer: z/c" in str(caught.value)
    assert "StringSplit: y/p" in str(caught.value)


# Functions of the standard ----------------------------------------------------------------------------------------


def test_the_model_comes_before_the_table():
    """A model may say what an operator of the standard means."""
    function = helper.make_function(
        "", "Relu", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    model = model_of("y = Relu(x)", "")
    model.functions.append(function)
    np.testing.assert_array_equal(value_of(model), [-1, 2, -3])


@pytest.fixture
def without(monkeypatch):
    """The table of operators without some of them."""

    def remove(*names):
        table = {k: v for k, v in registry._TABLE.items() if k[1] not in names}
        monkeypatch.setattr(registry, "_TABLE", table)

    return remove


CASES = {
    "Relu": ({}, 18),
    "HardSwish": ({}, 18),
    "Softmax": ({"axis": -1}, 18),
    "LogSoftmax": ({"axis": 0}, 13),
    "ReduceL2": ({"keepdims": 1}, 18),
    "Celu": ({"alpha": 0.5}, 17),
    "MeanVarianceNormalization": ({"axes": [0]}, 18),
}


@pytest.mark.parametrize("name", CASES)
def test_a_standard_body_replaces_a_missing_lowering(name, without):
    without(name)
    attributes, opset = CASES[name]
    node = helper.make_node(name, ["x"], ["y"], name="the_node", **attributes)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [3]), ("y", None)))
    model = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", opset)], ir_version=8
    )
    check_numbers(model, {"x": np.float32([1, -2, 3])})


def test_bodies_of_the_standard_are_known_to_the_list_of_missing_operators(without):
    without("LayerNormalization", "Pow")
    nodes = [helper.make_node("LayerNormalization", ["x", "w"], ["y"])]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xwy"]
    model = helper.make_model(
        helper.make_graph(nodes, "g", values[:2], values[2:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    x, w = np.float32([1, -2, 3]), np.float32([1, 2, 3])
    (y,) = interpret(import_onnx(model), {"x": x, "w": w})
    np.testing.assert_allclose(y, (x - x.mean()) / np.sqrt(x.var() + 1e-5) * w, rtol=1e-5)


def test_operators_without_a_body():
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    assert functions.standard_body(node, 17, None) is None
    assert functions.standard_body(helper.make_node("NoSuchThing", ["x"], ["y"]), 17, None) is None
