# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which other files an ONNX model reads, found without the package onnx and without reading its weights.

A cache key must cover those files, and finding a model in the cache should cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

# Field numbers in onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_GRAPH_SPARSE_INITIALIZER = 15
_SPARSE_VALUES, _SPARSE_INDICES = 1, 2
_TENSOR_EXTERNAL_DATA = 13
_ENTRY_KEY, _ENTRY_VALUE = 1, 2

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def external_files(model: bytes | memoryview) -> list[str]:
    """Return the names of the files that hold initializers of a serialized ModelProto, sorted.

    Bytes that are no well-formed protobuf give what was found before the flaw: the importer will report it.
    """
    names = set()
    try:
        for graph in _fields(memoryview(model), _MODEL_GRAPH):
            for tensor in _tensors(graph):
                for entry in _fields(tensor, _TENSOR_EXTERNAL_DATA):
                    if [bytes(key) for key in _fields(entry, _ENTRY_KEY)] == [b"location"]:
                        names |= {bytes(value).decode() for value in _fields(entry, _ENTRY_VALUE)}
    except (IndexError, ValueError):
        pass
    return sorted(names)


def _tensors(graph: memoryview) -> Iterator[memoryview]:
    """Yield the tensors of a graph's initializers; a sparse one has two."""
    yield from _fields(graph, _GRAPH_INITIALIZER)
    for sparse in _fields(graph, _GRAPH_SPARSE_INITIALIZER):
        yield from _fields(sparse, _SPARSE_VALUES)
        yield from _fields(sparse, _SPARSE_INDICES)


def _fields(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """Yield the length-delimited fields of one number."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _BYTES:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("a field ends beyond its message")
            if tag >> 3 == wanted:
                yield message[at : at + length]
            at += length
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
