# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the CUDA driver's error codes mean to a user of a compiled model, and what to do about each.

Source: CUDA driver API, data types, ``CUresult``. Codes that are not here are bugs of the caller: this package.
"""

from __future__ import annotations

from tilewright.core.errors import InternalError, TilewrightError, UnsupportedError, UserError

_LOST = "; the process has lost its CUDA context: restart it"
_FAULT = (
    f"{_LOST}. emulate=True runs the same PTX without a GPU and names the line; "
    "`compute-sanitizer python ...` checks on the GPU"
)

#: code -> (kind of error, what it means and what to do).
ADVICE: dict[int, tuple[type[TilewrightError], str]] = {
    2: (
        UserError,
        "the GPU's memory is full: free tensors of other libraries (torch.cuda.empty_cache()) or take smaller batches",
    ),
    3: (UserError, "CUDA does not survive a fork: start worker processes with the method 'spawn'"),
    4: (UserError, "the driver has shut down: call models before the interpreter exits"),
    34: (UserError, "this libcuda is the stub of a CUDA toolkit: take its `stubs` folder out of LD_LIBRARY_PATH"),
    36: (UnsupportedError, "the driver is too old for this call: install driver 535 (CUDA 12.2) or newer"),
    46: (UserError, "the GPU is in exclusive use by another process: see `nvidia-smi -q -d COMPUTE`"),
    100: (UserError, "no GPU is visible: see `nvidia-smi` and the variable CUDA_VISIBLE_DEVICES, or use emulate=True"),
    101: (UserError, "there is no GPU of this number: see `nvidia-smi -L`"),
    200: (InternalError, "the code is neither PTX nor a cubin of this platform: compile the model again"),
    201: (UserError, "the thread's CUDA context is gone: another library destroyed it: load the model again"),
    209: (UserError, "the code is for another architecture: compile for this GPU with target='cuda'"),
    214: (UserError, f"the GPU's memory has an error that ECC cannot correct: see `nvidia-smi -q -d ECC`{_LOST}"),
    218: (InternalError, "the driver's assembler rejects the PTX (its log follows)"),
    221: (UserError, "the driver's PTX assembler (libnvidia-ptxjitcompiler) is missing: reinstall the driver"),
    222: (
        UnsupportedError,
        "the PTX is newer than the driver: install a newer one (570, of CUDA 12.8, takes PTX 8.6)",
    ),
    223: (
        UserError,
        "CUDA_DISABLE_PTX_JIT is set, so the driver loads no PTX: unset it, or compile with cubin=True for this GPU",
    ),
    500: (InternalError, "the code has no symbol of this name"),
    700: (InternalError, f"a kernel accessed memory outside its tensors{_FAULT}"),
    701: (
        InternalError,
        "a CTA needs more registers or shared memory than the GPU has: compile for this GPU with target='cuda'",
    ),
    702: (UserError, f"a kernel ran longer than the display driver's watchdog allows{_LOST}"),
    709: (UserError, "the CUDA context was destroyed (cudaDeviceReset?) while a model used it: load the model again"),
    714: (InternalError, f"a kernel's stack is broken{_FAULT}"),
    715: (InternalError, f"a kernel ran an instruction that this GPU has not{_FAULT}"),
    716: (
        InternalError,
        f"a kernel accessed a misaligned address; tensors given to a model must be aligned to 16 bytes{_FAULT}",
    ),
    717: (InternalError, f"a kernel used an address of the wrong memory space{_FAULT}"),
    718: (InternalError, f"a kernel jumped out of its code{_FAULT}"),
    719: (InternalError, f"a kernel failed (a trap, or an access to shared memory out of bounds){_FAULT}"),
    720: (
        UserError,
        "the GPU cannot run all CTAs of this grid at the same time, and they wait for each other: let the model have "
        "the whole GPU (no MPS limits), or compile for this GPU with target='cuda'",
    ),
    801: (UnsupportedError, "this GPU, or its virtualization, does not support the call"),
    802: (UserError, "the system's fabric manager is not ready: see `systemctl status nvidia-fabricmanager`"),
    803: (UserError, "the driver's library and kernel module differ in version: reboot, or reload the nvidia module"),
    804: (UserError, "the CUDA compatibility package does not support this GPU: use the driver's own libcuda"),
    805: (UserError, "the MPS server cannot be reached: see CUDA_MPS_PIPE_DIRECTORY"),
    900: (UserError, "this call cannot be part of a CUDA graph: do it before or after the capture"),
    901: (UserError, "an earlier error broke the capture of the CUDA graph: see that one"),
    906: (
        UserError,
        "the legacy default stream was used during the capture of a CUDA graph: pass a stream of your own",
    ),
    908: (UserError, "the capture of a CUDA graph ends in another thread than it began in"),
    912: (InternalError, "the GPU cannot place clusters of this size with the kernel's shared memory"),
    999: (InternalError, f"the driver reports no cause; see `dmesg | grep NVRM`{_LOST}"),
}


#: Every later call of the process returns these too.
_STICKY = frozenset(code for code, (_, advice) in ADVICE.items() if _LOST in advice) | {201, 709}


def is_lost(code: int) -> bool:
    """Whether a process that got this code has no usable CUDA context any more."""
    return code in _STICKY


def make(call: str, code: int, name: str, text: str, detail: str = "") -> TilewrightError:
    """Return the error of a driver call.

    Args:
        call: the function, e.g. ``cuMemAlloc``.
        code: what it returned.
        name: the driver's name of the code, ``CUDA_ERROR_...``.
        text: the driver's description of it.
        detail: what was asked for, or a log.
    """
    kind, advice = ADVICE.get(code, (InternalError, text))
    tail = f"\n{detail}" if detail else ""
    return kind(f"{call} failed with {name} ({code}): {advice}{tail}")
