# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A libcuda that writes each call with its arguments to a file, and hands it on to the fake driver (fake_cuda.c).

The fake reads PTX alone: machine code is refused as that of another GPU (209), before it is handed on.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
from ctypes import c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_uint64
from pathlib import Path
from typing import Any

import fake_cuda

from tilewright.runtime.gpu.cuda_driver import PROTOTYPES

_TYPES = {
    c_int: "int",
    c_uint: "unsigned",
    c_uint64: "unsigned long long",
    ctypes.c_ulonglong: "unsigned long long",
    c_size_t: "size_t",
    c_ubyte: "unsigned char",
    c_char_p: "const char *",
}

_HEAD = r"""
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
static void *fake;
static FILE *out;
static void *find(const char *name) { return dlsym(fake, name); }
__attribute__((constructor)) static void start(void) {
  fake = dlopen(FAKE, RTLD_NOW | RTLD_LOCAL);
  out = fopen(RECORD, "a");
  ((void (*)(size_t))find("fake_memory"))((size_t)1 << 30);
  void (*attribute)(int, int) = (void (*)(int, int))find("fake_attribute");
  ATTRIBUTES
}
static void numbers(const char *name, const void *values, int count, int bytes) {
  fprintf(out, ", \"%s\": [", name);
  for (int i = 0; i < count; ++i) {
    unsigned long long value = 0;
    memcpy(&value, (const char *)values + (size_t)i * (size_t)bytes, (size_t)bytes);
    fprintf(out, "%s%llu", i ? ", " : "", value);
  }
  fprintf(out, "]");
}
struct attribute { int id; char pad[4]; unsigned value[16]; };
struct config {
  unsigned grid[3], block[3], shared;
  void *stream;
  struct attribute *attributes;
  unsigned count;
};
static int is_machine_code(const char *image) { return !memcmp(image, "\177ELF", 4); }
static void tell_launch(const struct config *config) {
  numbers("grid", config->grid, 3, 4);
  numbers("block", config->block, 3, 4);
  fprintf(out, ", \"shared\": %u, \"attributes\": {", config->shared);
  for (unsigned i = 0; i < config->count; ++i) {
    const unsigned *v = config->attributes[i].value;
    fprintf(out, "%s\"%d\": [%u, %u, %u]", i ? ", " : "", config->attributes[i].id, v[0], v[1], v[2]);
  }
  fprintf(out, "}");
}
"""
#: What is told of a call beside its arguments as numbers.
_MORE = {
    "cuLaunchKernelEx": "tell_launch(a0);",
    "cuModuleLoadDataEx": 'fprintf(out, ", \\"image\\": \\"%s\\"", is_machine_code(a1) ? "cubin" : "ptx");',
    "cuModuleGetFunction": 'fprintf(out, ", \\"name\\": \\"%s\\"", a2);',
    "cuTensorMapEncodeTiled": (
        'numbers("dims", a4, a2, 8); numbers("strides", a5, a2 - 1, 8); numbers("box", a6, a2, 4);'
        'numbers("steps", a7, a2, 4);'
    ),
}
#: What is not handed on.
_REFUSED = {"cuModuleLoadDataEx": "is_machine_code(a1) ? 209 :"}
#: What is told after it.
_MADE = {"cuModuleGetFunction": 'fprintf(out, ", \\"made\\": %lld", *(long long *)a0);'}


def _function(name: str, arguments: tuple[Any, ...]) -> str:
    kinds = [_TYPES.get(kind, "void *") for kind in arguments]
    names = [f"a{i}" for i in range(len(kinds))]
    declared = ", ".join(f"{kind} {one}" for kind, one in zip(kinds, names, strict=True)) or "void"
    told = "".join(f", (long long){one}" for one in names)
    formats = ", ".join(["%lld"] * len(kinds))
    return f"""int {name}({declared}) {{
  int (*call)({", ".join(kinds) or "void"}) = (int (*)({", ".join(kinds) or "void"}))find("{name}");
  fprintf(out, "{{\\"call\\": \\"{name}\\", \\"arguments\\": [{formats}]"{told});
  {_MORE.get(name, "")}
  int code = {_REFUSED.get(name, "")} call({", ".join(names)});
  {_MADE.get(name, "")}
  fprintf(out, ", \\"code\\": %d}}\\n", code);
  fflush(out);
  return code;
}}
"""


def build(folder: Path) -> tuple[Path, Path]:
    """Compile the fake driver of a Hopper GPU and the library around it.

    Returns:
        The library, for TILEWRIGHT_LIBCUDA; the file of its records.
    """
    fake, record, source = fake_cuda.build(folder), folder / "calls.jsonl", folder / "recording.c"
    attributes = " ".join(f"attribute({number}, {value});" for number, value in fake_cuda.HOPPER.items())
    text = _HEAD.replace("ATTRIBUTES", attributes).replace("FAKE", json.dumps(str(fake)))
    text = text.replace("RECORD", json.dumps(str(record)))
    source.write_text(text + "".join(_function(name, arguments) for name, arguments in PROTOTYPES.items()))
    library = folder / "libcuda_recording.so"
    command = [fake_cuda.COMPILER, "-O1", "-w", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library, record


def calls(record: Path) -> list[dict[str, Any]]:
    """The recorded calls, in order."""
    return [json.loads(line) for line in record.read_text().splitlines()]
