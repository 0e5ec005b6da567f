# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs cost a machine, as a page and as plain values: `mesh_report`."""

from tilewright.sim.coremesh.profile.mesh_report import MeshReport, mesh_report
from tilewright.sim.coremesh.profile.program_profile import ProgramProfile, profile

__all__ = ["MeshReport", "ProgramProfile", "mesh_report", "profile"]
