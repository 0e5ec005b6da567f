//===- TaskNests.h - the nests of loops of a task ---------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKNESTS
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKNESTS

#include "lib/Analysis/Device.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {

/// Loops, each the only one in the one before.
using Nest = llvm::SmallVector<mlir::scf::ForOp>;

/// The nest that starts with `loop`; none where a loop holds two.
std::optional<Nest> nestOf(mlir::scf::ForOp loop);

/// Whether both walk the same rows in the same steps; the steps along a row may
/// differ, and with them where the part that fills no step begins.
bool walkAlike(Nest a, Nest b);

/// Whether a nest multiplies matrices: its work is no matter of its elements.
bool multiplies(Nest nest);

/// Additions that a nest does for each element of its rows; reading it is one.
double workOf(Nest nest, const Device &device);

/// Whether a nest computes so much more than another one (`hiding_work` times)
/// that it has time to do something for it.
bool computesMuchMore(Nest nest, Nest other, const Device &device);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKNESTS
