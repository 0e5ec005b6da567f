# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a model with tensors that lie on the GPU, without copies or waiting; and calls as CUDA graphs.

Work goes to the stream on which the inputs' library works (torch's current stream, else the legacy default stream), so
a result may be given to that library at once. Results are torch tensors where an input is one, else `GpuArray`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import SizesError, UnsupportedError, UserError
from tilewright.runtime.binding import Signature, Slot
from tilewright.runtime.gpu import gpu_interop
from tilewright.runtime.gpu.cuda import CudaDevice
from tilewright.runtime.gpu.cuda_resources import Event, Graph
from tilewright.runtime.gpu.gpu_interop import GpuArray, GpuTensor
from tilewright.runtime.gpu.gpu_memory import Memory, View
from tilewright.runtime.gpu.host_program import HostProgram
from tilewright.runtime.interop import is_torch
from tilewright.runtime.result import Outputs

#: What compiled code relies on for inputs and outputs.
_ALIGNMENT = 16


class GpuCalls:
    """Calls of one loaded model.

    Args:
        program: the loaded model.
        signature: its inputs and outputs.
        device: that runs it.
    """

    def __init__(self, program: HostProgram, signature: Signature, device: CudaDevice) -> None:
        self._program, self._signature, self._device = program, signature, device
        #: What running work reads, with the event after it: not all libraries wait before they reuse memory.
        self._used: deque[tuple[Event, Sequence[GpuTensor]]] = deque()

    def call(self, values: Sequence[Any], out: Any) -> Outputs:
        """Start the model on tensors of the GPU.

        Args:
            values: inputs, in order.
            out: tensors that receive the results (a sequence, a mapping by name, or one), or None.

        Raises:
            UserError: wrong types, sizes, places, or an overlap.
        """
        with self._device.on_stream(self._stream(values)):
            inputs = self._inputs(values)
            results = self._results(values, out, inputs)
            try:
                made = self._program.run([t.view for t in inputs], [r.view if r else None for r in results])
            except SizesError as error:
                raise self._told(error, inputs) from None
            given = [] if out is None else [r for r in results if r]
            self._keep([t for t in [*inputs, *given] if t.keep is not None])
            return self._outputs(values, out, results, made)

    def capture(self, values: Sequence[Any], out: Any) -> CapturedCall:
        """Run a call, and record it with these very tensors.

        Raises:
            UserError: as `call`.
            UnsupportedError: what the model does depends on its data.
        """
        stream = self._stream(values)
        with self._device.on_stream(stream):
            inputs = self._inputs(values)
            results = self._results(values, out, inputs)
            places = [r.view if r else None for r in results]
            try:
                graph, made, held = self._program.record([t.view for t in inputs], places)
            except SizesError as error:
                raise self._told(error, inputs) from None
            outputs = self._outputs(values, out, results, made)
            kept = (self._program, held, inputs, results)
            return CapturedCall(self._device, graph, stream, tuple(values), outputs, kept)

    def _told(self, error: SizesError, inputs: Sequence[GpuTensor]) -> UserError:
        return UserError(self._signature.with_shapes(error.message, [t.view.sizes for t in inputs]))

    def _stream(self, values: Sequence[Any]) -> int:
        tensor = _torch_of(values)
        return self._device.stream if tensor is None else gpu_interop.current_stream(tensor)

    def _inputs(self, values: Sequence[Any]) -> list[GpuTensor]:
        elsewhere = [
            s.name for s, v in zip(self._signature.inputs, values, strict=True) if not gpu_interop.is_on_gpu(v)
        ]
        if elsewhere:
            raise UserError(
                f"inputs {', '.join(elsewhere)} lie on the host, others on the GPU: move all to one of them "
                "(work on the GPU needs no copies and does not wait)"
            )
        pairs = zip(self._signature.inputs, values, strict=True)
        return [self._checked("input", slot, gpu_interop.read(value, slot.name, self._device)) for slot, value in pairs]

    def _results(self, values: Sequence[Any], out: Any, inputs: Sequence[GpuTensor]) -> list[GpuTensor | None]:
        """Places for results of known sizes."""
        slots = self._signature.outputs
        if out is None:
            return [self._new(slot, values) if slot.is_static else None for slot in slots]
        given = _in_order(out, self._signature.output_names)
        places: list[GpuTensor | None] = []
        for slot, value in zip(slots, given, strict=True):
            if not slot.is_static:
                raise UnsupportedError(f"output {slot.name} has a size that the run decides: it cannot be in out=")
            place = self._checked("output", slot, gpu_interop.read(value, slot.name, self._device))
            if place.read_only:
                raise UserError(f"the tensor for output {slot.name} is read-only")
            if any(_overlap(place.view, other.view) for other in [*inputs, *places] if other is not None):
                raise UserError(f"the tensor for output {slot.name} overlaps an input or another output")
            places.append(place)
        return places

    def _new(self, slot: Slot, values: Sequence[Any]) -> GpuTensor:
        dtype, tensor = from_numpy(slot.dtype), _torch_of(values)
        if tensor is not None:
            made = gpu_interop.torch_empty(tensor)(dtype, slot.shape)
            return GpuTensor(gpu_interop.read(made, slot.name, self._device).view, made)
        nbytes = View.contiguous(Memory(None, 0), dtype, slot.shape).nbytes
        view = View.contiguous(Memory.allocate(self._device, nbytes), dtype, slot.shape)
        return GpuTensor(view, GpuArray(self._device, view))

    def _outputs(
        self, values: Sequence[Any], out: Any, results: Sequence[GpuTensor | None], made: Mapping[int, View]
    ) -> Outputs:
        names = self._signature.output_names
        if out is not None:
            return Outputs(_in_order(out, names), names)
        found = []
        for number, result in enumerate(results):
            if result is not None:
                found.append(result.keep)
                continue
            array = GpuArray(self._device, made[number])
            tensor = _torch_of(values)
            found.append(array if tensor is None else gpu_interop.torch_from(array))
        return Outputs(found, names)

    def _checked(self, what: str, slot: Slot, tensor: GpuTensor) -> GpuTensor:
        view, dtype = tensor.view, from_numpy(slot.dtype)
        if slot.is_small:
            raise UnsupportedError(f"{what} {slot.name} of {dtype} (less than a byte) can be passed on the host only")
        if view.dtype != dtype:
            raise UserError(f"{what} {slot.name} must be of {dtype}, got {view.dtype}")
        fits = len(view.sizes) == len(slot.shape)
        if not fits or any(want not in (-1, got) for want, got in zip(slot.shape, view.sizes, strict=True)):
            raise UserError(f"{what} {slot.name} must have shape [{slot.sizes}], got {list(view.sizes)}")
        if view.address % _ALIGNMENT:
            raise UserError(
                f"{what} {slot.name} starts at {view.address:#x}, no multiple of {_ALIGNMENT} bytes (a slice of "
                "another tensor?): pass a copy"
            )
        return tensor

    def _keep(self, tensors: Sequence[GpuTensor]) -> None:
        """Hold tensors until the work that reads them is done."""
        while self._used and self._device.is_done(self._used[0][0]):
            self._used.popleft()
        if tensors:
            self._used.append((self._device.record(), tensors))


