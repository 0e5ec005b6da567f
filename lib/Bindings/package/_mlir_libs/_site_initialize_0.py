"""Run by the bindings when they are first imported: every new context knows the dialects registered here."""

from ._mlir import globals as _globals
from ._tilewright import register_dialects as register_dialects

_PACKAGE = __package__.rpartition(".")[0]
_globals.dialect_search_modules = [f"{_PACKAGE}.views", *_globals.dialect_search_modules]
