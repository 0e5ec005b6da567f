# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``tile-reduce``: mlir-reduce with our dialects and all passes; makes IR smaller while a test script still fails."""

from __future__ import annotations

import sys

from tilewright.core.errors import TilewrightError
from tilewright.tools import common


def main(argv: list[str] | None = None) -> None:
    """Run ``tile-reduce`` and leave the process. ``--load-python FILE`` works as in ``tile-opt``."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    common.delay_numpy()
    try:
        common.load_passes(common.take_values(arguments, "load-python"))
    except TilewrightError as error:
        common.fail("tile-reduce", error)
    from tilewright.mlir._mlir_libs import _tilewright

    common.leave(_tilewright.reduce_main(["tile-reduce", *arguments]))


if __name__ == "__main__":
    main()