class CapturedCall:
    """A recorded call: the same tensors each time, with their contents of that time. Calling it starts it.

    Args:
        device: that replays it.
        graph: the recording.
        stream: that it is started on.
        inputs: see below.
        outputs: see below.
        kept: whatever else owns memory that the graph uses.

    Attributes:
        inputs: the tensors that it reads; copy new values into them.
        outputs: the tensors that it writes.
    """

    def __init__(
        self,
        device: CudaDevice,
        graph: Graph,
        stream: int,
        inputs: tuple[Any, ...],
        outputs: Outputs,
        kept: Sequence[Any],
    ) -> None:
        self._device, self._graph, self._stream = device, graph, stream
        self._kept = kept
        self.inputs = inputs
        self.outputs = outputs

    def __call__(self) -> Outputs:
        """Start it, on the stream of the recorded call, and return the outputs."""
        with self._device.on_stream(self._stream):
            self._device.replay(self._graph)
        return self.outputs


def _torch_of(values: Sequence[Any]) -> Any:
    return next((value for value in values if is_torch(value)), None)


def _in_order(out: Any, names: Sequence[str]) -> list[Any]:
    if isinstance(out, Mapping):
        if set(out) != set(names):
            raise UserError(f"out= must name all outputs: {', '.join(names)}")
        return [out[name] for name in names]
    found = list(out) if isinstance(out, list | tuple) else [out]
    if len(found) != len(names):
        raise UserError(f"out= needs {len(names)} tensors ({', '.join(names)}), got {len(found)}")
    return found


def _overlap(one: View, other: View) -> bool:
    return one.address < other.address + other.nbytes and other.address < one.address + one.nbytes
