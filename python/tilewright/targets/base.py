# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a target is: one object that everything asks which differs between machines.

A target stands in a folder of its own, ``targets/KIND/target.py``, or in a package outside of this one that names its
class as an entry point of the group ``tilewright.targets``, under its kind::

    [project.entry-points."tilewright.targets"]
    mesh = "my_package.target:MeshTarget"

The module of the class is imported to load a model where there is no compiler: it may import the run-time and
``tilewright.core`` at its top, and everything else inside of functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.core.errors import UserError

if TYPE_CHECKING:
    from tilewright.core.options import CompileOptions
    from tilewright.devices import Device
    from tilewright.passes.pipeline import Pipeline
    from tilewright.targets.rules import Rule

#: (state, text) of a check by `tilewright doctor`: state is "ok", "missing" (a problem) or "note".
Finding = tuple[str, str]


class Target:
    """A machine to compile for. Nothing of it is looked up before it is asked for.

    Args:
        name: the target string, ``KIND`` or ``KIND:MACHINE``.

    Attributes:
        kind: what stands before the colon.
        forms: how target strings of this kind look, for messages; none where no models are compiled for it.
        precisions: which of :data:`tilewright.core.options.PRECISIONS` there are instructions for.
        accuracies: which of :data:`tilewright.core.options.ACCURACIES` its pipeline knows.
        many_threads: it runs thousands of threads; some operators are imported as more work, in parallel.
        emulates: an emulator can stand in for the machine (``emulate=``).
        assembles: machine code can be stored beside the text that drivers assemble (``cubin=``).
        appends: results may continue inputs in their memory (``append_in_place=``).
        has_residents: weights can stay where they are used from call to call (``resident=``).
        compiles: models are compiled for it into artifacts; False for an interpreter of what is imported.
        runs_apart: the run-time alone runs its artifacts, with neither MLIR nor the compiler.
        refusal: why models cannot be compiled for it, if so.
        rules: choices that exclude each other for it, beyond those that do so everywhere.
    """

    kind: ClassVar[str] = ""
    forms: ClassVar[tuple[str, ...]] = ()
    precisions: ClassVar[tuple[str, ...]] = ("f32",)
    accuracies: ClassVar[tuple[str, ...]] = ("exact",)
    many_threads: ClassVar[bool] = False
    emulates: ClassVar[bool] = False
    assembles: ClassVar[bool] = False
    has_residents: ClassVar[bool] = False
    appends: ClassVar[bool] = False
    compiles: ClassVar[bool] = True
    runs_apart: ClassVar[bool] = True
    refusal: ClassVar[str] = ""
    rules: ClassVar[Sequence[Rule]] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.check_name()

    def __str__(self) -> str:
        """Return the target string."""
        return self.name

    def __repr__(self) -> str:
        """Return class and target string."""
        return f"{type(self).__name__}({self.name!r})"

    # Which machine ---------------------------------------------------------------------------------------------------

    def check_name(self) -> None:
        """Refuse a string that is of this kind, but names no machine; default: the kind alone is a target.

        Raises:
            UserError: it names none.
        """
        if self.name != self.kind:
            raise UserError(f"unknown target {self.name!r}: there is {self.kind!r} only")

    def here(self) -> Target:
        """Return the target with what its string leaves to this machine filled in.

        Raises:
            UserError: this machine has no such processor.
        """
        return self

    @property
    def words(self) -> str:
        """What is compiled for, told to people."""
        return self.name

    @property
    def device(self) -> Device | None:
        """The machine that planning sees; None where nothing is planned.

        Raises:
            UserError: there is no such machine.
        """
        return None

    @property
    def cpu(self) -> str:
        """LLVM's name of the processor; "" where LLVM makes no code."""
        return ""

    @property
    def features(self) -> str:
        """LLVM's feature string, e.g. ``+avx2,-avx512f``."""
        return ""

    @property
    def needed(self) -> tuple[str, ...]:
        """Features that the machine which runs the code must have."""
        return ()

    def code_key(self) -> str:
        """What the code depends on beside target string, options and this package: the sources of other packages."""
        return _sources(type(self))

    # What it can do --------------------------------------------------------------------------------------------------

    @property
    def tunes(self) -> bool:
        """Whether candidates can be measured for it on some machine that this process may run on."""
        return False

    def tuning_key(self) -> str:
        """What tells machines of one target apart where times are kept."""
        return ""

    def runs(self, options: CompileOptions) -> bool:
        """Whether a model for it can be run here at once, to see its error."""
        return True

    @property
    def needs_emulator(self) -> bool:
        """Whether its models run here on an emulator only."""
        return False

    def products(self, root: Any, precision: str) -> Sequence[Any]:
        """Return what a precision other than f32 makes narrow.

        Args:
            root: a module after phase `normalize`.
            precision: one of :attr:`precisions`.

        Returns:
            (operation, number of the operand whose range is to be observed), or operations for types without ranges.
        """
        return ()

    @classmethod
    def findings(cls) -> Sequence[tuple[str, Callable[[], Finding]]]:
        """Checks of ``tilewright doctor``: (title, check) for what it needs beyond the compiler."""
        return ()

    # From IR to an artifact ------------------------------------------------------------------------------------------

    def pipeline(self, options: CompileOptions) -> Pipeline:
        """Return the phases from `normalize` to `lower`.

        Passes read the device and most options on the module (`ir/target_info.py`), and do nothing where these ask
        for nothing: a pipeline that leaves it at that is the same for all machines of a kind. It is also registered
        with `tile-opt`, and must not look at this machine.

        Raises:
            UserError: it has none, or its machine lacks what they are made for.
        """
        raise UserError(f"target {self} has no passes to look at; choose cpu or cpu:NAME, or give pipeline=")

    def states(self) -> Pipeline:
        """Return the passes that `bisect` looks at: those after which the interpreter, or `executes`, runs the IR."""
        from tilewright.core.options import CompileOptions

        return self.pipeline(CompileOptions())

    def executes(self, module: Any) -> bool:
        """Whether a state of the IR is lowered so far that :meth:`emit` takes it and the result can be run here."""
        return False

    def after_phase(self, work: Any, phase: str) -> None:
        """Keep what a later phase takes out of the module (in ``work.kept_for_emit``)."""

    def kept_as_text(self, work: Any) -> str:
        """What :meth:`after_phase` kept, for IR in a file that a compilation may begin with; "" where that is nothing.

        It may add arrays to `work.weights`, which stand beside the IR.
        """
        return ""

    def keep_text(self, work: Any, text: str) -> None:
        """Keep again what :meth:`kept_as_text` told."""

    def emit(self, work: Any, folder: Path) -> Any:
        """Write the artifact of a lowered module.

        Args:
            work: a :class:`tilewright.compiler.driver.Compilation` after all phases of the pipeline.
            folder: where to write.

        Returns:
            None; or a compilation to begin in its place, where the machine's assembler refuses a choice of this one.

        Raises:
            InternalError: LLVM, the linker or the assembler failed.
        """
        raise NotImplementedError(f"target {self} has no emit()")

    # Running ---------------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, artifact: Any, threads: int | None, emulate: bool | Mapping[str, Any]) -> Any:
        """Return the model of an artifact, ready to be called.

        Raises:
            UserError: this machine cannot run it.
        """
        raise NotImplementedError(f"target {cls.kind} has no load()")

    def interpreted(self, source: Any, options: CompileOptions) -> Any:
        """Return a model that interprets what is imported, for a target that compiles nothing."""
        raise NotImplementedError(f"target {self} compiles")


def _sources(cls: type) -> str:
    """The sources of the package that a class stands in, where it is not ours (`cache.compiler_id` knows ours)."""
    from tilewright.core.cache import digest

    top = sys.modules[cls.__module__.partition(".")[0]]
    file = getattr(top, "__file__", None)
    if top.__name__ == "tilewright" or file is None:
        return ""
    files = sorted(Path(file).parent.rglob("*.py")) if hasattr(top, "__path__") else [Path(file)]
    return digest(*(path.read_bytes() for path in files))
