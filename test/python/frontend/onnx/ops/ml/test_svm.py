# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Support vector machines and n-grams beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, feeds, node_model

_RANDOM = np.random.default_rng(11)
ML = "ai.onnx.ml"


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm(kernel):
    common = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 2.0], "domain": ML}
    vectors = random(7 * 3).tolist()
    weights = random(7).tolist()
    options = {"support_vectors": vectors, "n_supports": 7, "coefficients": weights, "rho": [0.2], **common}
    run("SVMRegressor", random(5, 3), **options)
    run("SVMRegressor", random(5, 3), one_class=1, **options)
    options = {"support_vectors": vectors, "coefficients": random(14).tolist(), "rho": [0.1, -0.2, 0.3], **common}
    run("SVMClassifier", random(5, 3), outputs=2, vectors_per_class=[2, 3, 2], classlabels_ints=[4, 5, 6], **options)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_svm_of_two_classes(transform):
    weights = random(5).tolist()
    options = {"support_vectors": random(5 * 3).tolist(), "coefficients": weights, "rho": [0.1], "domain": ML}
    options |= {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0]}
    options |= {"vectors_per_class": [2, 3], "classlabels_ints": [4, 5], "post_transform": transform}
    run("SVMClassifier", random(6, 3), outputs=2, **options)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_probabilities_of_classes(classes):
    """Labels are those of the votes all the same."""
    pairs, vectors = classes * (classes - 1) // 2, 2 * classes
    options = {"support_vectors": random(vectors * 3).tolist(), "rho": random(pairs).tolist(), "domain": ML}
    options |= {"coefficients": random((classes - 1) * vectors).tolist(), "vectors_per_class": [2] * classes}
    options |= {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "classlabels_ints": list(range(4, 4 + classes))}
    options |= {"prob_a": (-np.abs(random(pairs))).tolist(), "prob_b": random(pairs).tolist()}
    run("SVMClassifier", random(6, 3), outputs=2, **options)


@pytest.mark.parametrize("shape", [(12,), (3, 12)])
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("least", "most", "skip"), [(1, 1, 0), (1, 2, 3), (2, 2, 0), (2, 3, 5)])
def test_tf_idf(shape, mode, least, most, skip):
    grams = {"pool_int64s": [2, 3, 1, 1, 2, 4, 4, 1, 2, 3], "ngram_counts": [0, 3, 7]}
    grams["ngram_indexes"] = [0, 1, 3, 4, 2, 5]
    limits = {"min_gram_length": least, "max_gram_length": most, "max_skip_count": skip}
    weights = [1.0, 2.0, 3.0, 4.0, 5.0, 0.5]
    run("TfIdfVectorizer", _RANDOM.integers(1, 5, shape), mode=mode, weights=weights, **grams, **limits)
