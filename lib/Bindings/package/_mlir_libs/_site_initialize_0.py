"""Run by the bindings when they are first imported: every new context knows the dialects registered here."""

from ._tilewright import register_dialects as register_dialects
