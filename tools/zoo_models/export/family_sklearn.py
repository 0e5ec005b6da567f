# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Estimators of scikit-learn, LightGBM and XGBoost by skl2onnx, with an open batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import (
    compose,
    datasets,
    ensemble,
    impute,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)
from sklearn.gaussian_process import GaussianProcessRegressor

from .storing import Made

SIZES = (7, 1, 40)
FEATURES = 6
Variant = Callable[[Path], Made]


def data(classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Numbers to fit to, drawn by a seed."""
    if classes:
        return datasets.make_classification(
            200, FEATURES, n_informative=4, n_classes=3, random_state=0, n_clusters_per_class=1
        )
    return datasets.make_regression(200, FEATURES, noise=0.1, random_state=0)


def estimator(make: Callable[[], Any], classes: bool = True, words: bool = False, missing: bool = False) -> Variant:
    """An estimator, fitted; `words`: its classes have names; `missing`: some features are not a number."""

    def write(folder: Path) -> Made:
        from skl2onnx import to_onnx

        x, y = data(classes)
        x = x.astype(np.float32)
        if missing:
            x[::7, 1] = np.nan
        fitted = make().fit(x, np.array(["low", "middle", "high"])[y] if words else y)
        options = {id(fitted): {"zipmap": False}} if classes and not words else None
        model = to_onnx(fitted, x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        name = model.graph.input[0].name
        calls = [({name: x[:n]}, None if classes else predicted(fitted, x[:n])) for n in SIZES]
        return Made(calls, 1e-4, "skl2onnx")

    return write


def predicted(fitted: Any, x: np.ndarray) -> dict[str, np.ndarray]:
    """What the estimator computes itself, in f64."""
    return {"variable": fitted.predict(x.astype(np.float64)).reshape(-1, 1).astype(np.float32)}


def boosted(kind: str) -> Variant:
    """Trees of LightGBM or XGBoost, by onnxmltools."""

    def write(folder: Path) -> Made:
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        x, y = data(True)
        x = x.astype(np.float32)
        kinds = [("input", FloatTensorType([None, FEATURES]))]
        if kind == "lightgbm":
            import lightgbm

            fitted = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1).fit(x, y)
            model = onnxmltools.convert_lightgbm(fitted, initial_types=kinds, target_opset=15, zipmap=False)
        else:
            import xgboost

            fitted = xgboost.XGBClassifier(n_estimators=10).fit(x, y)
            model = onnxmltools.convert_xgboost(fitted, initial_types=kinds, target_opset=15)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        return Made([({"input": x[:n]}, None) for n in SIZES], 1e-4, "onnxmltools")

    return write


def columns(folder: Path) -> Made:
    """A pipeline of columns: a category in words, numbers with missing ones, a logistic regression."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    numbers, y = data(True)
    numbers = numbers.astype(np.float32)[:, :3]
    numbers[::5, 0] = np.nan
    words = np.array(["red", "green", "blue"])[(y + np.arange(len(y)) % 2) % 3].reshape(-1, 1)
    table = np.concatenate([words.astype(object), numbers.astype(object)], axis=1)
    parts = [
        ("words", preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False), [0]),
        ("numbers", pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler()), [1, 2, 3]),
    ]
    fitted = pipeline.make_pipeline(compose.ColumnTransformer(parts), linear_model.LogisticRegression()).fit(table, y)
    kinds = [("color", StringTensorType([None, 1])), ("numbers", FloatTensorType([None, 3]))]
    model = to_onnx(fitted, initial_types=kinds, target_opset={"": 18, "ai.onnx.ml": 3})
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return Made([({"color": words[:n].astype(object), "numbers": numbers[:n]}, None) for n in SIZES], 1e-4, "skl2onnx")


def scaled(last: Any) -> Any:
    """A pipeline: numbers scaled, then an estimator."""
    return pipeline.make_pipeline(preprocessing.StandardScaler(), last)


def variants(_out: Path) -> dict[str, Variant]:
    """The estimators by name."""
    return {
        "logistic_regression": estimator(lambda: scaled(linear_model.LogisticRegression())),
        "logistic_regression_words": estimator(lambda: linear_model.LogisticRegression(), words=True),
        "ridge": estimator(lambda: linear_model.Ridge(), classes=False),
        "random_forest": estimator(lambda: ensemble.RandomForestClassifier(10, random_state=0)),
        "gradient_boosting": estimator(lambda: ensemble.GradientBoostingRegressor(n_estimators=10), classes=False),
        "extra_trees": estimator(lambda: ensemble.ExtraTreesClassifier(10, random_state=0)),
        "svc": estimator(lambda: svm.SVC(probability=True, random_state=0)),
        "linear_svc": estimator(lambda: svm.LinearSVC(), words=True),
        "mlp": estimator(lambda: scaled(neural_network.MLPClassifier((16,), max_iter=50, random_state=0))),
        "nearest_neighbours": estimator(lambda: neighbors.KNeighborsClassifier(3)),
        "naive_bayes": estimator(lambda: naive_bayes.GaussianNB()),
        "gaussian_process": estimator(lambda: GaussianProcessRegressor(alpha=1.0), classes=False),
        "normalizer_imputer": estimator(
            lambda: pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.Normalizer(), linear_model.Ridge()),
            classes=False, missing=True,
        ),
        "columns_with_words": columns,
        "lightgbm": boosted("lightgbm"),
        "xgboost": boosted("xgboost"),
    }  # fmt: skip
