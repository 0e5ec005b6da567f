//===- TaskBox.h - which elements a task touches ----------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PROGRAMS_TASKBOX_H
#define TILEWRIGHT_TRANSFORMS_PROGRAMS_TASKBOX_H

#include "dialects/Tile/Tile.h"

namespace tilewright {

/// A number of a task: a sum of its coordinates, each by a factor, and of
/// something from `least` to `most`.
struct TaskNumber {
  llvm::SmallVector<int64_t> factors;
  int64_t least = 0, most = 0;
};

/// A box of elements of a buffer, one number per dimension.
using TaskBox = llvm::SmallVector<TaskNumber>;

/// The elements that a load or a store of a kernel touches; none where they are
/// no box that is affine in the coordinates of the task.
std::optional<TaskBox> findBox(tile::KernelOp kernel, mlir::Operation *access);

/// Whether tasks that differ in one of these coordinates touch different
/// elements, one by this box and one by that one: for each coordinate there is
/// a dimension in which its factor is at least as much as both boxes span.
bool areApart(const TaskBox &one, const TaskBox &other,
              llvm::ArrayRef<unsigned> coordinates);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PROGRAMS_TASKBOX_H
