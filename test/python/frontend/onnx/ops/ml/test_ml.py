# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of ai.onnx.ml beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, feeds, interpret, node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

_RANDOM = np.random.default_rng(10)
ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def run(op, *inputs, **options):
    model = node_model(op, inputs, domain=ML, **options)
    return check_numbers(model, feeds(model, inputs))


def test_features():
    run("ArrayFeatureExtractor", random(3, 5), np.array([[4, 0, 4]]))
    run("ArrayFeatureExtractor", random(5), np.array([1, 2]))
    run("Binarizer", random(3, 4), threshold=0.2)
    run("Scaler", random(3, 4), offset=[0.5, 0.0, 1.0, 2.0], scale=[2.0, 1.0, 3.0, 4.0])
    run("FeatureVectorizer", random(2, 3), random(2, 1), inputdimensions=[3, 1])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    run("Normalizer", np.abs(random(3, 4)), norm=norm)


def test_imputer():
    x = np.float32([[1, np.nan], [np.nan, 2]])
    run("Imputer", x, imputed_value_floats=[5.0, 6.0], replaced_value_float=float("nan"))


def test_label_encoder():
    keys = [3, 1, 4, 15, 9, 2, 6]
    values = [float(key) / 2 for key in keys]
    run("LabelEncoder", np.array([[1, 2, 3], [15, 5, -7]]), version=2, keys_int64s=keys, values_floats=values)
    numbers = {"keys_floats": [1.5, float("nan"), -2.0], "values_int64s": [10, 11, 12], "default_int64": 5}
    run("LabelEncoder", np.float32([-2, np.nan, 7, 1.5]), version=4, **numbers)


def test_strings_are_codes_with_words_around():
    model = node_model("LabelEncoder", [np.array([1])], domain=ML, version=2, keys_int64s=[1], values_strings=["a"])
    boundary = import_onnx(model).boundary
    assert boundary is not None and boundary["words"] == ("a", "_Unused") and boundary["texts"] == ["y0"]


def test_one_hot_encoder():
    run("OneHotEncoder", np.array([[1, 7], [3, 0]]), cats_int64s=[0, 1, 3])


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_models(transform):
    weights = {"coefficients": random(12).tolist(), "intercepts": random(3).tolist(), "post_transform": transform}
    run("LinearRegressor", random(5, 4), targets=3, **weights)
    run("LinearClassifier", random(5, 4), outputs=2, classlabels_ints=[7, 8, 9], **weights)


# Trees ------------------------------------------------------------------------------------------------------------


def forest(kind, *, trees=3, depth=3, outputs=2, features=4, modes=("BRANCH_LEQ",), ids=None, positive=False):
    """Random complete trees as the attributes of TreeEnsembleRegressor ("target") or -Classifier ("class")."""
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    nodes = {f"nodes_{name}": [] for name in names}
    weights = {f"{kind}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        for n in range(2 ** (depth + 1) - 1):
            leaf = n >= 2**depth - 1
            mode = "LEAF" if leaf else modes[_RANDOM.integers(len(modes))]
            children = (0, 0) if leaf else (2 * n + 1, 2 * n + 2)
            value = float(_RANDOM.integers(-2, 3)) / 2
            row = (tree, n, int(_RANDOM.integers(features)), mode, value, *children)
            for name, item in zip(names, row, strict=True):
                nodes[f"nodes_{name}"].append(item)
            for output in (ids or range(outputs)) if leaf else []:
                weight = float(_RANDOM.standard_normal())
                row = (tree, n, output, abs(weight) / trees if positive else weight)
                for name, item in zip(("treeids", "nodeids", "ids", "weights"), row, strict=True):
                    weights[f"{kind}_{name}"].append(item)
    return nodes | weights


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressor(aggregate):
    x = np.round(random(9, 4) * 2) / 2
    run("TreeEnsembleRegressor", x, n_targets=2, aggregate_function=aggregate, **forest("target"))


def test_tree_regressor_options():
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    x = np.round(random(9, 4) * 2) / 2
    run("TreeEnsembleRegressor", x, n_targets=2, base_values=[1.0, 2.0], **forest("target", modes=modes))
    run("TreeEnsembleRegressor", x.astype(np.float64), n_targets=2, **forest("target", trees=1, depth=0))
    x[::2, 1] = np.nan
    attributes = forest("target")
    attributes["nodes_missing_value_tracks_true"] = [i % 2 for i in range(len(attributes["nodes_modes"]))]
    run("TreeEnsembleRegressor", x, n_targets=2, post_transform="LOGISTIC", **attributes)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_tree_classifier(transform):
    attributes = {"classlabels_int64s": [5, 6, 7], "post_transform": transform, **forest("class", outputs=3)}
    run("TreeEnsembleClassifier", random(9, 4), outputs=2, **attributes)
    run("TreeEnsembleClassifier", random(9, 4), outputs=2, base_values=[0.5, 0.0, -1.0], **attributes)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("only", [0, 1])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_tree_classifier_of_one_score(positive, only, transform):
    attributes = {"classlabels_int64s": [5, 6], **forest("class", ids=[only], positive=positive)}
    run("TreeEnsembleClassifier", random(9, 4), outputs=2, post_transform=transform, **attributes)
    if only == 0:
        run("TreeEnsembleClassifier", random(9, 4), outputs=2, base_values=[0.25], **attributes)


def test_tree_classifier_of_two_scores_takes_the_larger():
    attributes = {"classlabels_int64s": [5, 6], **forest("class", positive=True)}
    x = random(9, 4)
    model = node_model("TreeEnsembleClassifier", [x], domain=ML, outputs=2, **attributes)
    labels, scores = interpret(import_onnx(model), {"x0": x})
    np.testing.assert_array_equal(labels, np.array([5, 6])[scores.argmax(1)])


def test_trees_that_name_missing_columns_are_refused():
    attributes = forest("target", features=9)
    attributes["nodes_featureids"][0] = 8
    with pytest.raises(UserError, match="columns up to 8"):
        import_onnx(node_model("TreeEnsembleRegressor", [random(2, 4)], domain=ML, n_targets=2, **attributes))
