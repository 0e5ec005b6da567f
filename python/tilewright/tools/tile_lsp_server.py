# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``tile-lsp-server``: mlir-lsp-server with our dialects, for editors."""

from __future__ import annotations

import sys

from tilewright.tools import common


def main(argv: list[str] | None = None) -> None:
    """Serve the language server protocol on stdin and stdout, then leave the process."""
    from tilewright.mlir._mlir_libs import _tilewright

    arguments = list(sys.argv[1:] if argv is None else argv)
    common.leave(_tilewright.lsp_server_main(["tile-lsp-server", *arguments]))


if __name__ == "__main__":
    main()
