# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Estimators of scikit-learn, LightGBM and XGBoost, exported with an open batch, beside ONNX Runtime.

Labels are equal, probabilities to 1e-5. Without these packages it is skipped; `test/python/frontend/onnx/text` and
`ops/ml` hold what the files are made of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import tilewright as tw

sklearn = pytest.importorskip("sklearn")
skl2onnx = pytest.importorskip("skl2onnx")

from sklearn import (  # noqa: E402  # pyright: ignore[reportMissingImports]
    cluster,
    discriminant_analysis,
    ensemble,
    feature_extraction,
    impute,
    linear_model,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)
from sklearn.datasets import make_classification  # noqa: E402  # pyright: ignore[reportMissingImports]

X, Y = make_classification(200, 8, n_informative=5, n_classes=3, random_state=0)
X, NAMES = X.astype(np.float32), np.array(["setosa", "versicolor", "virginica"])[Y]
WORDS = np.array([["red", "s"], ["blue", "m"], ["red", "l"], ["green", "s"]] * 10, dtype=object)
ANSWERS = np.array(["yes", "no", "maybe", "no"] * 10)
TEXTS = np.array(["the cat sat on the mat", "a dog and a cat", "dogs bark", "the mat is red"] * 5)
MISSING = np.where(X > 2, np.nan, X).astype(np.float32)
TARGET = X @ np.arange(8).astype(np.float32)

NUMBERS: dict[str, tuple[Any, Any, Any]] = {
    "logistic": (linear_model.LogisticRegression(), X, NAMES),
    "logistic, two classes": (linear_model.LogisticRegression(), X, NAMES == "setosa"),
    "ridge": (linear_model.Ridge(), X, TARGET),
    "stochastic gradient": (linear_model.SGDClassifier(loss="log_loss"), X, NAMES),
    "support vectors": (svm.SVC(probability=True), X, NAMES),
    "support vectors, two classes": (svm.SVC(probability=True), X, (Y > 0).astype(int)),
    "support vectors, votes": (svm.SVC(kernel="poly"), X, Y),
    "support vectors, linear": (svm.LinearSVC(), X, Y),
    "support vectors, regression": (svm.SVR(), X, TARGET),
    "tree": (tree.DecisionTreeClassifier(max_depth=5), X, NAMES),
    "forest": (ensemble.RandomForestClassifier(10), X, NAMES),
    "forest, regression": (ensemble.RandomForestRegressor(10), X, TARGET),
    "extra trees": (ensemble.ExtraTreesClassifier(10), X, Y),
    "boosting": (ensemble.GradientBoostingClassifier(n_estimators=10), X, NAMES),
    "adaptive boosting": (ensemble.AdaBoostClassifier(n_estimators=5), X, Y),
    "bagging": (ensemble.BaggingClassifier(n_estimators=3), X, Y),
    "neighbours": (neighbors.KNeighborsClassifier(), X, NAMES),
    "neighbours, regression": (neighbors.KNeighborsRegressor(), X, TARGET),
    "normal": (naive_bayes.GaussianNB(), X, Y),
    "two values": (naive_bayes.BernoulliNB(), X, Y),
    "network": (neural_network.MLPClassifier((16,), max_iter=30), X, NAMES),
    "means": (cluster.KMeans(3), X, None),
    "discriminant": (discriminant_analysis.LinearDiscriminantAnalysis(), X, Y),
    "one against the rest": (multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), X, Y),
    "one against one": (multiclass.OneVsOneClassifier(linear_model.LogisticRegression()), X, Y),
    "filled": (impute.SimpleImputer(), MISSING, None),
    "bins": (preprocessing.KBinsDiscretizer(4, encode="onehot-dense"), X, None),
    "pipeline": (
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
        X,
        NAMES,
    ),
}
STRINGS: dict[str, tuple[Any, Any, Any]] = {
    "one hot": (preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False), WORDS, None),
    "ordinal": (preprocessing.OrdinalEncoder(), WORDS, None),
    "most frequent": (impute.SimpleImputer(strategy="most_frequent", missing_values=""), WORDS, None),
    "one hot, forest": (
        pipeline.make_pipeline(
            preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            ensemble.RandomForestClassifier(5),
        ),
        WORDS,
        ANSWERS,
    ),
    "words": (
        pipeline.make_pipeline(feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression()),
        TEXTS,
        ANSWERS[:20],
    ),
    "pairs of words": (feature_extraction.text.CountVectorizer(ngram_range=(1, 2)), TEXTS, None),
}


def exported(estimator: Any, x: np.ndarray, strings: bool) -> Any:
    kinds = skl2onnx.common.data_types
    kind = kinds.StringTensorType if strings else kinds.FloatTensorType
    inputs = [("x", kind([None, 1 if x.ndim == 1 else x.shape[1]]))]
    model = skl2onnx.convert_sklearn(estimator, initial_types=inputs, target_opset={"": 18, "ai.onnx.ml": 3})
    import onnx

    for node in model.graph.node:  # ONNX Runtime's default locale need not be installed
        if node.op_type == "StringNormalizer":
            node.attribute.append(onnx.helper.make_attribute("locale", "C"))
    return model


def same(mine: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert all(a.keys() == b.keys() for a, b in zip(mine, theirs, strict=True))
        mine, theirs = (np.float32([[row[key] for key in theirs[0]] for row in rows]) for rows in (mine, theirs))
    mine, theirs = np.asarray(mine), np.asarray(theirs)
    assert mine.shape == theirs.shape
    if theirs.dtype.kind == "f":
        np.testing.assert_allclose(mine, theirs, atol=1e-5 * max(1, np.abs(theirs).max()))
    else:
        assert mine.tolist() == theirs.tolist()


def check(model: Any, x: np.ndarray) -> None:
    """Some rows, and one."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    compiled = tw.compile(model)
    for rows in (x[:20], x[:1]):
        for mine, theirs in zip(compiled(rows), session.run(None, {"x": rows}), strict=True):
            same(mine, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NUMBERS])
def test_numbers(name):
    estimator, x, y = NUMBERS[name]
    check(exported(estimator.fit(x, y), x, strings=False), x)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*STRINGS])
def test_strings(name):
    estimator, x, y = STRINGS[name]
    check(exported(estimator.fit(x, y), x, strings=True), x.reshape(len(x), -1).astype(object))


@pytest.mark.slow
@pytest.mark.parametrize("package,kind", [("lightgbm", "LGBM"), ("xgboost", "XGB")])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_boosted_trees(package, kind, classes):
    library, tools = pytest.importorskip(package), pytest.importorskip("onnxmltools")
    y = TARGET if classes == 0 else np.minimum(Y, classes - 1)
    more = {"verbose": -1} if package == "lightgbm" else {}
    made = getattr(library, kind + ("Classifier" if classes else "Regressor"))(n_estimators=8, **more).fit(X, y)
    types = [("x", tools.convert.common.data_types.FloatTensorType([None, 8]))]
    check(getattr(tools, f"convert_{package}")(made, initial_types=types, target_opset=15), X)
