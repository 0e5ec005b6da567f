# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The families of models: which module exports each, and in which environment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A family: the module of this folder that lists its models, the environment, and what it is."""

    module: str
    environment: str  # torch, jax or keras: a name of tools/zoo_models/environments
    what: str
    timed: bool = False  # made for times of open sizes alone, no part of the table of models


FAMILIES = {
    "transformers": Family("family_transformers", "torch", "classes of transformers with small configurations"),
    "wide": Family("family_wide", "torch", "transformers as wide as small real ones", timed=True),
    "torchvision": Family("family_torchvision", "torch", "classification, segmentation and detection"),
    "timm": Family("family_timm", "torch", "models of timm drawn by a seed"),
    "sklearn": Family("family_sklearn", "torch", "estimators of scikit-learn, LightGBM and XGBoost by skl2onnx"),
    "jax": Family("family_jax", "jax", "functions and modules of JAX by jax2onnx"),
    "keras": Family("family_keras", "keras", "models of Keras by tf2onnx"),
    "onnxruntime": Family("family_onnxruntime", "torch", "files that ONNX Runtime optimized or quantized"),
}
