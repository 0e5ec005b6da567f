# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tiles for a GPU depend on."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.devices import Device
from tilewright.devices.nvidia import capability, has_hopper


@dataclass(frozen=True)
class Gpu:
    """A GPU as planning sees it.

    Attributes:
        device: its description.
        units: multiprocessors.
        shared: bytes of shared memory that a CTA may have.
        unit_shared: bytes of shared memory of a multiprocessor, of which each CTA takes 1 KiB besides its own.
        threads: threads that a multiprocessor holds.
        registers: 32-bit registers of a multiprocessor.
        ctas: CTAs that a multiprocessor holds.
        hopper: whether TMA, wgmma and clusters may be used.
        capability: ten times the compute capability.
    """

    device: Device
    units: int
    shared: int
    unit_shared: int
    threads: int
    registers: int
    ctas: int
    hopper: bool
    capability: int

    @staticmethod
    def of(device: Device) -> Gpu:
        """Return what planning needs of a description.

        Raises:
            UserError: the description has no level ``shared`` or no architecture.
        """
        shared = device.level("shared").bytes
        return Gpu(
            device=device,
            units=device.units.count,
            shared=shared,
            unit_shared=device.limit("sm_shared", shared + 1024),
            threads=device.limit("sm_threads", 2048),
            registers=device.limit("sm_registers", 65536),
            ctas=device.limit("sm_blocks", 32),
            hopper=has_hopper(device),
            capability=capability(device),
        )

    def occupancy(self, threads: int, shared: int, registers: int) -> int:
        """Return how many CTAs a multiprocessor holds at once.

        Args:
            threads: of a CTA.
            shared: bytes of shared memory of a CTA.
            registers: 32-bit registers of a thread.
        """
        per_warp = -(-registers * 32 // 256) * 256  # a warp gets them in units of 256
        by_registers = self.registers // (per_warp * max(threads // 32, 1))
        return max(min(self.ctas, self.threads // threads, self.unit_shared // (shared + 1024), by_registers), 0)
