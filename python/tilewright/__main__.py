# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``python -m tilewright`` is the command ``tilewright``."""

import sys

from tilewright.cli import main

sys.exit(main())
