# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compile worker: LLVM-dialect MLIR in, code out. LLVM may abort here without harm to the user's process.

Serves requests on stdin/stdout. To reproduce one failure by hand::

    python -m tilewright.core.worker --cpu znver5 --features=+avx2 kernel.mlir -o kernel.o
    python -m tilewright.core.worker --code ptx --cpu sm_90a --features=+ptx86 kernel.mlir -o kernel.ptx
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.core.protocol import receive, send

IDLE_SECONDS = 120.0

#: (module, cpu, features, optimization level) -> code
Emit = Callable[[bytes, str, str, int], bytes]

#: Kinds of code, each with the binding that makes it. The last two are for people and tests.
CODES = {"object": "emit_object", "ptx": "emit_ptx", "assembly": "emit_assembly", "llvm-ir": "to_llvm_ir"}


def serve(emits: Mapping[str, Emit], idle_seconds: float = IDLE_SECONDS) -> None:
    """Answer requests until stdin ends, or none came for a while (a loaded LLVM is 150 MB; the pool starts anew)."""
    requests = sys.stdin.buffer.raw
    # LLVM prints on file descriptor 1 now and then: answers get a descriptor of their own.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while select.select([requests], [], [], idle_seconds)[0]:
        message = receive(requests)
        if message is None:
            return
        header, module = message
        try:
            if header.get("only") == "parse":
                parse(module)
                code = b""
            elif header.get("only") == "infer":
                code = infer(module, header["strict"], header["values"])
            else:
                make = emits[header["code"]]
                code = make(module, header["cpu"], header["features"], header["opt_level"])
        except Exception as error:
            send(answers, {"ok": False, "error": f"{type(error).__name__}: {error}"})
        else:
            send(answers, {"ok": True}, code)


def parse(text: bytes) -> None:
    """Parse and verify a module, as the compiler is about to do, which says what is wrong: MLIR's parser may crash."""
    from tilewright.mlir import ir

    with contextlib.suppress(ir.MLIRError), ir.Context():
        ir.Module.parse(text.decode())


def infer(model: bytes, strict: bool, values: bool) -> bytes:
    """ONNX's shape inference, which may crash as well."""
    import onnx

    found = onnx.shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict, data_prop=values)
    return found.SerializeToString()


def load_emit(code: str) -> Emit:
    """Import the binding that makes a kind of code, one of :data:`CODES`."""
    from tilewright.mlir._mlir_libs import _tilewright

    make = getattr(_tilewright, CODES[code])

    def emit(*arguments: Any) -> bytes:
        made = make(*arguments)
        return made.encode() if isinstance(made, str) else made

    return emit


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve, or compile one file."""
    parser = argparse.ArgumentParser(prog="tilewright.core.worker", description=__doc__)
    parser.add_argument("file", nargs="?", help="module of the LLVM dialect; without it: serve requests on stdin")
    parser.add_argument("-o", dest="output", default="kernel.o")
    parser.add_argument("--code", choices=CODES, default="object")
    parser.add_argument("--cpu", default="x86-64")
    parser.add_argument("--features", default="")
    parser.add_argument("--opt-level", type=int, default=3)
    options = parser.parse_args(arguments)
    if options.file is None:
        serve({code: load_emit(code) for code in CODES})
        sys.stderr.flush()
        os._exit(0)  # all is answered; who asks next waits for this process to be gone, not for what libraries tidy up
    emit = load_emit(options.code)
    with open(options.file, "rb") as source:
        code = emit(source.read(), options.cpu, options.features, options.opt_level)
    with open(options.output, "wb") as target:
        target.write(code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
