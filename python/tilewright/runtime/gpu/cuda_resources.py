# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the CUDA driver made for a device: given back with the last reference, or before that when the device closes.

A context may go with the device that held it, and its handles with the context: so a device knows all of them (weakly),
and each of them keeps the device.
"""

from __future__ import annotations

import contextlib
import weakref
from ctypes import byref, c_void_p

from tilewright.core.errors import TilewrightError
from tilewright.runtime.gpu import cuda_driver as cu


class Owner:
    """A device whose context resources live in.

    Args:
        driver: the loaded library.
    """

    def __init__(self, driver: cu.Driver) -> None:
        self.driver = driver
        self._owned: weakref.WeakSet[Resource] = weakref.WeakSet()

    def enter(self) -> None:
        """Make the context current in the calling thread."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the context was let go."""
        raise NotImplementedError

    def adopt(self, resource: Resource) -> None:
        """Release a resource with the others."""
        self._owned.add(resource)

    def release_all(self) -> None:
        """Give back what is still there."""
        for resource in list(self._owned):
            resource.release()


class Resource:
    """A handle of the driver; empty when it was given back.

    Args:
        owner: of the context that it lives in.
        destroy: the driver's function that takes it.
    """

    def __init__(self, owner: Owner, destroy: str) -> None:
        self._owner, self._destroy = owner, destroy
        self.handle = c_void_p()
        owner.adopt(self)

    def release(self) -> None:
        """Give it back, once."""
        handle, self.handle = self.handle, c_void_p()
        if not handle or self._owner.closed:
            return
        with contextlib.suppress(TilewrightError):  # the driver has shut down, or lost the context and all in it
            self._owner.enter()
            self._owner.driver.status(self._destroy, handle)

    def __del__(self):
        self.release()


class Event(Resource):
    """A moment on a stream; see `CudaDevice.record`."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(owner, "cuEventDestroy_v2")
        owner.driver.cuEventCreate(byref(self.handle), 0)


class Graph(Resource):
    """Recorded calls, ready to be repeated; `keep` holds what their code needs."""

    def __init__(self, owner: Owner, recorded: c_void_p, keep: list[object]) -> None:
        super().__init__(owner, "cuGraphExecDestroy")
        self._keep = keep
        try:
            owner.driver.cuGraphInstantiateWithFlags(byref(self.handle), recorded, 0)
        finally:
            owner.driver.cuGraphDestroy(recorded)
