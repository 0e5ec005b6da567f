# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs cost a machine, as a page and plain values (`mesh_report`), and a trace of sampled cores (`trace`)."""

from tilewright.sim.coremesh.profile.mesh_report import MeshReport, mesh_report
from tilewright.sim.coremesh.profile.program_profile import ProgramProfile, profile
from tilewright.sim.coremesh.profile.trace import sampled_cores, trace

__all__ = ["MeshReport", "ProgramProfile", "mesh_report", "profile", "sampled_cores", "trace"]
