# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tw.sparsify`: a model with pruned weights, and how far its results are from those of before.

Scores are magnitudes or, with calibration inputs, those of Wanda (Sun, Liu, Bair, Kolter: A Simple and Effective
Pruning Approach for Large Language Models, ICLR 2024, section 3): |w| times the norm of the input that it multiplies.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.compiler.sparsify_report import LayerChange, OutputChange, SparsifyReport
from tilewright.core.errors import UnsupportedError, UserError

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.pruning.products import Product
    from tilewright.frontend.pruning.requests import Pruning

Sample = Mapping[str, np.ndarray]


class Sparsified(NamedTuple):
    """A pruned model, and what was done: `model, report = tw.sparsify(...)`."""

    model: onnx.ModelProto
    report: SparsifyReport


def sparsify(
    model: Any,
    pattern: str,
    calibration: Any = None,
    *,
    layers: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    measure: bool = True,
    target: str = "cpu",
    seed: int = 0,
) -> Sparsified:
    """Prune the weights of a model.

    Weights of MatMul, Gemm, Conv and ConvTranspose are pruned, of any float type of 16 bits or more; biases, embeddings
    and what normalizes never are. Inputs are what a product sums over (K of a matrix product, channels of a
    convolution), outputs its other side. Patterns::

        N:M               N of M neighbouring inputs stay, for each output by itself ("2:4", "8:32")
        N:M/V             V neighbouring outputs keep the same N of M inputs ("3:32/32")
        N:M/BxV           N of M units of B neighbouring inputs and V neighbouring outputs stay ("2:4/4x4")
        block:BxV@S       the part S of the blocks of B inputs and V outputs goes ("block:32x32@0.9")
        unstructured@S    the part S of the weights goes, wherever they are ("unstructured@0.95")
        channels@S        the part S of the inputs goes, for all outputs ("channels@0.6")
        heads:H@S         the part S of H groups of neighbouring inputs goes ("heads:12@0.7")

    Args:
        model: path of an ONNX file, its bytes, an onnx.ModelProto, or a torch.nn.Module (with `example_inputs`). It is
            not changed.
        pattern: what stays or goes; S is a part ("0.9") or a percentage ("90%").
        calibration: inputs that scores are weighted by and the change of the outputs is measured on: an array, a tuple,
            a dict by name, or a list of these. None: scores are magnitudes, the change is that of one random input.
        layers: names of the nodes or weights to prune, with `*`, `?`, `[...]`. None: all but the first convolution of a
            picture, depthwise convolutions and the layers that make the results; for `channels` and `heads` those
            whose inputs nothing else reads, for `heads` behind attention.
        skip: names of those that stay.
        example_inputs: for a torch module.
        shapes: sizes of symbolic dimensions, as for :func:`tilewright.compile`.
        measure: compile and run the model before and after, and report the change of its outputs.
        target: where it is run.
        seed: of the random input.

    Returns:
        The pruned model, an onnx.ModelProto with its weights inside, and a :class:`SparsifyReport`.

    Raises:
        UserError: no such pattern, layer or model; weights that are not finite; calibration of other inputs.
        UnsupportedError: the model uses operators that have no lowering, or has 2 GB and more (with `measure` or
            `calibration`, which compile it).
    """
    from tilewright.frontend.pruning.choice import choose
    from tilewright.frontend.pruning.products import Products, Weights
    from tilewright.frontend.pruning.requests import parse

    request = parse(pattern)
    proto, folder = _loaded(model, example_inputs)
    weights = Weights(proto, folder)
    choice = choose(
        proto.graph, Products(proto.graph, weights), request, _names(layers, "layers"), _names(skip, "skip")
    )
    runs = _Runs(proto, target, shapes, calibration, seed) if measure or calibration is not None else None
    before: list[Sample] = []
    norms: dict[str, np.ndarray] = {}
    if runs:
        uses = [use for group in choice.pruned.values() for use in group]
        before, norms = runs.observe(uses if calibration is not None else [])
    report = SparsifyReport(request.text, "magnitude" if not norms else "magnitude times norm of the input")
    for weight, uses in choice.pruned.items():
        old = weights.read(weight)
        new, change = _pruned(request, weight, uses, old, norms.get(weight))
        weights.write(weight, new)
        report.layers.append(change)
    report.left = choice.left
    if runs and measure:
        report.outputs = _compare(before, runs.outputs(), proto)
        report.data, report.samples = runs.data, len(before)
    return Sparsified(proto, report)


def _names(given: Any, what: str) -> Sequence[str] | None:
    if given is None or (isinstance(given, Sequence) and not isinstance(given, str)):
        return given
    raise UserError(f"{what}= is a list of names, not {given!r}")


def _loaded(model: Any, example_inputs: Any) -> tuple[onnx.ModelProto, str]:
    """A model of one's own with all data inside, and where it came from."""
    from tilewright.compiler.source import open_source

    source = open_source(model, example_inputs=example_inputs)
    if source.kind != "onnx":
        raise UserError("sparsify is for ONNX models and torch modules: an MLIR module has no layers to look up")
    import onnx

    from tilewright.frontend.onnx.load import load_model

    value = os.fspath(source.value) if isinstance(source.value, Path) else source.value
    loaded, folder = load_model(value)
    proto = onnx.ModelProto()
    proto.CopyFrom(loaded)
    try:
        onnx.load_external_data_for_model(proto, folder)
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise UserError(f"cannot read the model's external data: {error}") from error
    proto.ir_version = max(proto.ir_version, 4)  # initializers need not be inputs since
    return proto, folder


