# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is wrong with messages, in words: the same from the static checks and from the simulators."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.steps import Step


def unknown_route(name: str, known: Iterable[str], step: Step) -> UserError:
    """An instruction names a route that the program does not have."""
    return UserError(f"Route '{name}' is not a route of the program, which has {sorted(known)}.", location=str(step))


def unheard(core: str, route: str, step: Step) -> UserError:
    """A core sends, and none receives."""
    return UserError(
        f"{core} sends on route '{route}', and no core receives from it there: a send without a receiver. Let only "
        "cores send that are a receiver's source.",
        location=str(step),
    )


def uneven(route: str, pair: tuple[str, str], sent: int, taken: int, paths: int) -> UserError:
    """From one core to another, not as many messages are received as sent; so on so many paths of the route."""
    kind = "a send without a receiver" if sent > taken else "a receive without a sender"
    messages = "1 message" if sent == 1 else f"{sent} messages"
    others = f" ({paths} paths of this route break the rule)" if paths > 1 else ""
    return UserError(
        f"{pair[0]} sends {messages} on route '{route}' to {pair[1]}, which receives {taken}: {kind}. As many must be "
        f"received as are sent{others}."
    )
