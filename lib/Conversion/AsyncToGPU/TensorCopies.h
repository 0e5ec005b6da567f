//===- TensorCopies.h - copies by the tensor memory accelerator -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_TENSORCOPIES_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_TENSORCOPIES_H

#include "lib/Conversion/AsyncToGPU/SharedPlaces.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/IRMapping.h"

#include <string>

namespace tilewright {

/// A copy that the tensor memory accelerator (TMA) does: a box of a kernel's
/// argument into a slot, panel by panel; what lies outside of the argument
/// reads as zero.
struct TensorCopy {
  tile::CopyOp copy;
  /// The argument's memref, and the box's origin and sizes in it.
  mlir::Value source;
  llvm::SmallVector<mlir::OpFoldResult> origin;
  llvm::SmallVector<int64_t> box;
  SharedPlace target;

  int64_t getBytes() const { return target.getSlotBytes(); }
};

/// How TMA would do `copy`; else why it cannot, in `reason`. The builder stands
/// where the copy's operands are known.
std::optional<TensorCopy>
analyzeTensorCopy(mlir::OpBuilder &b, tile::CopyOp copy, std::string &reason);

/// The descriptor of the copy's source as a parameter of the kernel: one that
/// is there already, or a new one at the end (with its entry in `tile.params`).
mlir::FailureOr<mlir::Value> tensorMapOf(mlir::gpu::GPUFuncOp kernel,
                                         const TensorCopy &copy);

/// Starts the copy: to the slot at `slot`, with coordinates from `valueOf`, its
/// completion told to the mbarrier at `barrier`.
void emitTensorCopy(
    mlir::OpBuilder &b, const TensorCopy &copy, mlir::Value map,
    mlir::Value slot, mlir::Value barrier,
    llvm::function_ref<mlir::Value(mlir::OpFoldResult)> valueOf);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_TENSORCOPIES_H