def _pruned(
    request: Pruning, weight: str, uses: Sequence[Product], old: np.ndarray, norms: np.ndarray | None
) -> tuple[np.ndarray, LayerChange]:
    """A weight with zeros where it is pruned."""
    wide = np.abs(old.astype(np.float64 if old.dtype == np.float64 else np.float32))
    strange = np.argwhere(~np.isfinite(wide))
    if len(strange):
        raise UserError(
            f"weight {weight} holds {old[tuple(strange[0])]} at {strange[0].tolist()}, which has no rank among the "
            f"others ({len(strange)} elements are not finite): correct the model, or name {weight} in skip="
        )
    scores = uses[0].view.apply(wide)
    if norms is not None:
        scores = scores * np.sqrt(norms).astype(scores.dtype)[:, None, :, None]
    try:
        kept = np.stack([request.keep(group, by_output=norms is not None) for group in scores])
    except UserError as error:
        raise UserError(str(error), location=uses[0].name) from None
    new = np.where(uses[0].view.undo(kept, old.shape), old, np.zeros((), old.dtype))
    total = float(scores.sum(dtype=np.float64))
    change = LayerChange(
        name=uses[0].name,
        operator=uses[0].operator,
        weight=weight,
        shape=old.shape,
        density_before=_density(old),
        density=_density(new),
        score=float(scores.sum(dtype=np.float64, where=kept)) / total if total else 1.0,
    )
    return new, change


def _density(array: np.ndarray) -> float:
    return np.count_nonzero(array) / array.size if array.size else 0.0


class _Runs:
    """The model before and after, run on the same inputs."""

    def __init__(self, proto: onnx.ModelProto, target: str, shapes: Any, calibration: Any, seed: int) -> None:
        if proto.ByteSize() >= 1 << 31:
            raise UnsupportedError(
                "a model of 2 GB and more cannot be compiled as it is: measure=False, calibration=None"
            )
        self.data = "random" if calibration is None else "calibration"
        self._proto, self._target, self._shapes = proto, target, shapes
        self._calibration, self._seed = calibration, seed
        self._samples: list[dict[str, np.ndarray]] = []

    def observe(self, uses: Sequence[Product]) -> tuple[list[Sample], dict[str, np.ndarray]]:
        """Outputs of the model as it is; sums of squares [groups, inputs] for each weight of `uses`, by its name."""
        import onnx

        watched = onnx.ModelProto()
        watched.CopyFrom(self._proto)
        given = {value.name for value in (*watched.graph.input, *watched.graph.output)}
        for name in dict.fromkeys(use.x for use in uses if use.x not in given):
            watched.graph.output.append(onnx.ValueInfoProto(name=name))
        model = self._compiled(watched)
        outputs, norms = [], {}
        for sample in self._chosen(model):
            results = {**sample, **dict(model(**sample).items())}
            for use in uses:
                squares = use.squares(np.asarray(results[use.x]))
                norms[use.weight] = norms.get(use.weight, 0.0) + squares
            outputs.append({o.name: np.array(results[o.name]) for o in self._proto.graph.output})
        return outputs, norms

    def outputs(self) -> list[Sample]:
        """Outputs of the model as it is now."""
        model = self._compiled(self._proto)
        return [{name: np.array(value) for name, value in model(**sample).items()} for sample in self._samples]

    def _compiled(self, proto: onnx.ModelProto) -> Any:
        from tilewright.compiler.api import compile

        return compile(proto, self._target, shapes=self._shapes)

    def _chosen(self, model: Any) -> list[dict[str, np.ndarray]]:
        from tilewright.compiler.precision import samples
        from tilewright.report.measure import random_inputs

        if self._calibration is None:
            self._samples = [random_inputs(model.inputs, self._seed)]
        else:
            self._samples = samples(self._calibration, [spec.name for spec in model.inputs])
        return self._samples


def _compare(before: Sequence[Sample], after: Sequence[Sample], proto: onnx.ModelProto) -> list[OutputChange]:
    """How far the outputs are from those of before, over all samples."""
    changes = []
    for name in [output.name for output in proto.graph.output]:
        old = np.concatenate([np.asarray(sample[name]).reshape(-1) for sample in before])
        new = np.concatenate([np.asarray(sample[name]).reshape(-1) for sample in after])
        changes.append(_change(name, old, new))
    return changes


def _change(name: str, old: np.ndarray, new: np.ndarray) -> OutputChange:
    if old.shape != new.shape:  # sizes that depend on data
        return OutputChange(name, float("inf"), float("inf"))
    if not old.size:
        return OutputChange(name, 0.0, 0.0)
    if old.dtype.kind in "iub":
        differ = old != new
        return OutputChange(name, float(differ.any()), float(differ.mean()))
    wide = np.complex128 if old.dtype.kind == "c" else np.float64
    old, new = old.astype(wide), new.astype(wide)
    with np.errstate(invalid="ignore"):  # infinities of masks are the same
        distance = np.where(old == new, 0.0, np.abs(new - old))
    size = np.where(np.isfinite(old), np.abs(old), 0.0)
    return OutputChange(name, _part(distance.max(), size.max()), _part(distance.mean(), size.mean()))


def _part(distance: float, size: float) -> float:
    if size:
        return float(distance / size)
    return float("inf") if distance else 0.0
