# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled models on disk: a folder, or a zip archive of the same files.

::

    manifest.json          inputs, outputs, weights, kernels, versions, CPU features needed
    code/<hash>.so         the kernels and the entry, C ABI; named by content, as a process loads each name only once
    code/program.json      for GPUs instead: the host program, and beside it a PTX file for each kernel
    weights.safetensors    packed weights, 64-byte aligned, mapped and not copied
    report.json.gz         what explain() shows: IR after each phase, times, decisions (optional)
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core import config, safetensors
from tilewright.core.errors import UserError
from tilewright.runtime.manifest import Manifest

MANIFEST = "manifest.json"
CODE = "code"
WEIGHTS = "weights.safetensors"
REPORT = "report.json.gz"
_ZIP_SUFFIXES = {".zip", ".tw"}
_LOCAL_HEADER = 30


class Artifact:
    """A compiled model that stands in a folder or in a zip archive.

    Args:
        path: the folder, or the archive.

    Raises:
        UserError: nothing is there, or it is no compiled model.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._zip: zipfile.ZipFile | None = None
        if self.path.is_file():
            try:
                self._zip = zipfile.ZipFile(self.path)
            except zipfile.BadZipFile:
                raise UserError(_no_archive(self.path)) from None
        elif not self.path.is_dir():
            raise UserError(f"there is no compiled model at {self.path}")
        self.manifest = Manifest.loads(self.read(MANIFEST), f"{self.path}/{MANIFEST}")

    def read(self, name: str) -> bytes:
        """Return the bytes of one file of the model.

        Raises:
            UserError: the model has no such file, or a damaged one.
        """
        try:
            if self._zip is not None:
                return self._zip.read(name)
            return (self.path / name).read_bytes()
        except (KeyError, FileNotFoundError):
            raise UserError(f"{self.path} is not a complete compiled model: {name} is missing") from None
        except (OSError, zipfile.BadZipFile, zlib.error) as error:
            raise UserError(f"{self.path}: cannot read {name} ({error}); compile or save the model again") from None

    def report(self) -> dict[str, Any]:
        """Return what the compiler left for explain(); empty where it left nothing.

        Raises:
            UserError: it is damaged.
        """
        try:
            data = self.read(REPORT)
        except UserError:
            return {}
        try:
            return json.loads(gzip.decompress(data))
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise UserError(f"{self.path}: {REPORT} is damaged ({error}); compile the model again") from None

    def weights(self) -> dict[str, np.ndarray]:
        """Map the weights; read-only views, no copies."""
        if not self.manifest.weights:
            return {}
        if self._zip is None:
            if not (self.path / WEIGHTS).is_file():
                raise UserError(f"{self.path} is not a complete compiled model: {WEIGHTS} is missing")
            return safetensors.read(self.path / WEIGHTS)
        return safetensors.read(self.path, self._stored_at(WEIGHTS))

    def code_path(self) -> Path:
        """Return a file that holds the code: for an archive, a copy that later loads use again.

        Raises:
            UserError: the code is not what the manifest says (loading a torn file could kill the process).
        """
        inside = code_file(self.manifest)
        code = self.read(inside)
        if hashlib.sha256(code).hexdigest() != self.manifest.code_sha256:
            raise UserError(f"{self.path}/{inside} is damaged (its hash differs from the manifest's); compile it again")
        if self._zip is None:
            return self.path / inside
        name = f"{self.manifest.code_sha256[:32]}.so"
        for folder in (config.cache_dir.get() / "code", Path(tempfile.gettempdir()) / f"tilewright-{os.getuid()}"):
            try:
                return _place(folder / name, code)
            except OSError:
                continue
        raise UserError("no folder to unpack the model's code in; set TILEWRIGHT_CACHE_DIR to a writable one")

    def save(self, path: str | Path) -> Path:
        """Copy the model; `path` ending in ``.tw`` or ``.zip`` (and no folder) makes one file, else a folder.

        Raises:
            UserError: the files cannot be read or written.
        """
        target = Path(path)
        try:
            if target.suffix in _ZIP_SUFFIXES and not target.is_dir():
                _atomically(target, self._write_zip)
            else:
                self._write_folder(target)
        except OSError as error:
            raise UserError(f"cannot save the model to {target}: {error}") from None
        return target

    def _names(self) -> list[str]:
        if self._zip is not None:
            return self._zip.namelist()
        names = (*code_files(self.manifest), WEIGHTS, REPORT, MANIFEST)
        return [name for name in names if (self.path / name).is_file()]

    def _write_folder(self, target: Path) -> None:
        for stale in _files_of(target) - set(code_files(self.manifest)):
            (target / stale).unlink(missing_ok=True)  # of the model that this one replaces
        for name in self._names():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            _atomically(target / name, lambda temporary, name=name: temporary.write_bytes(self.read(name)))

    def _write_zip(self, temporary: Path) -> None:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
            for name in self._names():
                info = zipfile.ZipInfo(name)
                info.external_attr = 0o644 << 16
                if name == WEIGHTS:
                    assert archive.fp is not None
                    info.extra = _padding(archive.fp.tell() + _LOCAL_HEADER + len(name))
                with archive.open(info, "w", force_zip64=False) as file:
                    file.write(self.read(name))

    def _stored_at(self, name: str) -> int:
        """Return where a stored entry's bytes begin in the archive."""
        assert self._zip is not None
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise UserError(f"{self.path} is not a complete compiled model: {name} is missing") from None
        if info.compress_type != zipfile.ZIP_STORED:
            raise UserError(f"{self.path}: {name} must be stored, not compressed; make the archive with Model.save")
        with open(self.path, "rb") as file:
            file.seek(info.header_offset)
            header = file.read(_LOCAL_HEADER)
        name_length, extra_length = struct.unpack_from("<HH", header, 26)
        return info.header_offset + _LOCAL_HEADER + name_length + extra_length


