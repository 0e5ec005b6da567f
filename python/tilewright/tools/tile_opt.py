# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``tile-opt``: mlir-opt with our dialects and all passes, in C++ and in Python."""

from __future__ import annotations

import sys

from tilewright.core.errors import TilewrightError
from tilewright.tools import common


def main(argv: list[str] | None = None) -> None:
    """Run ``tile-opt`` and leave the process.

    ``--load-python FILE`` imports passes before the options are parsed; ``--pass-doc NAME`` prints the documentation
    of a Python pass or a phase. All other options are those of mlir-opt: ``--tile-set-target=target=cpu:NAME`` before
    a phase (``--tile-cpu-plan``) says for which machine it is, where the module does not say so itself.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    common.delay_numpy()
    try:
        common.load_passes(common.take_values(arguments, "load-python"))
        names = common.take_values(arguments, "pass-doc")
        for name in names:
            print(common.documentation(name))
    except TilewrightError as error:
        common.fail("tile-opt", error)
    if names:
        common.leave(0)
    from tilewright.mlir._mlir_libs import _tilewright

    common.leave(_tilewright.opt_main(["tile-opt", *arguments]))


if __name__ == "__main__":
    main()
