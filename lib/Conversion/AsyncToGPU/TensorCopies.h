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
  /// Per dimension, every so manieth element of the box is copied.
  llvm::SmallVector<int64_t> steps;
  SharedPlace target;
  /// Blocks of a cluster that load a part each, for all of them; and the
  /// dimension of the box that is cut for it, unless panels are divided.
  int64_t parts = 1;
  std::optional<int64_t> cutDim = std::nullopt;

  int64_t getPanels() const { return target.getRowBytes() / target.getSpan(); }
  int64_t getBytes() const { return target.getSlotBytes(); }
};

/// How TMA would do `copy`; else why it cannot, in `reason`. The builder stands
/// where the copy's operands are known.
std::optional<TensorCopy>
analyzeTensorCopy(mlir::OpBuilder &b, tile::CopyOp copy, std::string &reason);

/// Lets each of `parts` blocks of a cluster load a part of the copy, for all of
/// them; whether it can be cut so.
bool cutForCluster(TensorCopy &copy, int64_t parts);

/// Why TMA cannot move boxes of `memref`, of elements of `bytes` bytes: it
/// takes arguments of a kernel whose rows start at multiples of 16 bytes. Empty
/// where it can.
llvm::StringRef checkTensor(mlir::Value memref, int64_t bytes);

/// Whether a part of `size` at `offset` ends where dimension `dim` of the
/// argument ends, so that TMA's bounds are the part's; or has all of the `full`
/// points of a box.
bool endsWithTensor(mlir::Value memref, int64_t dim, mlir::OpFoldResult offset,
                    mlir::OpFoldResult size, int64_t full);

/// The number of the kernel's parameter that is the descriptor of `memref`, an
/// argument, in boxes of the given sizes: one that is there already, or a new
/// one at the end (with its entry in `tile.params`). Copies take every element
/// of a box, or with `steps` every so manieth of each dimension.
mlir::FailureOr<unsigned> tensorMapOf(mlir::gpu::GPUFuncOp kernel,
                                      mlir::Value memref,
                                      llvm::ArrayRef<int64_t> box,
                                      int64_t swizzle,
                                      llvm::ArrayRef<int64_t> steps = {});
/// The kernel's parameter with an entry in `tile.params`: one that is there
/// already, or a new pointer at the end.
mlir::FailureOr<unsigned> parameterOf(mlir::gpu::GPUFuncOp kernel,
                                      mlir::DictionaryAttr wanted);
/// The block argument of the kernel that a memref is made from; null where it
/// is made from none.
mlir::BlockArgument argumentOf(mlir::Value memref);
/// The same, of the copy's source.
mlir::FailureOr<mlir::Value> tensorMapOf(mlir::gpu::GPUFuncOp kernel,
                                         const TensorCopy &copy);

/// Starts the copy: to the slot at `slot`, with coordinates from `valueOf`, its
/// completion told to the mbarrier at `barrier`. Of a copy that is cut, the
/// part of the block with number `rank` in its cluster, to all of them: the
/// same slot, and the same mbarrier, in the memory of each.
void emitTensorCopy(mlir::OpBuilder &b, const TensorCopy &copy, mlir::Value map,
                    mlir::Value slot, mlir::Value barrier,
                    llvm::function_ref<mlir::Value(mlir::OpFoldResult)> valueOf,
                    mlir::Value rank);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_TENSORCOPIES_H