def _no_archive(path: Path) -> str:
    """What is wrong with a file that is no zip archive."""
    with path.open("rb") as file:
        begins = file.read(4)
    if begins == b"PK\x03\x04":
        return f"{path} is a zip archive whose end is missing (a copy that stopped?); copy or save it again"
    return f"{path} is not a compiled model (neither a folder nor a zip archive); compile and save() make one"


def write_artifact(
    folder: str | Path,
    manifest: Manifest,
    code: bytes,
    weights: Mapping[str, np.ndarray],
    report: dict[str, Any] | None = None,
) -> None:
    """Write a compiled model to a folder (made where missing). The manifest comes last: with it, the model is whole."""
    manifest = dataclasses.replace(manifest, code_sha256=hashlib.sha256(code).hexdigest())
    write_files(Path(folder), manifest, {code_file(manifest): code}, weights, report)


def write_files(
    folder: Path,
    manifest: Manifest,
    code: Mapping[str, bytes],
    weights: Mapping[str, np.ndarray],
    report: dict[str, Any] | None,
) -> None:
    """Write a compiled model whose files of code are given by name, and weights unless they stand there already."""
    (folder / CODE).mkdir(parents=True, exist_ok=True)
    for name, data in code.items():
        (folder / name).write_bytes(data)
    write_weights(folder, weights)
    if report is not None:
        (folder / REPORT).write_bytes(gzip.compress(json.dumps(report).encode(), compresslevel=3, mtime=0))
    (folder / MANIFEST).write_text(manifest.dumps())


def write_weights(folder: Path, weights: Mapping[str, np.ndarray]) -> None:
    """Write the weights of a model, if it has some, to its folder."""
    if weights:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / WEIGHTS, "wb") as file:
            safetensors.write(file, weights)


def code_file(manifest: Manifest) -> str:
    """Return the name of the shared object inside the model."""
    return f"{CODE}/{manifest.code_sha256[:16]}.so"


def code_files(manifest: Manifest) -> tuple[str, ...]:
    """Return the names of all files of code inside the model."""
    return manifest.code_files or (code_file(manifest),)


def _files_of(folder: Path) -> set[str]:
    """The files of code of the model that a folder holds; none where it holds no whole one."""
    try:
        return set(code_files(Manifest.loads((folder / MANIFEST).read_bytes())))
    except (OSError, UserError):
        return set()


def _padding(offset: int) -> bytes:
    """Return a zip extra field after which data that would begin at `offset` is 64-byte aligned."""
    size = -(offset + 4) % safetensors.ALIGNMENT
    return struct.pack("<HH", 0xFFFE, size) + b"\0" * size


def _atomically(target: Path, write) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _place(path: Path, data: bytes) -> Path:
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _atomically(path, lambda temporary: temporary.write_bytes(data))
    if path.stat().st_uid != os.getuid() or path.read_bytes() != data:
        raise OSError(f"{path} is not ours")
    return path
