# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base class of passes, their options, and what MLIR has to know of them.

| dataclass field            | pass option                     | in text              |
|----------------------------|---------------------------------|----------------------|
| ``max_rows: int = 8``      | ``max-rows``, integer           | ``p{max-rows=16}``   |
| ``fast: bool = False``     | ``fast``, flag                  | ``p{fast}``          |
| ``scale: float = 1.0``     | ``scale``, number               | ``p{scale=0.5}``     |
| ``kind: str = "a"``        | ``kind``, text                  | ``p{kind=b}``        |
| ``sizes: tuple[int, ...]`` | ``sizes``, list (also of str)   | ``p{sizes=4,8}``     |
"""

from __future__ import annotations

import dataclasses
import inspect
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_type_hints

from tilewright.core.errors import TilewrightError

if TYPE_CHECKING:
    from tilewright.devices import Device
    from tilewright.mlir import ir

_KINDS = {bool: "bool", int: "int", float: "float", str: "str", tuple[int, ...]: "ints", tuple[str, ...]: "strs"}


class Pass:
    """Base of all Python passes: subclass it with ``@dataclass(frozen=True)`` and ``@register``.

    The first line of the class's docstring is the summary in ``--help``; all of it is what ``--pass-doc`` prints, so
    give it an example of the IR before and after. A run may change anything inside its op and nothing outside: other
    threads work there. The IR verifies before and after a pass, not in between. No state outlives a run.
    """

    name: ClassVar[str] = ""
    """The pass's name in text, e.g. ``tile-fuse-chains``."""
    dialects: ClassVar[tuple[str, ...]] = ()
    """Dialects whose ops, types or attributes the pass makes; they are loaded before it runs."""
    anchor: ClassVar[str | None] = None
    """The op that the pass runs on, e.g. ``func.func``; None: any op that is isolated from above."""

    def run(self, op: ir.Operation) -> None:
        """Change ``op`` in place. Any exception fails the pass; see :func:`located` to name the guilty op."""
        raise TypeError(f"pass '{type(self).__name__}' does not define run(op)")


class OptionSpec(NamedTuple):
    """An option as the extension takes it: ``kind`` is one of bool, int, float, str, ints, strs."""

    name: str
    kind: str
    default: Any
    help: str


def option(default: Any, help: str) -> Any:
    """Declare an option of a pass with its default value and one line of help."""
    return dataclasses.field(default=default, metadata={"help": help})


Fact = Callable[["Device"], Any]
"""What a device says of itself: a value for an option, or None where its description does not tell."""

_UNSET: dict[type, Any] = {bool: False, int: 0, float: 0.0, str: "", tuple: ()}


def device_option(otherwise: Any, fact: Fact, help: str) -> Any:
    """Declare an option that the module's device answers where the text leaves it out (or has 0, an empty list, ...).

    Args:
        otherwise: the value without a device (`tile.device`), or where its description does not tell.
        fact: asks the device, see ``devices/facts.py``.
        help: one line.
    """
    return dataclasses.field(
        default=_UNSET[type(otherwise)],
        metadata={
            "help": f"{help} (default: the device's; without one {_shown(otherwise)})",
            "fact": (fact, otherwise),
        },
    )


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def summary(cls: type[Pass]) -> str:
    """Return the first line of the docstring, without the full stop."""
    lines = (inspect.getdoc(cls) or "").splitlines()
    return lines[0].rstrip(".") if lines else ""


def option_specs(cls: type[Pass]) -> list[OptionSpec]:
    """Return the options of a pass class.

    Raises:
        TypeError: the class is not a dataclass, or a field has no default or an unsupported type.
    """
    if "__dataclass_params__" not in vars(cls):
        raise TypeError(f"pass '{cls.__name__}' must be a dataclass: put @dataclass(frozen=True) below @register")
    hints = get_type_hints(cls, localns={"ClassVar": ClassVar})
    return [_option_spec(cls, field, hints[field.name]) for field in dataclasses.fields(cls)]


def _option_spec(cls: type[Pass], field: dataclasses.Field, hint: Any) -> OptionSpec:
    kind = _KINDS.get(hint)
    where = f"option '{field.name}' of pass '{cls.__name__}'"
    if kind is None:
        raise TypeError(f"{where} has type {hint}: use bool, int, float, str, tuple[int, ...] or tuple[str, ...]")
    if field.default is dataclasses.MISSING:
        raise TypeError(f"{where} needs a default value")
    default = list(field.default) if kind in ("ints", "strs") else field.default
    return OptionSpec(field.name.replace("_", "-"), kind, default, field.metadata.get("help", ""))


Failure = tuple[str, Any, list[str], BaseException]


def make_callable(cls: type[Pass]) -> Callable[[ir.Operation, dict[str, Any]], Failure | None]:
    """Return what the extension calls: it makes the pass with the given options and runs it on an op.

    The callable returns None, or (message, location or None, notes, exception) where the pass raised.
    """

    def call(op: ir.Operation, options: dict[str, Any]) -> Failure | None:
        try:
            instance = cls(**_completed(cls, op, {name.replace("-", "_"): v for name, v in options.items()}))
            with op.location:  # the default for ops that the pass makes
                instance.run(op)
        except BaseException as error:  # nothing may unwind through the pass manager
            return describe_failure(cls.name, error)
        return None

    return call


def _completed(cls: type[Pass], op: ir.Operation, values: dict[str, Any]) -> dict[str, Any]:
    """The options with what the module's device says in the place of those that the text leaves out."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    facts = {field.name: field.metadata["fact"] for field in fields if "fact" in field.metadata}
    unset = {name: fact for name, fact in facts.items() if not values.get(name)}
    if not unset:
        return values
    from tilewright.ir.target_info import find_device

    device = find_device(op)
    for name, (fact, otherwise) in unset.items():
        told = None if device is None else fact(device)
        values[name] = otherwise if told is None else told
    return values


def describe_failure(name: str, error: BaseException) -> Failure:
    """Turn the exception of a pass into the parts of a diagnostic; an unexpected one gets its traceback as a note."""
    location = getattr(error, "mlir_location", None)
    if isinstance(error, TilewrightError):
        notes = [f"at {error.location}"] if error.location else []
        return error.message, location, notes, error
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip()
    reason = "".join(traceback.format_exception_only(type(error), error)).strip()
    return f"python pass '{name}' failed: {reason}", location, [text], error
