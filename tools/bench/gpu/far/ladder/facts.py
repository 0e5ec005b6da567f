# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The first rungs: what driver and GPU say of themselves, of each kernel, and of how many of it fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.gpu.far.ladder.device import Opener, Pack
from bench.gpu.far.ladder.report import Report
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.gpu import cuda_launch, gpu_code
from tilewright.runtime.gpu.gpu_device import Device, Extent

_NO_KERNELS = "the emulator runs PTX: it has neither registers nor machine code"


def driver(pack: Pack, open_: Opener, report: Report) -> None:
    """The driver is new enough, the GPU is of the pack's architecture, and memory keeps what is written to it."""
    with report.check("device") as check:
        device = open_(0)
        limits = device.limits
        version = getattr(device, "driver_version", None)
        about = f"{getattr(device, 'name', 'emulator')}, {limits.arch}, {limits.multiprocessors} multiprocessors"
        about += f", {limits.shared_bytes} bytes of shared memory a CTA, clusters of {limits.cluster}"
        check.tell(about + (f", CUDA {'.'.join(map(str, version))}" if version else ""))
        if limits.arch != pack.entries["arch"]:
            check.wrong(f"{about}: the pack is for {pack.entries['arch']}; pack it with --arch {limits.arch}")
    with report.check("memory") as check:
        data = bytes(range(256)) * 16
        address = device.alloc(len(data))
        device.upload(address, memoryview(data))
        back = bytearray(len(data))
        device.download(address, memoryview(back))
        if bytes(back) != data:
            check.wrong("what was uploaded is not what is downloaded")


def _kernels(pack: Pack, device: Device) -> Iterator[tuple[str, Any, dict[str, Any], dict[str, Any]]]:
    """Name, handle, how it is launched, and what ptxas says, of each kernel of the pack."""
    for entry in pack.programs():
        if entry["failure"]:
            continue
        program, modules = gpu_code.read(Artifact(pack.root / entry["folder"]))
        exact = device.limits.cubins and device.limits.arch == pack.entries["arch"]
        for name, one in program["kernels"].items():
            image = modules[one["cubin"] if exact and one.get("cubin") else one["module"]]
            handle = device.function(device.load(image), one["entry"])
            yield f"{entry['name']}.{name}", handle, one, entry["kernels"][one["module"]]


def registers(pack: Pack, open_: Opener, report: Report) -> None:
    """Each kernel has the registers, spills and shared memory that ptxas said, and room for its CTA."""
    device = open_(0)
    if not device.limits.cubins:
        with report.check("kernels") as check:
            check.skip(_NO_KERNELS)
        return
    for name, handle, launch, known in _kernels(pack, device):
        with report.check(name) as check:
            info = handle.info
            said = f"{info.registers} registers, {info.local_bytes} bytes local, {info.shared_bytes} shared"
            check.tell(f"{said}, CTAs of {info.threads} threads at most")
            if info.threads < launch["threads"]:
                check.wrong(f"{said}: no room for its CTAs of {launch['threads']} threads, {info.threads} at most")
            elif known and (info.registers, info.shared_bytes) != (known["registers"], known["shared_bytes"]):
                wanted = f"{known['registers']} registers and {known['shared_bytes']} bytes shared"
                check.wrong(f"{said}; ptxas said {wanted}: the driver assembled the PTX anew, or took another module")
            elif known and info.local_bytes > known["stack_bytes"]:
                check.wrong(f"{said}: it spills, and {known['stack_bytes']} bytes of stack were expected")


def clusters_of(device: Any, handle: Any, block: Extent, cluster: Extent, shared_bytes: int) -> int:
    """How many clusters the GPU holds at a time."""
    device.enter()
    return cuda_launch.resident_clusters(device.driver, handle, block, cluster, shared_bytes)


def occupancy(pack: Pack, open_: Opener, report: Report) -> None:
    """Each kernel's CTA fits on a multiprocessor, and at least one cluster of each clustered kernel on the GPU."""
    device = open_(0)
    if not device.limits.cubins:
        with report.check("kernels") as check:
            check.skip(_NO_KERNELS)
        return
    for name, handle, launch, _ in _kernels(pack, device):
        with report.check(name) as check:
            held = device.resident(handle, launch["threads"], launch["shared_bytes"])
            check.tell(f"{held} CTAs a multiprocessor")
            if held < 1:
                check.wrong(f"no CTA of {launch['threads']} threads and {launch['shared_bytes']} bytes of shared fits")
            if launch["cluster"]:
                extents = (launch["threads"], 1, 1), tuple(launch["cluster"])
                clusters = clusters_of(device, handle, *extents, launch["shared_bytes"])
                check.tell(f"{held} CTAs a multiprocessor, {clusters} clusters of {launch['cluster']} on the GPU")
                if clusters < 1:
                    check.wrong(f"no cluster of {launch['cluster']} fits: the GPU's groups of multiprocessors are cut")
