# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a higher layer hands down to a lower one, which cannot import it: who has something puts it here."""

from __future__ import annotations

from collections.abc import Callable, Collection

#: The Python passes that are registered, by name.
PASSES: dict[str, type] = {}

#: What imports the modules with passes of this package, those of some names or (None) all; the package itself adds it
#: when it is imported.
LOADERS: list[Callable[[Collection[str] | None], None]] = []
