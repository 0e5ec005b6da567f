# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line: ``tilewright compile | run | bench | explain | check | sparsify | bisect | emulate | ...``.

Exit codes: 0 success; 1 the results differ from the peer's, bisect or doctor found something; 2 the request is wrong;
3 not supported; 4 an internal error; 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from tilewright import __version__
from tilewright.core import config
from tilewright.core.errors import TilewrightError, UnsupportedError, UserError

_EPILOG = """\
examples:
  tilewright compile model.onnx -o model.tw          compile for this machine
  tilewright run model.tw --input x=x.npy            run it (random data for inputs that are not given)
  tilewright run model.onnx --compare onnxruntime    compile, run, compare the numbers
  tilewright bench model.onnx --against onnxruntime --threads 1
  tilewright check model.onnx                        which nodes can be compiled, and why the others cannot
  tilewright sparsify model.onnx --pattern 2:4 -o pruned.onnx    weights with zeros, for sparse kernels
  tilewright explain model.onnx -o report.html
  tilewright compile model.onnx --target cuda:sm_90a    PTX for an NVIDIA GPU; run and explain take the .tw there
  tilewright run model.tw --emulate                  run code for a GPU on the emulator
  tilewright compile model.onnx --stop-after plan    print the IR after a phase
  tilewright explore-machine llama3-8b --grid 360x360 660x660 --sram 32K 48K    which mesh of cores to build
  tilewright emulate gemm.ptx --grid 4,4 --args a.npy zeros:f32:64x64   check a kernel with no GPU

TILEWRIGHT_DEBUG=1 shows tracebacks; `tilewright doctor` lists all settings.
"""


def _build() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    """The parser of the line, and those of the commands."""
    from tilewright.cli import (
        bisect_command,
        check_command,
        emulate_command,
        explore_command,
        inspect_commands,
        model_commands,
        sparsify_command,
    )

    parser = argparse.ArgumentParser(
        prog="tilewright",
        description="Compile models into fast code for this machine, run them, and see what was done.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tilewright {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    model_commands.add_to(commands)
    inspect_commands.add_to(commands)
    check_command.add_to(commands)
    sparsify_command.add_to(commands)
    bisect_command.add_to(commands)
    emulate_command.add_to(commands)
    explore_command.add_to(commands)
    return parser, commands.choices


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; words that a command does not know are refused with the usage of that command, not of all."""
    parser, commands = _build()
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands[options.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: the words after ``tilewright``; default: those of the process.
    """
    options = _parse(arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, e.g. `| head`
        return 0
    except TilewrightError as error:
        return _report(error)
    except OSError as error:
        if error.filename is None:
            raise
        return _report(UserError(f"{error.filename}: {error.strerror}"))


def _report(error: TilewrightError) -> int:
    if config.debug.get():
        raise error
    print(f"{error.kind}: {error}", file=sys.stderr)
    if isinstance(error, UserError):
        return 2
    return 3 if isinstance(error, UnsupportedError) else 4
