//===- ArenaGuards.h - poisoned memory around live places -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_ARENAGUARDS_H
#define TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_ARENAGUARDS_H

#include "lib/Transforms/HostBuffers/ArenaPacking.h"
#include "lib/Transforms/HostBuffers/Lifetimes.h"

namespace tilewright {

/// Lets `main` tell the run-time of AddressSanitizer which bytes of its arena
/// may be accessed: those of a buffer while it is live. What is live in a loop
/// is so as long as the loop: its body stays as it is.
void guardArena(mlir::func::FuncOp main, mlir::Value arena,
                mlir::ArrayRef<ArenaBuffer> buffers,
                const Lifetimes &lifetimes);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_ARENAGUARDS_H
