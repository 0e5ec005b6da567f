# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operator of the standard, with how it is lowered or the reason why it is not."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

import onnx

from tilewright.frontend.onnx.functions import standard_body
from tilewright.frontend.onnx.refused import RUNTIME_REASONS
from tilewright.frontend.onnx.registry import lookup, supported

_STRINGS = "needs strings themselves, which subgraphs and functions of a model do not have"
_MAPS = "has maps, which subgraphs and functions of a model do not have"
#: What Python does around the compiled code, where strings and maps are (`frontend/onnx/text`).
AROUND = {
    ("", "RegexFullMatch"): "in Python: _regex_full_match",
    ("", "StringConcat"): "in Python: _string_concat",
    ("", "StringNormalizer"): "in Python: _string_normalizer",
    ("", "StringSplit"): "in Python: _string_split",
    ("ai.onnx.ml", "CastMap"): "in Python: _cast_map",
    ("ai.onnx.ml", "CategoryMapper"): "encoding.py: _mapper",
    ("ai.onnx.ml", "DictVectorizer"): "in Python: _dict_vectorizer",
    ("ai.onnx.ml", "ZipMap"): "in Python: _zip_map",
    ("com.microsoft", "Tokenizer"): "in Python: _tokenizer",
}
REASONS = {
    ("", "ImageDecoder"): "decodes image files; decode them before the model",
    ("", "RegexFullMatch"): _STRINGS,
    ("", "StringConcat"): _STRINGS,
    ("", "StringNormalizer"): _STRINGS,
    ("", "StringSplit"): _STRINGS,
    ("ai.onnx.ml", "CastMap"): _MAPS,
    ("ai.onnx.ml", "CategoryMapper"): _STRINGS,
    ("ai.onnx.ml", "DictVectorizer"): _MAPS,
    ("ai.onnx.ml", "ZipMap"): _MAPS,
    ("ai.onnx.preview.training", "Gradient"): "differentiation belongs to training frameworks",
    ("com.microsoft", "Tokenizer"): _STRINGS,
    **RUNTIME_REASONS,
}


@dataclass(frozen=True)
class Operator:
    """One operator of the standard.

    Attributes:
        domain: empty for the standard's own.
        name: of the operator.
        version: the opset version that last changed it.
        lowering: ``FILE: FUNCTION`` under frontend/ops, ``in Python: FUNCTION`` of runtime/text, ``function body``, or
            empty where there is none.
        meanings: opset versions from which an older meaning has a function of its own.
        reason: why there is no lowering.
    """

    domain: str
    name: str
    version: int
    lowering: str
    meanings: tuple[int, ...] = ()
    reason: str = ""


def catalog() -> list[Operator]:
    """All operators that the installed onnx knows, deprecated ones left out, sorted by domain and name."""
    meanings: dict[tuple[str, str], list[int]] = {}
    for domain, name, since in supported():
        meanings.setdefault((domain, name), []).append(since)
    schemas = [s for s in onnx.defs.get_all_schemas() if not s.deprecated]
    return [
        _operator(s.domain, s.name, s.since_version, tuple(meanings.get((s.domain, s.name), ())))
        for s in sorted(schemas, key=lambda s: (s.domain, s.name))
    ]


def runtime_catalog() -> list[Operator]:
    """ONNX Runtime's operators (com.microsoft) with a lowering or a reason, sorted by name."""
    lowered = {name: since for domain, name, since in supported() if domain == "com.microsoft"}
    names = {name for domain, name in REASONS if domain == "com.microsoft"} | lowered.keys()
    return [_operator("com.microsoft", name, 1, (lowered[name],) if name in lowered else ()) for name in sorted(names)]


def _operator(domain: str, name: str, version: int, meanings: tuple[int, ...]) -> Operator:
    function = lookup(domain, name, version)
    if function is not None:
        function = inspect.unwrap(function)
        file = Path(function.__code__.co_filename).name
        return Operator(domain, name, version, f"{file}: {function.__name__}", meanings)
    if (domain, name) in AROUND:
        return Operator(domain, name, version, AROUND[domain, name])
    if standard_body(onnx.helper.make_node(name, [], [], domain=domain), version, None) is not None:
        return Operator(domain, name, version, "function body")
    return Operator(domain, name, version, "", reason=reason_for(domain, name))


def reason_for(domain: str, name: str) -> str:
    """Why an operator has no lowering."""
    return REASONS.get((domain, name), "not written yet")
